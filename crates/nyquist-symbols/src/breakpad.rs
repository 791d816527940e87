//! Breakpad's symbol files: text with a line for each function, line of source and inlined call (Breakpad,
//! "Symbol files", `docs/symbol_files.md`).

use crate::SourceFrame;
use crate::allowance::Allowance;
use crate::debug_answer::DebugAnswer;
use crate::demangle::readable;
use crate::named_range::{NamedRange, up_to_next};
use crate::section_contents::SharedSource;
use nyquist_object::{ByteSource, DebugId, ObjectError, Svma};
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;

/// The first bytes of a symbol file.
pub(crate) const MAGIC: &[u8] = b"MODULE ";

/// The longest first line that is read.
const MAX_FIRST_LINE: u64 = 4096;

/// The deepest nesting of inlined calls that is followed.
const MAX_INLINE_DEPTH: usize = 4096;

/// A function, and the place of its lines in the file.
#[derive(Clone, Debug)]
struct BreakpadFunction {
    start: u64,
    end: u64,
    name: Range<usize>,
    body: Range<usize>,
}

/// The symbols of one module.
pub(crate) struct Breakpad {
    bytes: Vec<u8>,
    image_base: u64,
    /// By address. If several are at one address, only the last one.
    functions: Vec<BreakpadFunction>,
    publics: Vec<(u64, Range<usize>)>,
    files: FxHashMap<u64, Arc<str>>,
    origins: FxHashMap<u64, Range<usize>>,
}

/// The id in the first line of a symbol file: `MODULE system architecture id name`.
pub(crate) fn debug_id(source: &SharedSource) -> Result<DebugId, ObjectError> {
    let bytes = source.read_range(0, source.len().min(MAX_FIRST_LINE))?;
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let id = words(line.strip_prefix(MAGIC).ok_or(ObjectError::NotAnObject)?).nth(2);
    let id = id.and_then(|id| DebugId::from_breakpad(std::str::from_utf8(id).ok()?));
    id.ok_or_else(|| ObjectError::Malformed { part: "symbol file", reason: "it has no id".to_owned() })
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| matches!(byte, b' ' | b'\r')).filter(|word| !word.is_empty())
}

fn hex(word: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok()
}

fn decimal(word: &[u8]) -> Option<u64> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

/// Reads words from the front of a line.
struct RecordFields<'a> {
    rest: &'a [u8],
}

impl<'a> RecordFields<'a> {
    fn word(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest.trim_ascii_start();
        let end = rest.iter().position(|byte| *byte == b' ').unwrap_or(rest.len());
        let (word, rest) = rest.split_at(end);
        self.rest = rest;
        (!word.is_empty()).then_some(word)
    }

    fn hex(&mut self) -> Option<u64> {
        hex(self.word()?)
    }

    fn decimal(&mut self) -> Option<u64> {
        decimal(self.word()?)
    }

    /// Skips `m`, which means that several symbols were folded into this one.
    fn skip_multiple(&mut self) {
        let rest = self.rest.trim_ascii_start();
        if let Some(after) = rest.strip_prefix(b"m ") {
            self.rest = after;
        }
    }

    /// The rest of the line: a name, which may contain spaces.
    fn name(&self, bytes: &[u8]) -> Range<usize> {
        let name = self.rest.trim_ascii();
        let start = name.as_ptr().addr().saturating_sub(bytes.as_ptr().addr());
        start..start + name.len()
    }
}

impl Breakpad {
    /// Reads the file and finds its functions. `image_base` is subtracted from requested addresses.
    pub(crate) fn open(source: &SharedSource, image_base: Svma) -> Result<Self, ObjectError> {
        debug_id(source)?;
        let bytes = source.read_range(0, source.len())?;
        let mut symbols = Self {
            bytes: Vec::new(),
            image_base: image_base.0,
            functions: Vec::new(),
            publics: Vec::new(),
            files: FxHashMap::default(),
            origins: FxHashMap::default(),
        };
        let mut at = 0;
        for line in bytes.split(|byte| *byte == b'\n') {
            symbols.add_line(line, at, &bytes);
            at += line.len() + 1;
        }
        symbols.end_function(bytes.len());
        symbols.functions.sort_by_key(|function| function.start);
        symbols.bytes = bytes;
        Ok(symbols)
    }

