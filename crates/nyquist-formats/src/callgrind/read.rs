//! Reads callgrind's files: a call graph, from which stacks are made.

use nyquist_profile::{FrameId, LibId, Measure, StringId, Unit};
use rustc_hash::FxHashMap;

use crate::call_graph::CallGraph;
use crate::error::{ImportedProfile, Note, ReadError};
use crate::import::{CodePosition, Importer, ThreadName};
use crate::pprof::factor_of;
use crate::values::{SampleValueKind, choose};

const FORMAT: &str = "a file of callgrind";

/// The name of the event that [`write`](super::write()) makes of CPU time.
pub(super) const CPU_TIME: &str = "CPU_time";

/// Reads the first event of the file. Stacks are made from the calls: a function's own cost is divided among
/// its callers in proportion to the costs of their calls to it. So own costs and those of each call are
/// exact, and stacks of three and more functions are an estimate. Calls that close a cycle are removed. The
/// file has no times.
///
/// # Errors
/// If it has no events or no costs.
pub fn read(bytes: &[u8]) -> Result<ImportedProfile, ReadError> {
    read_value(bytes, None)
}

/// As [`read`], for the event with this name.
///
/// # Errors
/// As there, and if there is no such event.
pub fn read_value(bytes: &[u8], name: Option<&str>) -> Result<ImportedProfile, ReadError> {
    let mut reader = CallgrindReader::new(name);
    for line in bytes.split(|&byte| byte == b'\n') {
        reader.read_line(String::from_utf8_lossy(line).trim())?;
    }
    let is_cut_in_line = !bytes.ends_with(b"\n");
    if is_cut_in_line || reader.totals == Totals::Missing {
        reader.importer.note(Note::Cut { place: "its end".into() });
    }
    reader.finish()
}

/// The kinds of names. Each kind has separate numbers for repeated names.
#[derive(Clone, Copy)]
enum NameKind {
    Object,
    File,
    Function,
}

/// The key that distinguishes functions: object, file and name.
type FunctionKey = (Option<StringId>, Option<StringId>, Option<StringId>);

/// The costs of a thread.
#[derive(Default)]
struct ThreadCosts {
    graph: CallGraph,
    functions: FxHashMap<FunctionKey, usize>,
}

/// A callee: its object and file, if they differ from the caller's, and its name.
#[derive(Default)]
struct Callee {
    has_object: bool,
    has_file: bool,
    key: FunctionKey,
}

/// The sums at the end of a part of the file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Totals {
    /// Another program than callgrind wrote the file: it may have none.
    Optional,
    /// Callgrind wrote the file. The last part has its sums, or there is no part yet.
    Complete,
    /// The last part has no sums yet.
    Missing,
}

struct CallgrindReader<'a> {
    importer: Importer,
    requested: Option<&'a str>,
    /// The index of the cost on a line that is read, and its value type.
    event: Option<(usize, SampleValueKind)>,
    /// The index of the line number among the positions on a line. Other positions are not used.
    line_at: usize,
    positions: Vec<u64>,
    names: [FxHashMap<u64, StringId>; 3],
    command: String,
    pid: String,
    /// The costs by thread, and the current thread.
    threads: Vec<(String, ThreadCosts)>,
    thread_numbers: FxHashMap<String, usize>,
    thread: usize,
    libs: FxHashMap<StringId, LibId>,
    /// The current function, and the file of its lines.
    function: FunctionKey,
    line_file: Option<StringId>,
    callee: Callee,
    is_call: bool,
    has_costs: bool,
    totals: Totals,
    negative: u64,
    unknown: u64,
}

impl<'a> CallgrindReader<'a> {
    fn new(requested: Option<&'a str>) -> Self {
        Self {
            importer: Importer::new("callgrind", "callgrind"),
            requested,
            event: None,
            line_at: 0,
            positions: vec![0],
            names: Default::default(),
            command: String::new(),
            pid: "0".into(),
            threads: vec![(String::new(), ThreadCosts::default())],
            thread_numbers: FxHashMap::default(),
            thread: 0,
            libs: FxHashMap::default(),
            function: (None, None, None),
            line_file: None,
            callee: Callee::default(),
            is_call: false,
            has_costs: false,
            totals: Totals::Optional,
            negative: 0,
            unknown: 0,
        }
    }

    fn read_line(&mut self, line: &str) -> Result<(), ReadError> {
        let Some(&first) = line.as_bytes().first() else { return Ok(()) };
        if matches!(first, b'0'..=b'9' | b'+' | b'-' | b'*') {
            self.read_costs(line);
        } else if first == b'#' {
            // A comment.
        } else if let Some((key, value)) = line.split_once('=').filter(|(key, _)| is_position(key)) {
            self.read_position(key, value.trim());
        } else if let Some((key, value)) = line.split_once(':') {
            self.read_header(key, value.trim())?;
        } else {
            self.unknown += 1;
        }
        Ok(())
    }

