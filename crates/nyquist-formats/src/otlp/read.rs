//! Reads OpenTelemetry's profiles of any producer.

use nyquist_profile::{FrameId, LibId, Measure, StackId, ThreadIndex, Unit};
use prost::Message as _;
use rustc_hash::FxHashMap;

use super::label_filter::{self, LabelFilter};
use super::message;
use super::{KERNEL, OFF_CPU, key};
use crate::error::{ImportedProfile, Note, ReadError};
use crate::import::{CodePosition, Importer, MILLISECOND, ThreadName};
use crate::pprof::{factor_of, plausible_period};
use crate::strings::{FunctionLine, NumberedStrings};

const FORMAT: &str = "a profile of OpenTelemetry";

/// The most inlined functions at one address. Compilers do not come near this.
const MAX_INLINED: usize = 255;

/// The limit of stacks for each byte, as in pprof.
const STACKS_PER_BYTE: usize = 16;

/// The maximum length of names of threads and processes. Longer names are truncated.
const MAX_NAME: usize = 1024;

/// Reads a file.
///
/// # Errors
/// As for [`read_value`].
pub fn read(bytes: &[u8]) -> Result<ImportedProfile, ReadError> {
    read_value(bytes, None)
}

/// Reads the profiles of a file whose samples have the value with this name. The default is CPU time with the
/// time of waiting (`off_cpu`), or else the value of the first profile. Processes and threads are
/// distinguished by attributes of the resource and of the samples. Samples without times follow each other on
/// their thread, or are at their profile's time if others have times.
///
/// # Errors
/// The file is no such profile, or has no value with this name.
pub fn read_value(bytes: &[u8], requested: Option<&str>) -> Result<ImportedProfile, ReadError> {
    read_labelled(bytes, requested, &[])
}

/// As [`read_value`], for the samples with these labels: `KEY=VALUE`, or `KEY` for any value. Labels are the
/// attributes of a sample, of its profile and of its resource. If a key is given with several values, one of
/// them is enough. All given keys must exist.
///
/// # Errors
/// As there, and if no sample has a label with such a key.
pub fn read_labelled(
    bytes: &[u8],
    requested: Option<&str>,
    labels: &[String],
) -> Result<ImportedProfile, ReadError> {
    let mut file = message::ProfilesData::default();
    let cut = file.merge(bytes).is_err();
    read_document(file, cut, (bytes.len(), requested, labels))
}

/// As [`read_labelled`], for a document of that length.
///
/// # Errors
/// As there.
pub(super) fn read_file(
    file: message::ProfilesData,
    length: usize,
    requested: Option<&str>,
    labels: &[String],
) -> Result<ImportedProfile, ReadError> {
    read_document(file, false, (length, requested, labels))
}

fn read_document(
    mut file: message::ProfilesData,
    cut: bool,
    (length, requested, labels): (usize, Option<&str>, &[String]),
) -> Result<ImportedProfile, ReadError> {
    if file.resource_profiles.is_empty() {
        let problem = if cut { "it is cut off in its first profile" } else { "it has no profiles" };
        return Err(ReadError::Malformed { format: FORMAT, problem: problem.into() });
    }
    let dictionary = file.dictionary.take().unwrap_or_default();
    let strings = NumberedStrings::new(&dictionary.strings);
    if cut && profiles(&file).all(|profile| value_type(profile, &strings).0.is_empty()) {
        // The names of everything are at the end.
        let problem = "it is cut off before its table of names".into();
        return Err(ReadError::Malformed { format: FORMAT, problem });
    }
    let (requested, measure) = choose(&file, &strings, requested)?;
    let filter = LabelFilter::new(&file, &dictionary, &strings, labels)?;
    let mut importer = Importer::new("OpenTelemetry profile", "OTLP");
    importer.meta_mut().measure = measure;
    if cut {
        importer.note(Note::Cut { place: "its end".into() });
    }
    let mut reader = OtlpReader {
        dictionary: &dictionary,
        strings,
        importer,
        requested,
        locations: FxHashMap::default(),
        stacks: FxHashMap::default(),
        libs: FxHashMap::default(),
        threads: FxHashMap::default(),
        clocks: FxHashMap::default(),
        has_times: has_times(&file),
        most_stacks: length.saturating_mul(STACKS_PER_BYTE),
        first: u64::MAX,
        period: None,
        negative: 0,
        left_out: 0,
        unread: 0,
    };
    for (number, resource) in file.resource_profiles.iter().enumerate() {
        reader.read_resource(number, resource, &filter);
    }
    Ok(reader.finish())
}