    /// Adds the record of a line. Damaged lines are ignored.
    fn add_line(&mut self, line: &[u8], at: usize, bytes: &[u8]) -> Option<()> {
        let mut fields = RecordFields { rest: line };
        match fields.word()? {
            b"FUNC" => {
                self.end_function(at);
                fields.skip_multiple();
                let (start, size) = (fields.hex()?, fields.hex()?);
                fields.word()?;
                let end = start.checked_add(size)?;
                let body = at + line.len()..bytes.len();
                self.functions.push(BreakpadFunction { start, end, name: fields.name(bytes), body });
            }
            b"PUBLIC" => {
                self.end_function(at);
                fields.skip_multiple();
                let start = fields.hex()?;
                fields.word()?;
                self.publics.push((start, fields.name(bytes)));
            }
            b"FILE" => {
                let number = fields.decimal()?;
                self.files.insert(number, text(fields.rest.trim_ascii()).into());
            }
            b"INLINE_ORIGIN" => {
                fields.skip_multiple();
                let number = fields.decimal()?;
                self.origins.insert(number, fields.name(bytes));
            }
            b"STACK" | b"INFO" => self.end_function(at),
            // A function's own lines are read when they are needed.
            _ => {}
        }
        Some(())
    }

    /// A function's lines end where the next record of another kind begins.
    fn end_function(&mut self, at: usize) {
        if let Some(last) = self.functions.last_mut() {
            last.body.end = last.body.end.min(at.max(last.body.start));
        }
    }

    fn name(&self, name: &Range<usize>) -> Arc<str> {
        readable(&text(self.bytes.get(name.clone()).unwrap_or_default())).into()
    }

    /// The index of the function around an address.
    pub(crate) fn unit_of(&self, address: u64) -> Option<u64> {
        let address = address.checked_sub(self.image_base)?;
        let after = self.functions.partition_point(|function| function.start <= address);
        let number = after.checked_sub(1)?;
        (address < self.functions.get(number)?.end).then_some(number as u64)
    }

    /// The symbols without a size, each up to the next symbol or function.
    pub(crate) fn public_functions(&self) -> Vec<(u64, Vec<u8>)> {
        let public = |(start, name): &(u64, Range<usize>)| {
            Some((self.image_base.checked_add(*start)?, self.bytes.get(name.clone())?.to_vec()))
        };
        let functions = self.functions.iter().map(|function| (function.start, function.name.clone()));
        self.publics.iter().cloned().chain(functions).filter_map(|symbol| public(&symbol)).collect()
    }

    /// Answers for `requested`, addresses in one function, in their order.
    pub(crate) fn look_up(
        &self,
        unit: u64,
        requested: &[u64],
        allowance: &mut Allowance,
    ) -> Vec<DebugAnswer> {
        let function = usize::try_from(unit).ok().and_then(|unit| self.functions.get(unit));
        let Some(function) = function else { return vec![DebugAnswer::default(); requested.len()] };
        let body = FunctionLines::parse(self.bytes.get(function.body.clone()).unwrap_or_default());
        let name = self.name(&function.name);
        let [start, end] = [function.start, function.end].map(|at| Svma(self.image_base.wrapping_add(at)));
        let answer = |address: &u64| DebugAnswer {
            frames: self.chain(&body, &name, address.wrapping_sub(self.image_base)),
            is_complete: true,
            function: Some(start..end),
        };
        requested.iter().map(answer).map(|found| allowance.admitted(found)).collect()
    }

