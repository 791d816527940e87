//! Austin's text, with a line for each sample of a Python program: `P42;T0:43;file:function:line;... 1000`.
//!
//! It is described in its README (<https://github.com/P403n1x87/austin>, output).

use nyquist_profile::StackId;

use super::samples::{AustinMode, AustinSamples, SampleValue, requested};
use crate::error::{ImportedProfile, ReadError};
use crate::import::CodePosition;

const FORMAT: &str = "a file of Austin";

/// Whether a line is a sample.
pub(crate) fn is_sample(line: &str) -> bool {
    let rest = line.strip_prefix('P').and_then(|rest| rest.split_once(";T"));
    rest.is_some_and(|(pid, rest)| {
        !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit()) && rest.contains(' ')
    })
}

/// Reads the samples: wall time, CPU time or bytes, according to the file's mode. Samples of the mode `full`
/// have all values, and CPU time is read, with waiting if a thread was idle.
///
/// # Errors
/// If no line is a sample.
pub fn read(bytes: &[u8]) -> Result<ImportedProfile, ReadError> {
    read_value(bytes, None)
}

/// As [`read`], for the value with this name: `cpu`, `wall` or `memory`.
///
/// # Errors
/// As there, and if there is no such value.
pub fn read_value(bytes: &[u8], name: Option<&str>) -> Result<ImportedProfile, ReadError> {
    let lines = || bytes.split(|&byte| byte == b'\n').map(String::from_utf8_lossy);
    let mode = mode(lines());
    let (requested, measure) = requested(mode, name)?;
    let mut reader = AustinTextReader { samples: AustinSamples::new(measure), mode, requested };
    let mut others = 0;
    for line in lines() {
        let line = line.trim_end();
        if !line.is_empty() && !line.starts_with('#') && reader.read_sample(line).is_none() {
            others += 1;
        }
    }
    let is_cut = others > 0 && !bytes.ends_with(b"\n");
    let others = others - u64::from(is_cut);
    reader.samples.finish(
        FORMAT,
        is_cut.then(|| "its last line".into()),
        &[(others, "lines that are not samples")],
    )
}

/// The file's mode. Old files have no such line, and more than one number means `full`. `mojo2austin` of
/// austin-python keeps only the time of samples of this mode.
fn mode<'a>(lines: impl Iterator<Item = std::borrow::Cow<'a, str>>) -> AustinMode {
    let mut declared = None;
    for line in lines {
        if let Some(mode) = line.strip_prefix("# mode:") {
            declared = Some(AustinMode::of(mode));
        } else if is_sample(&line) {
            let metrics = line.trim_end().rsplit(' ').next().unwrap_or_default();
            return match declared {
                Some(mode) if mode != AustinMode::Full => mode,
                _ if metrics.contains(',') => AustinMode::Full,
                _ => AustinMode::Wall,
            };
        }
    }
    declared.unwrap_or_default()
}

struct AustinTextReader {
    samples: AustinSamples,
    mode: AustinMode,
    requested: SampleValue,
}

impl AustinTextReader {
    fn read_sample(&mut self, line: &str) -> Option<()> {
        if !is_sample(line) {
            return None;
        }
        let (stack, metrics) = line.rsplit_once(' ')?;
        let (amount, off_cpu) = self.amount(metrics)?;
        let mut parts = stack.split(';');
        let pid = parts.next()?.strip_prefix('P')?;
        let tid = parts.next()?.strip_prefix('T')?;
        // The interpreter's number precedes the thread's number.
        let tid = tid.rsplit(':').next().unwrap_or(tid);
        let stack =
            parts.filter(|part| !part.is_empty()).fold(None, |prefix, part| Some(self.push(prefix, part)));
        self.samples.add((pid, tid), (stack, off_cpu), amount);
        Some(())
    }

