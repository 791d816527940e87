//! V8's log (`node --prof`, `d8 --prof`): code as it is made, moved and collected, and ticks with addresses.
//!
//! The lines are described by the comments of V8's `src/logging/log.cc` and by <https://v8.dev/docs/profile>.

use std::collections::BTreeMap;

use nyquist_profile::{FrameId, FuncKind, LibId, StackId, ThreadIndex, Unit};
use rustc_hash::FxHashMap;

use crate::error::{ImportedProfile, Note, ReadError};
use crate::import::{CodePosition, Importer, ThreadName};
use crate::values::SampleValueKind;

const FORMAT: &str = "a log of V8";

/// What a tick found V8 to be doing, if that is no call: collecting garbage.
const COLLECTING: u32 = 1;

/// The frame of it, as in V8's CPU profiles.
const COLLECTOR: &str = "(garbage collector)";

/// Whether a text begins like such a log.
pub(crate) fn is_log(first: &str) -> bool {
    let mut fields = first.split(',');
    fields.next() == Some("v8-version") && fields.next().is_some_and(|major| major.parse::<u32>().is_ok())
}

/// Reads the ticks: each counts one, as in `node --prof-process`. The interval states how often V8's thread was
/// interrupted, whether it ran or not, so that this is no CPU time.
///
/// # Errors
/// If no line is a tick.
pub fn read(bytes: &[u8]) -> Result<ImportedProfile, ReadError> {
    let text = String::from_utf8_lossy(bytes);
    let mut importer = Importer::new("JavaScript", "V8's log");
    importer.meta_mut().measure = SampleValueKind::new("ticks", Unit::Count).measure();
    let name = ThreadName { pid: "0", process: "JavaScript", tid: "0", thread: "JavaScript" };
    let thread = importer.thread(name);
    let mut reader = LogReader {
        importer,
        thread,
        code: BTreeMap::new(),
        libraries: BTreeMap::new(),
        frames: FxHashMap::default(),
        ticks: 0,
        damaged: 0,
    };
    let is_whole = text.ends_with('\n');
    for line in text.lines() {
        if reader.line(line).is_none() {
            reader.damaged += 1;
        }
    }
    let LogReader { mut importer, ticks, mut damaged, .. } = reader;
    if ticks == 0 {
        return Err(ReadError::Malformed { format: FORMAT, problem: "it has no ticks".into() });
    }
    if !is_whole {
        importer.note(Note::Cut { place: "its last line".into() });
        damaged = damaged.saturating_sub(1);
    }
    importer.note_left_out(damaged, "damaged lines");
    Ok(importer.finish(Some(1)))
}

/// Code at an address.
struct CodeRange {
    end: u64,
    frame: FrameId,
}

struct LogReader {
    importer: Importer,
    thread: ThreadIndex,
    /// By first addresses.
    code: BTreeMap<u64, CodeRange>,
    /// The program's files, within which V8's built-in code may be.
    libraries: BTreeMap<u64, CodeRange>,
    /// The frames of addresses without code.
    frames: FxHashMap<u64, FrameId>,
    ticks: u64,
    damaged: u64,
}

impl LogReader {
    /// Takes a line. `None` if it is damaged.
    fn line(&mut self, line: &str) -> Option<()> {
        let mut fields = line.split(',');
        match fields.next()? {
            "shared-library" => {
                let path = unescaped(fields.next()?);
                let (start, end) = (number(fields.next()?)?, number(fields.next()?)?);
                let lib = self.importer.lib(&path, None);
                let frame = self.library(&path, lib);
                // The same file may be stated again, larger.
                self.libraries.insert(start, CodeRange { end, frame });
            }
            "code-creation" => {
                let (kind, _tier, _time) = (fields.next()?, fields.next()?, fields.next()?);
                let (start, size) = (number(fields.next()?)?, fields.next()?.parse::<u64>().ok()?);
                let name = unescaped(fields.next()?);
                let frame = self.function(kind, &name);
                self.add(start, start.checked_add(size)?, frame);
            }
            "code-move" => {
                let (from, to) = (number(fields.next()?)?, number(fields.next()?)?);
                if let Some(CodeRange { end, frame }) = self.code.remove(&from) {
                    self.add(to, to.checked_add(end - from)?, frame);
                }
            }
            "code-delete" => {
                self.code.remove(&number(fields.next()?)?);
            }
            "tick" => self.tick(fields)?,
            _ => {}
        }
        Some(())
    }

    /// Adds code in place of what was there.
    fn add(&mut self, start: u64, end: u64, frame: FrameId) {
        if end <= start {
            return;
        }
        let over: Vec<u64> = self.code.range(start..end).map(|(&at, _)| at).collect();
        for at in over {
            self.code.remove(&at);
        }
        self.code.insert(start, CodeRange { end, frame });
    }

    fn library(&mut self, path: &str, lib: LibId) -> FrameId {
        let name = path.rsplit('/').next().unwrap_or(path);
        self.importer.frame(&CodePosition { name, lib: Some(lib), ..CodePosition::default() })
    }

    /// A function as `run file:///a.js:7:3`. Builtins and stubs have names alone, and regular expressions their text.
    fn function(&mut self, kind: &str, text: &str) -> FrameId {
        let is_script = matches!(kind, "JS" | "Eval" | "Script" | "Function" | "LazyCompile");
        let place = text.rsplit_once(':').and_then(|(rest, column)| {
            let (place, line) = rest.rsplit_once(':')?;
            Some((place, line.parse::<u32>().ok()?, column.parse::<u32>().ok()?))
        });
        let Some((place, line, column)) = place.filter(|_| is_script) else {
            return self.importer.frame(&CodePosition {
                name: text,
                is_jit: true,
                ..CodePosition::default()
            });
        };
        let (name, file) = place.split_once(' ').unwrap_or((place, ""));
        self.importer.frame(&CodePosition {
            name: if name.is_empty() { "(anonymous)" } else { name },
            file: Some(file),
            start_line: Some(line),
            line: Some(line),
            column: Some(column),
            kind: FuncKind::JavaScript,
            ..CodePosition::default()
        })
    }

