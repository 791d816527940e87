//! How much of the tables of a profile was written, and what was added since.

use crate::batch::Batch;
use crate::fields::{put_bytes, put_difference, put_float, put_number, put_option, put_optional_text};
use crate::kind::Kind;
use crate::marker_rows::{put_marker, put_schema};
use crate::meta::put_meta;
use crate::row_names::{WrittenRows, add_row_names};
use crate::sample_rows::Before;
use nyquist_profile::{Counter, CounterId, Frame, Lib, Meta, Profile, StringId};

/// How much of the tables of a profile was written. Tables only grow, except for the names and the ends of processes
/// and threads, and the facts about the recording.
#[derive(Debug, Default)]
pub struct TableMarks {
    strings: usize,
    libs: usize,
    funcs: usize,
    frames: usize,
    stacks: usize,
    schemas: usize,
    /// The numbers of subcategories of each category.
    categories: Vec<usize>,
    processes: WrittenRows,
    threads: WrittenRows,
    /// The numbers of samples and markers of each thread.
    rows: Vec<(usize, usize)>,
    /// The numbers of values of each counter.
    counters: Vec<usize>,
    meta: Option<Meta>,
}

impl TableMarks {
    /// The number of libs that were written.
    pub fn libs(&self) -> usize {
        self.libs
    }

    /// The number of frames that were written.
    pub fn frames(&self) -> usize {
        self.frames
    }

    /// Adds what is new to a batch. `named` has the processes and threads with their names and ends, and no samples. If
    /// `all_names` is not set, only new ones are looked at. `accompanies` says whether a counter only accompanies
    /// samples. The profile has no names of functions in libs, and no source files: these are looked up when a
    /// recording is recovered.
    pub fn add_new(
        &mut self,
        (profile, named, all_names): (&Profile, &Profile, bool),
        accompanies: impl Fn(CounterId) -> bool,
        batch: &mut Batch,
    ) {
        if self.meta.as_ref() != Some(profile.meta()) {
            batch.add(Kind::Meta, |out| put_meta(out, profile.meta()));
            self.meta = Some(profile.meta().clone());
        }
        // Frames have categories.
        self.add_kinds(profile, batch);
        self.add_code(profile, batch);
        add_row_names((&mut self.processes, &mut self.threads), (named, all_names), batch);
        self.add_samples(profile, batch);
        self.add_counters(profile, accompanies, batch);
    }

    /// Adds strings, libs, functions, frames and stacks.
    fn add_code(&mut self, profile: &Profile, batch: &mut Batch) {
        let strings = profile.strings();
        let new = (self.strings..strings.len()).map(|index| &strings[StringId::from_index(index)]);
        let put_text = |out: &mut Vec<u8>, text: &str, _| put_bytes(out, text.as_bytes());
        batch.add_rows(Kind::Strings, new, begin_at(self.strings), put_text);
        let put = |out: &mut Vec<u8>, lib: &Lib, _| put_lib(out, lib);
        batch.add_rows(Kind::Libs, &profile.libs()[self.libs..], begin_at(self.libs), put);
        let funcs = &profile.funcs()[self.funcs..];
        batch.add_rows(Kind::Funcs, funcs, begin_at(self.funcs), |out, func, _| {
            put_number(out, func.name.index() as u64);
            put_option(out, func.lib.map(|lib| lib.index() as u64));
        });
        let put = |out: &mut Vec<u8>, frame: &Frame, _| put_frame(out, frame);
        batch.add_rows(Kind::Frames, &profile.frames()[self.frames..], begin_at(self.frames), put);
        let stacks = profile.stacks()[self.stacks..].iter().enumerate();
        let (first, mut frame) = (self.stacks, 0);
        batch.add_rows(Kind::Stacks, stacks, begin_at(first), |out, (number, stack), is_first| {
            // Most stacks continue the one before.
            put_number(out, stack.prefix.map_or(0, |prefix| (first + number - prefix.index()) as u64));
            put_difference(out, if is_first { 0 } else { frame }, stack.frame.index() as u64);
            frame = stack.frame.index() as u64;
        });
        self.strings = strings.len();
        self.libs = profile.libs().len();
        self.funcs = profile.funcs().len();
        self.frames = profile.frames().len();
        self.stacks = profile.stacks().len();
    }