    /// The amount of a sample, and whether it is waiting.
    fn amount(&self, metrics: &str) -> Option<(i64, bool)> {
        let mut numbers = metrics.split(',');
        let mut number = || numbers.next()?.parse::<i64>().ok();
        let first = number()?;
        if self.mode != AustinMode::Full {
            return Some((first, false));
        }
        let (idle, memory) = (number()?, number()?);
        Some(match self.requested {
            SampleValue::Cpu => (first, idle != 0),
            SampleValue::Time => (first, false),
            SampleValue::Memory => (memory, false),
        })
    }

    /// Adds a frame in the form `file:function:line`. A file name may contain colons.
    fn push(&mut self, prefix: Option<StackId>, text: &str) -> StackId {
        let parts = text.rsplit_once(':').and_then(|(rest, line)| {
            let (file, name) = rest.rsplit_once(':')?;
            Some((file, name, line.parse::<u32>().ok()?))
        });
        let code = match parts {
            Some((file, name, line)) if !name.is_empty() => CodePosition {
                name,
                file: Some(file),
                line: Some(line),
                is_kernel: file == "kernel",
                ..CodePosition::default()
            },
            // An activity of the interpreter: `:GC:`.
            _ => CodePosition { name: text.trim_matches(':'), ..CodePosition::default() },
        };
        let frame = self.samples.importer.frame(&code);
        self.samples.importer.stack(prefix, frame)
    }
}

#[cfg(test)]
mod tests {
    use nyquist_profile::{Measure, Unit};

    use super::*;
    use crate::test_profile::{stacks_of, waits_of};

    const FULL: &str = "# austin: 3.6.0\n# interval: 1000\n# mode: full\n\n\
        P7;T0:7;/a.py:<module>:1;C:\\b.py:work:9 2000,0,4096\n\
        P7;T0:7;/a.py:<module>:1;:GC: 1000,0,-512\n\
        P7;T0:9 3000,1,0\n\n# duration: 6000\n";

    #[test]
    fn full_samples_are_cpu_time_and_waiting() {
        let profile = read(FULL.as_bytes()).unwrap().profile;
        assert_eq!(stacks_of(&profile), ["<module>;GC 1", "<module>;work 2"]);
        assert_eq!(waits_of(&profile), [" 3"]);
        assert!(profile.meta().measure.is_cpu_time() && profile.meta().interval == 1_000_000);
        let work = profile.frames().iter().find(|frame| profile.func_name(frame.func) == "work").unwrap();
        let file = profile.string(profile.source(profile.frame_source(work).unwrap()).filename);
        assert_eq!((file, work.line), ("C:\\b.py", Some(9)));
        let threads: Vec<_> = profile.threads().iter().map(|thread| &*thread.tid).collect();
        assert_eq!(threads, ["7", "9"]);
    }

    #[test]
    fn wall_time_and_memory_can_be_requested() {
        let wall = read_value(FULL.as_bytes(), Some("wall")).unwrap().profile;
        assert_eq!(stacks_of(&wall), [" 3", "<module>;GC 1", "<module>;work 2"]);
        assert_eq!(&*wall.meta().measure.name, "wall time");
        let memory = read_value(FULL.as_bytes(), Some("memory")).unwrap();
        assert_eq!((stacks_of(&memory.profile), memory.notes.len()), (vec!["<module>;work 1".into()], 1));
        assert_eq!((memory.profile.meta().interval, memory.profile.meta().measure.unit), (4096, Unit::Bytes));
    }

    #[test]
    fn the_mode_says_what_is_counted() {
        let of = |head: &str| {
            let text = format!("{head}P7;T7;a.py:f:3 250\n");
            read(text.as_bytes()).unwrap().profile.meta().measure.clone()
        };
        assert_eq!(of("# mode: cpu\n"), Measure::default());
        assert_eq!(of(""), Measure { name: "wall time".into(), unit: Unit::Time });
        assert_eq!(of("# mode: memory\n").unit, Unit::Bytes);
        assert_eq!(&*of("# mode: full\n").name, "wall time");
        assert!(read_value(b"P7;T7;a.py:f:3 250\n", Some("memory")).is_err());
        assert!(read(b"# mode: cpu\nmain;x 3\n").is_err());
    }
}