    /// A tick: the address, the time in µs, whether native code was called, that code or the top of the stack, what
    /// V8 does, and the stack.
    fn tick<'a>(&mut self, mut fields: impl Iterator<Item = &'a str>) -> Option<()> {
        let (address, time) = (number(fields.next()?)?, fields.next()?.parse::<u64>().ok()?);
        let is_external = fields.next()? == "1";
        let (other, state) = (number(fields.next()?)?, fields.next()?.parse::<u32>().ok()?);
        // In native code that JavaScript has called, only that code's beginning is sure.
        let innermost = if is_external { other } else { address };
        let mut addresses = vec![innermost];
        let mut last = innermost;
        for field in fields {
            last = match field.as_bytes().first()? {
                b'+' => last.wrapping_add(number(&field[1..])?),
                b'-' => last.wrapping_sub(number(&field[1..])?),
                // More frames than V8 keeps.
                b'o' => break,
                _ => number(field)?,
            };
            addresses.push(last);
        }
        let mut stack = None;
        for address in addresses.into_iter().rev() {
            stack = Some(self.push(stack, address));
        }
        if state == COLLECTING {
            let frame = self.importer.frame(&CodePosition { name: COLLECTOR, ..CodePosition::default() });
            stack = Some(self.importer.stack(stack, frame));
        }
        self.importer.sample(self.thread, time.saturating_mul(1000), stack, 1);
        self.ticks += 1;
        Some(())
    }

    fn push(&mut self, prefix: Option<StackId>, address: u64) -> StackId {
        let find = |ranges: &BTreeMap<u64, CodeRange>| {
            let (_, code) = ranges.range(..=address).next_back().filter(|(_, code)| address < code.end)?;
            Some(code.frame)
        };
        let frame = match find(&self.code).or_else(|| find(&self.libraries)) {
            Some(frame) => frame,
            None => {
                let importer = &mut self.importer;
                *self.frames.entry(address).or_insert_with(|| {
                    importer
                        .frame(&CodePosition { name: &format!("{address:#x}"), ..CodePosition::default() })
                })
            }
        };
        self.importer.stack(prefix, frame)
    }
}

/// A number as `0x7f00`, or with decimal digits.
fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// A text with its escaped characters: `\x2C`, `\u2026`, `\n` and `\\`.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let digits = match after.as_bytes().first() {
            Some(b'x') => 2,
            Some(b'u') => 4,
            _ => 0,
        };
        let code = after
            .get(1..=digits)
            .and_then(|digits| u32::from_str_radix(digits, 16).ok())
            .and_then(char::from_u32);
        if let Some(letter) = code {
            out.push(letter);
            rest = after.get(1 + digits..).unwrap_or_default();
        } else {
            let mut letters = after.chars();
            out.extend(letters.next().map(|letter| if letter == 'n' { '\n' } else { letter }));
            rest = letters.as_str();
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::test_profile::stacks_of;
    use crate::{Format, detect};

    pub(crate) const LOG: &str = "v8-version,11,3,244,8,-node.38,0\nv8-platform,linux,linux\n\
        shared-library,/usr/lib/libc.so.6,0x7f0000,0x7f9000,0\nshared-library-end\nprofiler,begin,1000\n\
        code-creation,Builtin,2,63841,0x1000,256,JSEntry\n\
        code-creation,JS,10,70000,0x2000,256,run file:///a\\x2Cb.js:7:3,0x99,~\n\
        code-creation,JS,10,70001,0x3000,256, file:///a\\x2Cb.js:9:1,0x9a,*\n\
        tick,0x2010,80000,0,0x0,0,0x1010\n\
        code-move,0x2000,0x8000\n\
        tick,0x3004,81000,0,0x0,0,+0x5004,-0x7000\n\
        tick,0x7f0010,82000,0,0x0,1,0x3010,overflow\n\
        tick,0x5,83000,1,0x7f0020,6\n\
        tick,0x2010,84000,0,0x0,0\n";

    /// `node --prof-process` counts five ticks in this log, one of them unaccounted.
    #[test]
    fn ticks_are_in_the_code_that_is_there() {
        let read = read(LOG.as_bytes()).unwrap();
        assert_eq!(read.notes, []);
        assert_eq!(
            stacks_of(&read.profile),
            [
                "(anonymous);libc.so.6;(garbage collector) 1",
                "0x2010 1",
                "JSEntry;run 1",
                "JSEntry;run;(anonymous) 1",
                "libc.so.6 1"
            ]
        );
        let run = read.profile.frames().iter().find(|it| read.profile.func_name(it.func) == "run").unwrap();
        assert_eq!((run.line, run.column), (Some(7), Some(3)));
        assert_eq!(read.profile.meta().measure.name, "ticks");
        assert_eq!(detect(LOG.as_bytes(), "x"), Some(Format::V8Log));
    }

    #[test]
    fn a_log_that_is_cut_off_says_so() {
        let cut = read(&LOG.as_bytes()[..LOG.len() - 12]).unwrap();
        assert_eq!(cut.notes, [Note::Cut { place: "its last line".into() }]);
        assert!(read(b"v8-version,11,3,244,8,-node.38,0\n").is_err());
    }

    #[test]
    fn escaped_characters_are_read() {
        assert_eq!(unescaped(r"a\x2Cb\\c\nd\u2026\x"), "a,b\\c\nd\u{2026}x");
    }
}