    /// The frames at an address, the innermost first. Each inlined call states the place that it was called
    /// from.
    fn chain(&self, body: &FunctionLines, name: &Arc<str>, address: u64) -> Vec<SourceFrame> {
        let mut frames = vec![(Some(name.clone()), None)];
        for call in body.calls_around(address) {
            if let Some((_, place)) = frames.last_mut() {
                *place = Some(call.place);
            }
            frames.push((self.origins.get(&call.origin).map(|name| self.name(name)), None));
        }
        if let Some((_, place)) = frames.last_mut() {
            *place = body.place_of(address);
        }
        let frame = |(function, place): (Option<Arc<str>>, Option<(u64, u64)>)| SourceFrame {
            function,
            file: place.and_then(|(file, _)| self.files.get(&file).cloned()),
            line: place.and_then(|(_, line)| u32::try_from(line).ok()).filter(|line| *line != 0),
            ..SourceFrame::default()
        };
        frames.into_iter().rev().map(frame).collect()
    }

    /// Whether the file names a source file.
    pub(crate) fn names_source(&self, is_it: &mut dyn FnMut(&str) -> bool) -> bool {
        self.files.values().any(|name| is_it(name))
    }

    /// The public symbols as ranges of code.
    pub(crate) fn named_ranges(&self) -> Vec<NamedRange> {
        // The file does not state the end of the code. No image is larger than this.
        let image = self.image_base..self.image_base.saturating_add(1 << 32);
        up_to_next(self.public_functions(), std::slice::from_ref(&image))
    }
}

/// An inlined call.
#[derive(Clone, Copy, Debug)]
struct InlineRecord {
    depth: usize,
    /// The place that it was called from: a file and a line.
    place: (u64, u64),
    origin: u64,
    start: u64,
    end: u64,
}

/// The lines of a function, and the calls that were inlined into it.
#[derive(Debug, Default)]
struct FunctionLines {
    /// Start, end, file and line, by address.
    lines: Vec<[u64; 4]>,
    calls: Vec<InlineRecord>,
}

impl FunctionLines {
    fn parse(bytes: &[u8]) -> Self {
        let mut body = Self::default();
        for line in bytes.split(|byte| *byte == b'\n') {
            body.add_line(line);
        }
        body.lines.sort_unstable();
        body.calls.sort_by_key(|call| call.depth);
        body
    }

    fn add_line(&mut self, line: &[u8]) -> Option<()> {
        let mut words = words(line);
        let first = words.next()?;
        if first != b"INLINE" {
            let (start, size) = (hex(first)?, hex(words.next()?)?);
            let (line, file) = (decimal(words.next()?)?, decimal(words.next()?)?);
            self.lines.push([start, start.checked_add(size)?, file, line]);
            return Some(());
        }
        let depth =
            usize::try_from(decimal(words.next()?)?).ok().filter(|depth| *depth < MAX_INLINE_DEPTH)?;
        let (line, file) = (decimal(words.next()?)?, decimal(words.next()?)?);
        let origin = decimal(words.next()?)?;
        while let Some((start, size)) = words.next().zip(words.next()) {
            let start = hex(start)?;
            let end = start.checked_add(hex(size)?)?;
            self.calls.push(InlineRecord { depth, place: (file, line), origin, start, end });
        }
        Some(())
    }

    /// The calls around an address, the outermost first, one for each depth.
    fn calls_around(&self, address: u64) -> impl Iterator<Item = &InlineRecord> {
        let around = move |call: &&InlineRecord| call.start <= address && address < call.end;
        let mut depth = 0;
        self.calls.iter().filter(around).filter(move |call| {
            let is_next = call.depth == depth;
            depth += usize::from(is_next);
            is_next
        })
    }