    /// Adds categories and kinds of markers.
    fn add_kinds(&mut self, profile: &Profile, batch: &mut Batch) {
        for (index, category) in profile.categories().iter().enumerate() {
            let count = category.subcategories.len();
            match self.categories.get_mut(index) {
                Some(written) if *written == count => continue,
                Some(written) => *written = count,
                None => self.categories.push(count),
            }
            batch.add(Kind::Category, |out| {
                put_number(out, index as u64);
                put_bytes(out, category.name.as_bytes());
                put_bytes(out, category.color.as_str().as_bytes());
                for name in &category.subcategories {
                    put_bytes(out, name.as_bytes());
                }
            });
        }
        for (index, schema) in profile.marker_schemas().iter().enumerate().skip(self.schemas) {
            batch.add(Kind::MarkerSchema, |out| {
                put_number(out, index as u64);
                put_schema(out, schema);
            });
        }
        self.schemas = profile.marker_schemas().len();
    }

    /// Adds the samples and markers of threads.
    fn add_samples(&mut self, profile: &Profile, batch: &mut Batch) {
        self.rows.resize(profile.threads().len().max(self.rows.len()), (0, 0));
        for (index, (thread, (samples, markers))) in profile.threads().iter().zip(&mut self.rows).enumerate()
        {
            let begin = |known: usize| {
                move |out: &mut Vec<u8>, number| {
                    put_number(out, index as u64);
                    put_number(out, (known + number) as u64);
                }
            };
            let mut before = Before::default();
            let new = thread.samples.range(*samples..thread.samples.len());
            batch.add_rows(Kind::Samples, new, begin(*samples), |out, sample, is_first| {
                if is_first {
                    before = Before::default();
                }
                before.put(out, sample);
            });
            let new = thread.markers.iter().skip(*markers);
            batch.add_rows(Kind::Markers, new, begin(*markers), |out, marker, _| put_marker(out, marker));
            (*samples, *markers) = (thread.samples.len(), thread.markers.len());
        }
    }

    fn add_counters(
        &mut self,
        profile: &Profile,
        accompanies: impl Fn(CounterId) -> bool,
        batch: &mut Batch,
    ) {
        for (index, counter) in profile.counters().iter().enumerate() {
            if index == self.counters.len() {
                self.counters.push(0);
                let accompanies = accompanies(CounterId::from_index(index));
                batch.add(Kind::Counter, |out| put_counter(out, index, counter, accompanies));
            }
            let written = self.counters[index];
            let begin = |out: &mut Vec<u8>, number| {
                put_number(out, index as u64);
                put_number(out, (written + number) as u64);
            };
            let new = counter.samples.iter().skip(written);
            batch.add_rows(Kind::CounterSamples, new, begin, |out, sample, _| {
                put_number(out, sample.time);
                put_float(out, sample.delta);
                put_option(out, sample.operations.map(u64::from));
            });
            self.counters[index] = counter.samples.len();
        }
    }
}

/// The first field of a record of rows: the index of its first one.
fn begin_at(first: usize) -> impl Fn(&mut Vec<u8>, usize) {
    move |out, number| put_number(out, (first + number) as u64)
}

fn put_lib(out: &mut Vec<u8>, lib: &Lib) {
    for text in [&lib.name, &lib.path, &lib.debug_name, &lib.debug_path, &lib.breakpad_id] {
        put_bytes(out, text.as_bytes());
    }
    put_optional_text(out, lib.code_id.as_deref());
    put_optional_text(out, lib.arch.as_deref());
}

fn put_frame(out: &mut Vec<u8>, frame: &Frame) {
    put_number(out, frame.func.index() as u64);
    put_option(out, frame.address.map(u64::from));
    put_option(out, frame.category.map(|pair| pair.category.index() as u64));
    if let Some(pair) = frame.category {
        put_number(out, pair.subcategory.into());
    }
}

fn put_counter(out: &mut Vec<u8>, index: usize, counter: &Counter, accompanies: bool) {
    put_number(out, index as u64);
    put_number(out, counter.process.index() as u64);
    out.push(accompanies.into());
    let display = &counter.display;
    for text in [&counter.name, &counter.category, &counter.description, &display.unit, &display.label] {
        put_bytes(out, text.as_bytes());
    }
    put_bytes(out, display.graph.as_str().as_bytes());
    put_bytes(out, display.color.as_str().as_bytes());
    put_difference(out, 0, i64::from(display.sort_weight) as u64);
    put_optional_text(out, display.marker_schema_location.as_deref());
}
