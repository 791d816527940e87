//! Python's `pstats` files from `python3 -m cProfile -o FILE`: functions with their own time and the time of
//! calls by caller.
//!
//! They are the dictionary `pstats.Stats.stats` in the marshal format
//! (<https://docs.python.org/3/library/profile.html>).

mod marshal;

use nyquist_profile::{FrameId, Measure, StringId, Unit};
use rustc_hash::FxHashMap;

use crate::call_graph::CallGraph;
use crate::error::{ImportedProfile, ReadError};
use crate::import::{CodePosition, Importer, ThreadName};
use crate::json::nanoseconds;
use marshal::{MarshalDocument, MarshalValue};

const FORMAT: &str = "a file of Python's cProfile";

/// The file name of functions without a file, which are written in C.
const NO_FILE: &str = "~";

/// Whether a file begins like `pstats` files: with a dictionary whose first key is a tuple of three values,
/// the first one a text.
pub(crate) fn is_pstats(start: &[u8]) -> bool {
    let kind = |at: usize| start.get(at).map(|byte| byte & 0x7f);
    kind(0) == Some(b'{')
        && kind(1) == Some(b')')
        && start.get(2) == Some(&3)
        && kind(3).is_some_and(|kind| b"szZaAut".contains(&kind))
}

/// Reads the time of a file, which is wall time. Stacks are made from the calls, as for callgrind.
///
/// # Errors
/// If it is no such file.
pub fn read(bytes: &[u8]) -> Result<ImportedProfile, ReadError> {
    let malformed = |problem: &str| ReadError::Malformed { format: FORMAT, problem: problem.into() };
    let MarshalDocument { value, texts } = marshal::read(bytes)
        .ok_or_else(|| malformed("it is cut off, or has values that such files do not have"))?;
    let MarshalValue::Dictionary(functions) = value else { return Err(malformed("it is not a dictionary")) };
    let mut importer = Importer::new("Python", "pstats");
    importer.meta_mut().measure = Measure { name: "wall time".into(), unit: Unit::Time };
    let name = ThreadName { pid: "0", process: "Python", tid: "0", thread: "Python" };
    let thread = importer.thread(name);
    let mut reader = PstatsReader {
        names: texts.iter().map(|text| importer.builder().intern_string(text)).collect(),
        no_file: importer.builder().intern_string(NO_FILE),
        importer,
        graph: CallGraph::default(),
        functions: FxHashMap::default(),
        callers_left: bytes.len(),
    };
    let unknown = functions.iter().filter(|(key, value)| reader.read_function(key, value).is_none()).count();
    if unknown == functions.len() {
        return Err(malformed("it has no functions"));
    }
    let PstatsReader { mut importer, graph, .. } = reader;
    graph.add_to(&mut importer, thread);
    importer.note_left_out(unknown as u64, "functions that are not as such files have them");
    Ok(importer.finish(None))
}

struct PstatsReader {
    importer: Importer,
    names: Vec<StringId>,
    no_file: StringId,
    graph: CallGraph,
    /// By file, line and name.
    functions: FxHashMap<(StringId, i64, StringId), (usize, FrameId)>,
    /// The remaining number of callers. Only functions that share their callers can have more callers than
    /// the file has bytes.
    callers_left: usize,
}

impl PstatsReader {
    /// Reads a function with the number of its calls, its own time, its total time, and its callers with the
    /// same values.
    fn read_function(&mut self, key: &MarshalValue, value: &MarshalValue) -> Option<()> {
        let (function, frame) = self.function(key)?;
        let MarshalValue::Tuple(values) = value else { return None };
        let [_, _, own, _, callers] = &values[..] else { return None };
        self.graph.add_own(function, frame, time(own)?);
        let MarshalValue::Dictionary(callers) = callers else { return None };
        for (caller, value) in callers.iter() {
            self.callers_left = self.callers_left.checked_sub(1)?;
            let caller = self.function(caller)?;
            // The module `profile` only has the number of calls.
            let total =
                if let MarshalValue::Tuple(values) = value { values.get(3).and_then(time)? } else { 0 };
            self.graph.add_call(caller, function, total);
        }
        Some(())
    }

    fn function(&mut self, key: &MarshalValue) -> Option<(usize, FrameId)> {
        let MarshalValue::Tuple(key) = key else { return None };
        let [MarshalValue::Text(file), MarshalValue::Integer(line), MarshalValue::Text(name)] = key[..]
        else {
            return None;
        };
        let (file, name) = (*self.names.get(file)?, *self.names.get(name)?);
        if let Some(&known) = self.functions.get(&(file, line, name)) {
            return Some(known);
        }
        let code = CodePosition { start_line: u32::try_from(line).ok(), ..CodePosition::default() };
        let in_file = Some(file).filter(|&file| file != self.no_file);
        let frame = self.importer.frame_of(Some(name), in_file, &code);
        let function = (self.graph.add_function(), frame);
        self.functions.insert((file, line, name), function);
        Some(function)
    }
}

fn time(value: &MarshalValue) -> Option<u64> {
    match *value {
        MarshalValue::Float(seconds) => Some(nanoseconds(seconds, 1e9)),
        MarshalValue::Integer(seconds) => Some(nanoseconds(seconds as f64, 1e9)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_profile::stacks_of;

    fn text(text: &str) -> Vec<u8> {
        [&[b'z', text.len() as u8], text.as_bytes()].concat()
    }

    fn key(file: &str, line: u8, name: &str) -> Vec<u8> {
        [&b")\x03"[..], &text(file), &[b'i', line, 0, 0, 0], &text(name)].concat()
    }

    fn times(own: f64, total: f64) -> Vec<u8> {
        let count = [b'i', 1, 0, 0, 0];
        [&count[..], &count, b"g", &own.to_le_bytes(), b"g", &total.to_le_bytes()].concat()
    }

    fn file() -> Vec<u8> {
        let (main, work) = (key("a.py", 9, "main"), key("~", 0, "<built-in method work>"));
        let caller = [&main[..], b")\x04", &times(0.75, 0.75)].concat();
        [
            &b"{"[..],
            &main,
            b")\x05",
            &times(0.25, 1.0),
            b"{0",
            &work,
            b")\x05",
            &times(0.75, 0.75),
            b"{",
            &caller,
            b"00",
        ]
        .concat()
    }

    #[test]
    fn calls_become_stacks() {
        assert!(is_pstats(&file()) && !is_pstats(b"{\"a\":1}"));
        let profile = read(&file()).unwrap().profile;
        assert_eq!(stacks_of(&profile), ["main 1", "main;<built-in method work> 3"]);
        let measure = Measure { name: "wall time".into(), unit: Unit::Time };
        assert_eq!((&profile.meta().measure, profile.meta().interval), (&measure, 250_000_000));
        let places: Vec<_> = (profile.funcs().iter())
            .map(|func| (func.source.map(|it| profile.string(profile.source(it).filename)), func.line))
            .collect();
        assert_eq!(places, [(Some("a.py"), Some(9)), (None, None)]);
    }

    #[test]
    fn what_is_no_such_file_is_refused() {
        for length in 0..file().len() {
            assert!(read(&file()[..length]).is_err());
        }
        assert!(read(b"{0").is_err() && read(b"N").is_err());
    }
}