    fn read_header(&mut self, key: &str, value: &str) -> Result<(), ReadError> {
        match key {
            "creator" if value.starts_with("callgrind-") && self.totals == Totals::Optional => {
                self.totals = Totals::Complete;
            }
            "events" => {
                self.event = Some(event(value, self.requested)?);
                if self.totals == Totals::Complete {
                    self.totals = Totals::Missing;
                }
            }
            "totals" if self.totals == Totals::Missing => self.totals = Totals::Complete,
            "positions" => {
                let positions: Vec<_> = value.split_whitespace().take(3).collect();
                self.line_at = positions.iter().position(|&it| it == "line").unwrap_or(usize::MAX);
                self.positions = vec![0; positions.len().max(1)];
            }
            "cmd" if self.command.is_empty() => value.clone_into(&mut self.command),
            "pid" => value.clone_into(&mut self.pid),
            "thread" => self.thread = self.thread_of(value),
            "part" => self.positions.fill(0),
            _ => {}
        }
        Ok(())
    }

    /// The index of a thread's costs. The first name is also that of the costs before it.
    fn thread_of(&mut self, name: &str) -> usize {
        if self.thread_numbers.is_empty() {
            name.clone_into(&mut self.threads[0].0);
            self.thread_numbers.insert(name.to_owned(), 0);
        }
        *self.thread_numbers.entry(name.to_owned()).or_insert_with(|| {
            self.threads.push((name.to_owned(), ThreadCosts::default()));
            self.threads.len() - 1
        })
    }

    /// A name, or the number of one, or both: `(3) main`.
    fn name(&mut self, kind: NameKind, text: &str) -> Option<StringId> {
        let numbered = text.strip_prefix('(').and_then(|rest| rest.split_once(')'));
        let number = numbered.and_then(|(number, name)| Some((number.parse::<u64>().ok()?, name.trim())));
        let names = &mut self.names[kind as usize];
        match number {
            Some((number, "")) => names.get(&number).copied(),
            Some((number, name)) => {
                let id = known_name(name).map(|name| self.importer.builder().intern_string(name));
                match id {
                    Some(id) => names.insert(number, id),
                    None => names.remove(&number),
                };
                id
            }
            None => known_name(text).map(|name| self.importer.builder().intern_string(name)),
        }
    }

    fn read_position(&mut self, key: &str, value: &str) {
        match key {
            "ob" => self.function.0 = self.name(NameKind::Object, value),
            "fl" => {
                self.function.1 = self.name(NameKind::File, value);
                self.line_file = self.function.1;
            }
            "fi" | "fe" => self.line_file = self.name(NameKind::File, value),
            "fn" => {
                self.function.2 = self.name(NameKind::Function, value);
                self.line_file = self.function.1;
            }
            "cob" => {
                self.callee.key.0 = self.name(NameKind::Object, value);
                self.callee.has_object = true;
            }
            "cfi" | "cfl" => {
                self.callee.key.1 = self.name(NameKind::File, value);
                self.callee.has_file = true;
            }
            "cfn" => self.callee.key.2 = self.name(NameKind::Function, value),
            "calls" => self.is_call = true,
            // Jumps. Later lines may refer to their names.
            "jfi" => drop(self.name(NameKind::File, value)),
            "jfn" => drop(self.name(NameKind::Function, value)),
            _ => {}
        }
    }

    /// Reads a line of costs: of the function itself, or of calls if a line `calls=` precedes it.
    fn read_costs(&mut self, line: &str) {
        let mut fields = line.split_ascii_whitespace();
        for position in &mut self.positions {
            let Some(next) = fields.next().and_then(|word| moved(*position, word)) else {
                self.unknown += 1;
                return;
            };
            *position = next;
        }
        let is_call = std::mem::take(&mut self.is_call);
        let callee = if is_call { std::mem::take(&mut self.callee) } else { Callee::default() };
        let Some((at, factor)) = self.event.as_ref().map(|(at, value)| (*at, value.factor)) else { return };
        // Costs of 0 at the end of a line are left out.
        let cost = fields.nth(at).map_or(Some(0), |word| word.parse::<i128>().ok());
        let Some(cost) = cost else {
            self.unknown += 1;
            return;
        };
        self.negative += u64::from(cost < 0);
        let cost = u64::try_from(cost.max(0)).unwrap_or(u64::MAX).saturating_mul(factor);
        if cost > 0 || is_call {
            self.has_costs = true;
            let caller = self.function_of(self.function);
            let frame = self.frame();
            if is_call {
                let (mut object, mut file, name) = callee.key;
                object = if callee.has_object { object } else { self.function.0 };
                file = if callee.has_file { file } else { self.line_file };
                let callee = self.function_of((object, file, name));
                self.threads[self.thread].1.graph.add_call((caller, frame), callee, cost);
            } else {
                self.threads[self.thread].1.graph.add_own(caller, frame, cost);
            }
        }
    }

    fn function_of(&mut self, key: FunctionKey) -> usize {
        let costs = &mut self.threads[self.thread].1;
        *costs.functions.entry(key).or_insert_with(|| costs.graph.add_function())
    }