fn profiles(file: &message::ProfilesData) -> impl Iterator<Item = &message::Profile> {
    file.resource_profiles.iter().flat_map(|resource| &resource.scopes).flat_map(|scope| &scope.profiles)
}

fn has_times(file: &message::ProfilesData) -> bool {
    profiles(file).flat_map(|profile| &profile.samples).any(|sample| !sample.times.is_empty())
}

/// Which profiles are read.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ProfileChoice {
    /// The profiles of CPU time, whose values have this name, and those of waiting. Other profiles may count
    /// the same as `samples`.
    CpuTime(String),
    /// The profiles whose value has this name.
    Named(String),
}

/// The meaning of a value of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ValueMeaning {
    /// The number of units of the measure in one value.
    factor: u64,
    is_cpu: bool,
    off_cpu: bool,
}

/// The name and unit of a profile's values.
fn value_type<'s>(profile: &message::Profile, strings: &'s NumberedStrings<'_>) -> (&'s str, &'s str) {
    let kind = profile.sample_type.unwrap_or_default();
    (strings.text(kind.kind.into()), strings.text(kind.unit.into()))
}

/// The time that a sample stands for in ns, if the period is a time.
fn period(profile: &message::Profile, strings: &NumberedStrings<'_>) -> Option<u64> {
    plausible_period(strings.text(profile.period_type?.unit.into()), profile.period)
}

fn value(profile: &message::Profile, strings: &NumberedStrings<'_>) -> ValueMeaning {
    let (kind, unit) = value_type(profile, strings);
    let (factor, unit) = factor_of(unit);
    let off_cpu = unit == Unit::Time && matches!(kind, OFF_CPU | "off-cpu" | "offcpu");
    if unit == Unit::Time && matches!(kind, "cpu" | "cpu_time" | "on_cpu") {
        return ValueMeaning { factor, is_cpu: true, off_cpu };
    }
    let period_kind = profile.period_type.map_or("", |kind| strings.text(kind.kind.into()));
    let is_cpu_sample = matches!(kind, "samples" | "sample") && unit == Unit::Count && period_kind == "cpu";
    match period(profile, strings).filter(|_| is_cpu_sample) {
        Some(period) => ValueMeaning { factor: period, is_cpu: true, off_cpu },
        None => ValueMeaning { factor, is_cpu: false, off_cpu },
    }
}

/// Chooses the value that is read, and returns its measure.
fn choose(
    file: &message::ProfilesData,
    strings: &NumberedStrings<'_>,
    requested: Option<&str>,
) -> Result<(ProfileChoice, Measure), ReadError> {
    let named = |profile: &message::Profile| {
        let (kind, unit) = value_type(profile, strings);
        let (_, unit) = factor_of(unit);
        let is_cpu_time = unit == Unit::Time && value(profile, strings).is_cpu;
        let measure = if is_cpu_time { Measure::default() } else { Measure { name: kind.to_owned(), unit } };
        (ProfileChoice::Named(kind.to_owned()), measure)
    };
    if let Some(name) = requested {
        let found = profiles(file).find(|profile| value_type(profile, strings).0 == name);
        return found.map(named).ok_or_else(|| {
            let mut names: Vec<_> = profiles(file).map(|profile| value_type(profile, strings).0).collect();
            names.sort_unstable();
            names.dedup();
            names.truncate(8);
            ReadError::Unsupported(format!("it has no profile of `{name}`, but of {}", names.join(", ")))
        });
    }
    let of_cpu = profiles(file).filter(|profile| value(profile, strings).is_cpu);
    // Values in units of time are preferred to counts.
    if let Some(found) = of_cpu.max_by_key(|profile| value_type(profile, strings).0.contains("cpu")) {
        return Ok((ProfileChoice::CpuTime(value_type(found, strings).0.to_owned()), Measure::default()));
    }
    let first = profiles(file).find(|profile| !profile.samples.is_empty()).or_else(|| profiles(file).next());
    first
        .map(named)
        .ok_or_else(|| ReadError::Malformed { format: FORMAT, problem: "it has no profiles".into() })
}

