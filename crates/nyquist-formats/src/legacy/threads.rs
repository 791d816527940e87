//! The stacks of all threads of a program as text (`threadz`), as servers with gperftools' handlers print them.

use nyquist_profile::{Measure, Unit};
use rustc_hash::FxHashMap;

use super::maps::Maps;
use super::stacks::{LegacySamples, LegacyStack, NamedFunction};
use crate::error::{ImportedProfile, ReadError};
use crate::import::Importer;

/// What is before the first thread, and before each.
const START: &str = "--- threadz ";
const THREAD: &str = "--- Thread ";

/// Whether a text that begins with this line has the stacks of threads.
pub(crate) fn is_threads(first: &str) -> bool {
    first.starts_with(START) || first.starts_with(THREAD)
}

/// Reads the stacks of threads, which are counted. What has created a thread is outside its stack, as in pprof.
///
/// # Errors
/// If it has no thread.
pub(super) fn read(text: &str) -> Result<ImportedProfile, ReadError> {
    let mut threads = ThreadStacks::default();
    let mut lines = text.lines();
    for line in lines.by_ref() {
        if !threads.add(line.trim()) {
            break;
        }
    }
    threads.drop_empty();
    if threads.stacks.is_empty() {
        return Err(ReadError::Malformed { format: "a list of threads", problem: "it has no thread".into() });
    }
    let mut maps = Maps::default();
    lines.for_each(|line| maps.add(line));
    let mut importer = Importer::new("thread profile", "pprof text");
    importer.meta_mut().measure = Measure { name: "thread".into(), unit: Unit::Count };
    importer.note_left_out(threads.unknown, "threads without a stack");
    let mut samples = LegacySamples::new(importer, maps);
    samples.names = threads.names;
    for (addresses, count) in threads.stacks {
        let stack = LegacyStack { addresses, is_interrupted: true, named: Vec::new() };
        samples.add(&stack, count);
    }
    Ok(samples.importer.finish(None))
}

/// The threads so far.
#[derive(Default)]
struct ThreadStacks<'a> {
    /// Stacks, each with the number of threads that have it.
    stacks: Vec<(Vec<u64>, u64)>,
    names: FxHashMap<u64, NamedFunction<'a>>,
    unknown: u64,
}

impl<'a> ThreadStacks<'a> {
    /// Adds a line. Returns false where the threads end.
    fn add(&mut self, line: &'a str) -> bool {
        if line.starts_with(THREAD) {
            self.drop_empty();
            self.stacks.push((Vec::new(), 1));
        } else if line.starts_with("---- no stack trace for") {
            self.unknown += 1;
        } else if line == "--- Memory map: ---" || line.starts_with("MAPPED_LIBRARIES:") {
            return false;
        } else if line.contains("same as previous thread") {
            self.stacks.pop();
            match self.stacks.last_mut() {
                Some((_, count)) => *count += 1,
                None => self.unknown += 1,
            }
        } else if let Some((addresses, _)) = self.stacks.last_mut() {
            let line = line.strip_prefix("PC:").or_else(|| line.strip_prefix("creator:")).unwrap_or(line);
            let (numbers, name) = line.split_once(": ").unwrap_or((line, ""));
            let name = name.trim();
            let numbers = numbers.split_ascii_whitespace();
            let first = addresses.len();
            addresses.extend(numbers.filter_map(|word| {
                u64::from_str_radix(word.trim_end_matches(':').strip_prefix("0x")?, 16).ok()
            }));
            if let ([address], false) = (&addresses[first..], name.is_empty()) {
                self.names.entry(*address).or_insert(NamedFunction { name, ..NamedFunction::default() });
            }
        }
        true
    }

    /// A thread without any address has no stack.
    fn drop_empty(&mut self) {
        if self.stacks.pop_if(|(addresses, _)| addresses.is_empty()).is_some() {
            self.unknown += 1;
        }
    }
}