    /// The frame of the function at the line.
    fn frame(&mut self) -> FrameId {
        let (object, file, name) = self.function;
        let line = self.positions.get(self.line_at).and_then(|&line| u32::try_from(line).ok());
        let lib = object.map(|object| self.lib(object));
        let code = CodePosition { lib, line, ..CodePosition::default() };
        // The file of text that the function includes, or of an inlined function.
        let line_file = self.line_file.filter(|_| self.line_file != file);
        self.importer.frame_in(name, file, &code, line_file)
    }

    fn lib(&mut self, object: StringId) -> LibId {
        *self.libs.entry(object).or_insert_with(|| {
            let path = self.importer.builder().profile().string(object).to_owned();
            self.importer.lib(&path, None)
        })
    }

    fn finish(mut self) -> Result<ImportedProfile, ReadError> {
        let malformed = |problem: &str| Err(ReadError::Malformed { format: FORMAT, problem: problem.into() });
        let Some((_, value)) = self.event.take() else {
            return malformed("no line says which events it has");
        };
        if !self.has_costs {
            return malformed("no line has costs");
        }
        let is_cpu_time = value.name == CPU_TIME && value.unit == Unit::Time;
        self.importer.meta_mut().measure = if is_cpu_time { Measure::default() } else { value.measure() };
        let objects =
            self.libs.keys().map(|&object| self.importer.builder().profile().string(object).to_owned());
        let program = program_name(&self.command, &objects.collect::<Vec<_>>()).to_owned();
        let process = if program.is_empty() { "callgrind" } else { &program };
        process.clone_into(&mut self.importer.meta_mut().product);
        for (number, (name, costs)) in self.threads.into_iter().enumerate() {
            let (tid, thread) = match number {
                0 => (self.pid.clone(), process.to_owned()),
                _ => (format!("{}.{name}", self.pid), format!("{process} {name}")),
            };
            let name = ThreadName { pid: &self.pid, process, tid: &tid, thread: &thread };
            let thread = self.importer.thread(name);
            costs.graph.add_to(&mut self.importer, thread);
        }
        self.importer.note_left_out(self.negative, "negative costs");
        self.importer.note_left_out(self.unknown, "lines that are none of the format");
        Ok(self.importer.finish(None))
    }
}

/// The name of the program of a command line, in which a path with spaces is not marked. It is the longest
/// beginning that is the name of an object, or else the first word.
fn program_name<'c>(command: &'c str, objects: &[String]) -> &'c str {
    /// More spaces are hardly in a name.
    const MAX_SPACES: usize = 16;
    fn name(path: &str) -> &str {
        path.rsplit('/').next().unwrap_or_default()
    }
    let ends = command.match_indices(' ').map(|(at, _)| at).take(MAX_SPACES).chain([command.len()]);
    let mut names: Vec<_> = ends.map(|end| name(command[..end].trim_end())).collect();
    let first = names.first().copied().unwrap_or_default();
    names.retain(|it| !it.is_empty() && objects.iter().any(|object| name(object) == *it));
    names.last().copied().unwrap_or(first)
}

fn is_position(key: &str) -> bool {
    const KEYS: [&str; 14] =
        ["ob", "fl", "fi", "fe", "fn", "cob", "cfi", "cfl", "cfn", "calls", "jump", "jcnd", "jfi", "jfn"];
    KEYS.contains(&key)
}

/// `???` means an unknown name.
fn known_name(name: &str) -> Option<&str> {
    Some(name).filter(|name| !name.is_empty() && *name != "???")
}

/// A position, which may be relative to the previous one: `+3`, `-3`, `*`, `17`, `0x11`.
fn moved(before: u64, word: &str) -> Option<u64> {
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    match word.as_bytes().first()? {
        b'*' => Some(before),
        b'+' => Some(before.saturating_add(number(&word[1..])?)),
        b'-' => Some(before.saturating_sub(number(&word[1..])?)),
        _ => number(word),
    }
}

/// The event that is read, among all events of a file: its index and its value type.
fn event(line: &str, requested: Option<&str>) -> Result<(usize, SampleValueKind), ReadError> {
    let values: Vec<_> = line.split_whitespace().map(value_of).collect();
    let at = choose(&values, requested, 0)?;
    let malformed = || ReadError::Malformed { format: FORMAT, problem: "it has no events".into() };
    values.get(at).cloned().map(|value| (at, value)).ok_or_else(malformed)
}

/// The value type of an event by its name, which may end with its unit: `Ir`, `Time_(10ns)`,
/// `Memory_(bytes)`.
fn value_of(name: &str) -> SampleValueKind {
    let parts = name.strip_suffix(')').and_then(|name| name.rsplit_once("_("));
    let Some((name, unit)) = parts.filter(|(name, _)| !name.is_empty()) else {
        return SampleValueKind::new(name, Unit::Count);
    };
    let letters = unit.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let times = unit[..unit.len() - letters.len()].parse::<u64>().unwrap_or(1).max(1);
    let (factor, unit) = factor_of(letters);
    SampleValueKind { name: name.to_owned(), unit, factor: factor.saturating_mul(times) }
}