/// The attributes that distinguish processes and threads.
#[derive(Clone, Debug, Default)]
struct Identity {
    pid: String,
    process: String,
    tid: String,
    thread: String,
}

impl Identity {
    fn set(&mut self, key: &str, value: &str) {
        let place = match key {
            key::PID => &mut self.pid,
            key::EXECUTABLE => &mut self.process,
            // The name of a service is used if the program's name is missing.
            "service.name" if self.process.is_empty() => &mut self.process,
            key::TID => &mut self.tid,
            key::THREAD => &mut self.thread,
            _ => return,
        };
        value[..value.floor_char_boundary(MAX_NAME)].clone_into(place);
    }
}

/// A thread's key: the number of its resource, and the attributes of its samples.
type ThreadKey = (usize, Vec<i32>);

struct OtlpReader<'a> {
    dictionary: &'a message::Dictionary,
    strings: NumberedStrings<'a>,
    importer: Importer,
    requested: ProfileChoice,
    /// The frames of each location, outermost first.
    locations: FxHashMap<i32, Vec<FrameId>>,
    stacks: FxHashMap<i32, Option<StackId>>,
    libs: FxHashMap<i32, Option<LibId>>,
    threads: FxHashMap<ThreadKey, ThreadIndex>,
    /// The sum of the samples' times for each thread so far, if no sample has a time.
    clocks: FxHashMap<ThreadIndex, u64>,
    has_times: bool,
    most_stacks: usize,
    /// The earliest time of a sample, in ns since 1970.
    first: u64,
    /// The time that a sample of CPU time stands for.
    period: Option<u64>,
    negative: u64,
    left_out: u64,
    unread: u64,
}

/// The row of a table. 0 means none.
fn row<T>(table: &[T], index: i32) -> Option<&T> {
    usize::try_from(index).ok().filter(|&index| index > 0).and_then(|index| table.get(index))
}