    /// The file and line of an address.
    fn place_of(&self, address: u64) -> Option<(u64, u64)> {
        let after = self.lines.partition_point(|[start, ..]| *start <= address);
        let [_, end, file, line] = *self.lines.get(after.checked_sub(1)?)?;
        (address < end).then_some((file, line))
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl std::fmt::Debug for Breakpad {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Breakpad").field("functions", &self.functions.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "MODULE windows x86_64 6C974EBE5232EE469D6B7847A670B2A91 app.pdb\r
INFO CODE_ID 5CA12C433000 app.exe
FILE 0 C:\\src\\a file.c
FILE 1 /src/b.h
INLINE_ORIGIN 0 inner(int)
INLINE_ORIGIN 1 middle
FUNC 1000 20 0 outer(int, char)
INLINE 0 11 0 1 1004 8 1018 4
INLINE 1 22 1 0 1006 2
1000 4 10 0
1004 8 20 1
100c c 12 0
1018 4 21 1
FUNC m 1040 10 0 _ZN3foo3barEv
1040 10 5 1
PUBLIC 1080 0 exported
PUBLIC m 10a0 0 last
STACK CFI INIT 1000 20 .cfa: $rsp 8 +
damaged line
FUNC 10 nothing
";

    fn open(text: &str) -> Result<Breakpad, ObjectError> {
        Breakpad::open(&(Arc::new(text.as_bytes().to_vec()) as SharedSource), Svma(0x10_0000))
    }

    fn frames(symbols: &Breakpad, address: u64) -> Vec<(String, String, u32)> {
        let Some(unit) = symbols.unit_of(address) else { return Vec::new() };
        let found = symbols.look_up(unit, &[address], &mut Allowance::default()).remove(0);
        let text = |text: Option<Arc<str>>| text.map(|text| text.to_string()).unwrap_or_default();
        let frame = |frame: SourceFrame| (text(frame.function), text(frame.file), frame.line.unwrap_or(0));
        found.frames.into_iter().map(frame).collect()
    }

    fn check(address: u64, expected: &[(&str, &str, u32)]) {
        let found = frames(&open(FILE).unwrap(), 0x10_0000 + address);
        let found: Vec<_> = found.iter().map(|(name, file, line)| (&**name, &**file, *line)).collect();
        assert_eq!(found, expected, "{address:#x}");
    }

    #[test]
    fn functions_lines_and_inlined_calls() {
        let (a, b) = ("C:\\src\\a file.c", "/src/b.h");
        check(0x1000, &[("outer(int, char)", a, 10)]);
        check(0x1004, &[("middle", b, 20), ("outer(int, char)", a, 11)]);
        check(0x1007, &[("inner(int)", b, 20), ("middle", b, 22), ("outer(int, char)", a, 11)]);
        check(0x1018, &[("middle", b, 21), ("outer(int, char)", a, 11)]);
        check(0x101c, &[("outer(int, char)", "", 0)]);
        check(0x1048, &[("foo::bar()", b, 5)]);
        check(0xfff, &[]);
        check(0x1020, &[]);
    }

    #[test]
    fn public_symbols_reach_to_the_next_symbol() {
        let ranges = open(FILE).unwrap().named_ranges();
        let found = ranges.iter().find(|range| range.name == b"exported").unwrap();
        assert_eq!((found.start, found.end), (0x10_1080, 0x10_10a0));
    }

    #[test]
    fn the_first_line_has_the_id() {
        let id = |text: &str| {
            debug_id(&(Arc::new(text.as_bytes().to_vec()) as SharedSource)).map(|id| id.breakpad())
        };
        assert_eq!(id(FILE).unwrap(), "6C974EBE5232EE469D6B7847A670B2A91");
        for wrong in ["", "MODULE", "MODULE a b\nc d", "MODULE windows x86_64 6C97 app.pdb", "FUNC 1 2 3 4"] {
            assert!(id(wrong).is_err(), "{wrong}");
            assert!(open(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn absurd_numbers_are_left_out() {
        let head = FILE.lines().next().unwrap();
        let text = format!(
            "{head}\nFUNC ffffffffffffffff 10 0 f\nFUNC 1000 10 0 g\nINLINE 99999999999 1 1 1 1000 10\n\
             INLINE 0 1 1 7 ffffffffffffffff ffff\nffffffffffffffff ff 1 1\n1000 8 99999999999 7\n"
        );
        assert_eq!(frames(&open(&text).unwrap(), 0x10_1000), [("g".to_owned(), String::new(), 0)]);
    }
}