impl OtlpReader<'_> {
    fn read_resource(
        &mut self,
        number: usize,
        resource: &message::ResourceProfiles,
        filter: &LabelFilter<'_>,
    ) {
        let mut identity = Identity::default();
        for attribute in resource.resource.iter().flat_map(|resource| &resource.attributes) {
            let value = self.text_of(attribute.value.as_ref());
            identity.set(&label_filter::key_of(attribute, &self.strings), &value);
        }
        let of_resource = filter.of_resource(resource, &self.strings);
        for profile in resource.scopes.iter().flat_map(|scope| &scope.profiles) {
            let value = value(profile, &self.strings);
            let (kind, _) = value_type(profile, &self.strings);
            let is_requested = match &self.requested {
                ProfileChoice::CpuTime(name) => value.is_cpu && kind == name || value.off_cpu,
                ProfileChoice::Named(name) => kind == name,
            };
            if !is_requested {
                self.left_out += profile.samples.len() as u64;
                continue;
            }
            let value = match self.requested {
                // The value as it is stored, so that a sample is not converted to time.
                ProfileChoice::Named(_) => {
                    ValueMeaning { factor: self.plain_factor(profile), off_cpu: false, ..value }
                }
                ProfileChoice::CpuTime(_) => value,
            };
            if value.is_cpu {
                self.period = period(profile, &self.strings).or(self.period);
            }
            let of_profile = of_resource.with(filter, &profile.attributes);
            for sample in &profile.samples {
                if !of_profile.with(filter, &sample.attributes).is_all() {
                    continue;
                }
                self.read_sample((number, &identity), profile, sample, value);
            }
        }
    }

    /// The number of units in a value, if it was requested by its name.
    fn plain_factor(&self, profile: &message::Profile) -> u64 {
        factor_of(value_type(profile, &self.strings).1).0
    }

    fn text_of(&self, value: Option<&message::AnyValue>) -> String {
        label_filter::text_of(value, &self.strings).into_owned()
    }

    /// The value of the attribute with this name.
    fn attribute(&self, attributes: &[i32], name: &str) -> Option<String> {
        let mut rows = attributes.iter().filter_map(|&index| row(&self.dictionary.attributes, index));
        let found = rows.find(|attribute| self.strings.text(attribute.key.into()) == name);
        found.map(|attribute| self.text_of(attribute.value.as_ref()))
    }

    fn read_sample(
        &mut self,
        resource: (usize, &Identity),
        profile: &message::Profile,
        sample: &message::Sample,
        value: ValueMeaning,
    ) {
        if self.importer.stack_count() > self.most_stacks {
            self.unread += 1;
            return;
        }
        let thread = self.thread(resource, &sample.attributes);
        let stack = self.stack(sample.stack);
        if sample.times.is_empty() {
            let amount =
                self.amount(sample.values.iter().fold(0, |sum: i64, &it| sum.saturating_add(it)), value);
            return self.add(thread, profile.time_unix_nano, (stack, value.off_cpu), amount);
        }
        for (place, &time) in sample.times.iter().enumerate() {
            let amount = match sample.values.len() {
                0 => 1,
                // One sum for all times, of which each time gets its part.
                1 => part(sample.values[0], place, sample.times.len()),
                _ => sample.values.get(place).copied().unwrap_or(0),
            };
            let amount = self.amount(amount, value);
            self.add(thread, time, (stack, value.off_cpu), amount);
        }
    }

    fn amount(&mut self, amount: i64, value: ValueMeaning) -> u64 {
        self.negative += u64::from(amount < 0);
        u64::try_from(amount).unwrap_or(0).saturating_mul(value.factor)
    }

    fn add(
        &mut self,
        thread: ThreadIndex,
        time: u64,
        (stack, off_cpu): (Option<StackId>, bool),
        amount: u64,
    ) {
        if amount == 0 {
            return;
        }
        self.first = self.first.min(time);
        if !self.has_times {
            let clock = self.clocks.entry(thread).or_default();
            let start = *clock;
            *clock = clock.saturating_add(amount);
            self.importer.span(thread, start, (stack, off_cpu), amount);
        } else if off_cpu {
            self.importer.off_cpu_sample(thread, time, stack, amount);
        } else {
            self.importer.sample(thread, time, stack, amount);
        }
    }

    fn thread(&mut self, (number, identity): (usize, &Identity), attributes: &[i32]) -> ThreadIndex {
        let key = (number, attributes.to_vec());
        if let Some(&thread) = self.threads.get(&key) {
            return thread;
        }
        let mut identity = identity.clone();
        for &index in attributes {
            let Some(attribute) = row(&self.dictionary.attributes, index) else { continue };
            let value = self.text_of(attribute.value.as_ref());
            identity.set(self.strings.text(attribute.key.into()), &value);
        }
        let Identity { pid, process, tid, thread } = identity;
        let pid = if pid.is_empty() { number.to_string() } else { pid };
        let tid =
            [tid, thread.clone(), pid.clone()].into_iter().find(|it| !it.is_empty()).unwrap_or_default();
        let shown = if thread.is_empty() { &process } else { &thread };
        let thread =
            self.importer.thread(ThreadName { pid: &pid, process: &process, tid: &tid, thread: shown });
        self.threads.insert(key, thread);
        thread
    }

    fn stack(&mut self, index: i32) -> Option<StackId> {
        if let Some(&stack) = self.stacks.get(&index) {
            return stack;
        }
        let mut stack = None;
        for &location in row(&self.dictionary.stacks, index).iter().flat_map(|it| it.locations.iter().rev()) {
            if self.importer.stack_count() > self.most_stacks {
                break;
            }
            if !self.locations.contains_key(&location) {
                let frames = self.location(location);
                self.locations.insert(location, frames);
            }
            for &frame in self.locations.get(&location).into_iter().flatten() {
                stack = Some(self.importer.stack(stack, frame));
            }
        }
        self.stacks.insert(index, stack);
        stack
    }

    fn location(&mut self, index: i32) -> Vec<FrameId> {
        let Some(location) = row(&self.dictionary.locations, index) else { return Vec::new() };
        let mapping = row(&self.dictionary.mappings, location.mapping);
        let base = mapping.map_or(0, |mapping| mapping.memory_start.saturating_sub(mapping.file_offset));
        let address = location.address.checked_sub(base).filter(|_| location.address > 0);
        let code = CodePosition {
            lib: self.lib(location.mapping),
            address: address.and_then(|address| u32::try_from(address).ok()),
            is_kernel: self.attribute(&location.attributes, key::FRAME_TYPE).as_deref() == Some(KERNEL),
            ..CodePosition::default()
        };
        if location.lines.is_empty() {
            // The mapped files may have the name.
            if code.lib.is_some() && code.address.is_some() {
                self.importer.meta_mut().symbolicated = false;
                return vec![self.importer.frame(&code)];
            }
            let name = if location.address > 0 { format!("{:#x}", location.address) } else { String::new() };
            return vec![self.importer.frame(&CodePosition { name: &name, ..code })];
        }
        let lines = location.lines.iter().rev().take(MAX_INLINED + 1).enumerate();
        lines.map(|(depth, line)| self.line(code, depth, *line)).collect()
    }

    fn line(&mut self, code: CodePosition<'_>, depth: usize, line: message::Line) -> FrameId {
        let function = row(&self.dictionary.functions, line.function).copied().unwrap_or_default();
        let line = FunctionLine {
            name: function.name.into(),
            system_name: function.system_name.into(),
            file: function.filename.into(),
            start_line: function.start_line,
            line: line.number,
            column: line.column,
        };
        self.strings.frame(&mut self.importer, &line, (code, depth))
    }

    fn lib(&mut self, index: i32) -> Option<LibId> {
        if let Some(&lib) = self.libs.get(&index) {
            return lib;
        }
        let lib = row(&self.dictionary.mappings, index).and_then(|mapping| {
            let path = self.strings.text(mapping.filename.into());
            let build_id = self.attribute(&mapping.attributes, key::BUILD_ID);
            (!path.is_empty()).then(|| self.importer.lib(path, build_id.as_deref()))
        });
        self.libs.insert(index, lib);
        lib
    }

    fn finish(mut self) -> ImportedProfile {
        self.importer.note_left_out(self.negative, "negative values");
        self.importer.note_left_out(self.unread, "samples, because their stacks are out of all proportion");
        self.importer.note_left_out(self.left_out, "samples of other values: import --event NAME reads them");
        if self.first < u64::MAX {
            self.importer.meta_mut().start_time = self.first / 1000;
        }
        let process = self.importer.builder().profile().processes().first().map(|it| it.name.clone());
        if let Some(name) = process.filter(|name| !name.is_empty()) {
            self.importer.meta_mut().product = name;
        }
        let is_cpu_time = self.importer.meta_mut().measure.is_cpu_time();
        self.importer.finish(is_cpu_time.then(|| self.period.unwrap_or(MILLISECOND)))
    }
}

/// The part of a sum for one of `count` entries. The first entries get the remainder.
fn part(sum: i64, place: usize, count: usize) -> i64 {
    let count = count as i64;
    sum / count + i64::from((place as i64) < sum % count)
}
