//! Stacks with counts in the map output of DTrace and bpftrace, with a line for each frame, the innermost
//! first.
//!
//! DTrace (`@[ustack()] = count()`) has a line with the count after each stack; bpftrace (`@[ustack, comm] =
//! count()`) has them in `@[` and `]: 17`, with other keys in between (<https://illumos.org/books/dtrace/>,
//! <https://github.com/bpftrace/bpftrace/blob/master/docs/language.adoc>).

use nyquist_profile::{StackId, Unit};
use rustc_hash::FxHashMap;

use crate::error::{ImportedProfile, ReadError};
use crate::import::{CodePosition, Importer, ThreadName};
use crate::values::{SampleQueue, SampleValueKind, choose};

const DTRACE: &str = "the output of DTrace";
const BPFTRACE: &str = "the output of bpftrace";

/// The frame of what was counted with an empty stack.
const NO_STACK: &str = "[no stack]";

/// Whether the lines are maps of bpftrace with stacks.
pub(crate) fn is_bpftrace(lines: &[&str]) -> bool {
    let begin = lines.iter().position(|line| begins_map(line).is_some());
    let has_end = |line: &str| split_end(line).is_some();
    begin.is_some_and(|begin| lines[begin..].iter().any(|line| has_end(line) || line.starts_with("    ")))
}

/// Whether the lines are stacks of DTrace: functions after their module's name, and a count on a separate
/// line.
pub(crate) fn is_dtrace(lines: &[&str]) -> bool {
    let is_frame = |line: &str| {
        let line = line.trim();
        line.contains('`') && !line.contains(' ') && !line.contains(';')
    };
    let frames = lines.iter().filter(|line| is_frame(line)).count();
    frames > 0 && lines.windows(2).any(|pair| is_frame(pair[0]) && is_count(pair[1]))
        || frames * 2 >= lines.len() && frames > 1
}

/// Whether a line is a frame, which is indented more than a key.
fn is_dtrace_frame(line: &str) -> bool {
    const KEYS: usize = 8;
    let frame = line.trim_start();
    line.len() - frame.len() >= KEYS
        || line.starts_with('\t')
        || frame.contains('`')
        || frame.starts_with("0x")
}

fn is_count(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit())
}

/// The name of the map and the text after its bracket, if a line begins an entry of several lines.
fn begins_map(line: &str) -> Option<(&str, &str)> {
    let (name, rest) = line.strip_prefix('@')?.split_once('[')?;
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    (is_name && split_end(line).is_none()).then_some((name, rest))
}

/// The name of the map, the keys and the count, if a line is a whole entry: `@[]: 17`, `@calls[bash, 7]: 3`.
fn whole_entry(line: &str) -> Option<(&str, &str, u64)> {
    let (entry, count) = split_end(line)?;
    let (name, keys) = entry.strip_prefix('@')?.split_once('[')?;
    Some((name, keys, count))
}

/// The text before `]: 17`, and the count.
fn split_end(line: &str) -> Option<(&str, u64)> {
    let (keys, count) = line.trim_end().rsplit_once("]: ")?;
    Some((keys, count.parse().ok()?))
}

/// Reads stacks of DTrace. The probe determines the meaning of the counts.
///
/// # Errors
/// If there is no stack with a count.
pub fn read_dtrace(bytes: &[u8]) -> Result<ImportedProfile, ReadError> {
    let text = String::from_utf8_lossy(bytes);
    let mut reader = StackCountReader::new("DTrace", &SampleValueKind::new("count", Unit::Count));
    let mut entry = StackEntry::default();
    for line in text.lines() {
        if is_count(line) {
            let count = line.trim().parse().unwrap_or(u64::MAX);
            reader.add(&std::mem::take(&mut entry), count);
        } else if line.trim().is_empty() {
            // An empty line separates a stack of the kernel and one of the program.
        } else if is_dtrace_frame(line) {
            entry.frames.push((line.trim(), false));
        } else if line.starts_with(' ') {
            entry.keys.extend(line.split("  ").map(str::trim).filter(|key| !key.is_empty()));
        } else {
            // A heading.
            entry = StackEntry::default();
        }
    }
    reader.finish(DTRACE)
}

/// Reads a map of bpftrace: the one with this name, including its `@`, or by default the first one. Of two
/// stacks, the first one is treated as that of the kernel.
///
/// # Errors
/// If there is no stack with a count, or no map of that name.
pub fn read_bpftrace(bytes: &[u8], name: Option<&str>) -> Result<ImportedProfile, ReadError> {
    let text = String::from_utf8_lossy(bytes);
    let mut names: Vec<SampleValueKind> = Vec::new();
    for (name, _) in text.lines().filter_map(begins_map) {
        // Maps are printed one after the other.
        if names.last().is_none_or(|last| last.name.strip_prefix('@') != Some(name)) {
            names.push(SampleValueKind::new(&format!("@{name}"), Unit::Count));
        }
    }
    if names.is_empty() {
        return Err(malformed(BPFTRACE));
    }
    let at = choose(&names, name, 0)?;
    let requested = names[at].clone();
    let mut reader = StackCountReader::new("bpftrace", &requested);
    let mut entry: Option<StackEntry<'_>> = None;
    let is_requested = |name| requested.name.strip_prefix('@') == Some(name);
    for line in text.lines() {
        if let Some((name, rest)) = begins_map(line) {
            entry = is_requested(name).then(StackEntry::default);
            if let Some(entry) = &mut entry {
                entry.add_keys(rest);
            }
        } else if let Some((name, keys, count)) = whole_entry(line) {
            // An entry whose stacks are all empty takes one line.
            if is_requested(name) {
                let mut entry = StackEntry::default();
                entry.add_keys(keys);
                reader.add(&entry, count);
            }
        } else if let Some((keys, count)) = split_end(line) {
            if let Some(mut entry) = entry.take() {
                entry.add_keys(keys);
                reader.add(&entry, count);
            }
        } else if let Some(entry) = &mut entry {
            entry.add_line(line);
        }
    }
    reader.finish(BPFTRACE)
}

fn malformed(format: &'static str) -> ReadError {
    ReadError::Malformed { format, problem: "it has no stack with a count".into() }
}

/// A stack, with the other keys of its entry.
#[derive(Default)]
struct StackEntry<'a> {
    /// The frames, the innermost first, each with whether it is of the first of several stacks.
    frames: Vec<(&'a str, bool)>,
    keys: Vec<&'a str>,
    /// The number of frames before the next stack began.
    first_stack: Option<usize>,
}

impl<'a> StackEntry<'a> {
    /// Adds a line within the brackets: a frame, or the separator of two stacks.
    fn add_line(&mut self, line: &'a str) {
        if line.starts_with([' ', '\t']) && !line.trim().is_empty() {
            self.frames.push((line.trim(), false));
        } else {
            self.add_keys(line);
        }
    }

    /// Adds keys between commas. An empty key is an empty stack, or the separator of two stacks.
    fn add_keys(&mut self, text: &'a str) {
        let keys = text.split(',').map(str::trim).filter(|key| !key.is_empty());
        let before = self.keys.len();
        self.keys.extend(keys);
        if self.keys.len() == before && text.contains(',') {
            self.first_stack.get_or_insert(self.frames.len());
        }
    }

    /// The frames, each with whether it is of the kernel's stack, which is the first of two.
    fn mark_first_stack(&self) -> impl Iterator<Item = (&'a str, bool)> {
        let first = self.first_stack.filter(|&first| first < self.frames.len()).unwrap_or(0);
        self.frames.iter().enumerate().map(move |(at, &(frame, _))| (frame, at < first))
    }
}

struct StackCountReader {
    importer: Importer,
    product: &'static str,
    queues: FxHashMap<(String, String), SampleQueue>,
    stacks: u64,
}

impl StackCountReader {
    fn new(product: &'static str, value: &SampleValueKind) -> Self {
        let mut importer = Importer::new(product, product);
        importer.meta_mut().measure = value.measure();
        Self { importer, product, queues: FxHashMap::default(), stacks: 0 }
    }

    fn add(&mut self, entry: &StackEntry<'_>, count: u64) {
        self.stacks += u64::from(!entry.frames.is_empty());
        let mut frames: Vec<_> = entry.mark_first_stack().collect();
        if frames.is_empty() {
            frames.push((NO_STACK, false));
        }
        let stack = frames
            .iter()
            .rev()
            .fold(None, |prefix, &(frame, is_kernel)| Some(self.push(prefix, frame, is_kernel)));
        // A number among the keys is that of a process, and a text is a name.
        let is_number = |key: &&str| key.bytes().all(|byte| byte.is_ascii_digit());
        let pid = entry.keys.iter().copied().find(is_number).unwrap_or("0");
        let names: Vec<_> = entry.keys.iter().copied().filter(|key| !is_number(key)).collect();
        let name = if names.is_empty() { self.product.to_owned() } else { names.join(", ") };
        let pid = if pid == "0" && !names.is_empty() { &name } else { pid };
        let importer = &mut self.importer;
        let queue = self.queues.entry((pid.to_owned(), name.clone())).or_insert_with(|| {
            let thread = ThreadName { pid, process: &name, tid: pid, thread: &name };
            SampleQueue::new(importer.thread(thread))
        });
        queue.add(&mut self.importer, stack, count);
    }

    fn push(&mut self, prefix: Option<StackId>, text: &str, is_kernel: bool) -> StackId {
        let (lib, name) = split_frame(text);
        let lib = lib.map(|lib| self.importer.lib(lib, None));
        let frame = self.importer.frame(&CodePosition { name, lib, is_kernel, ..CodePosition::default() });
        self.importer.stack(prefix, frame)
    }

    fn finish(self, format: &'static str) -> Result<ImportedProfile, ReadError> {
        if self.stacks == 0 { Err(malformed(format)) } else { Ok(self.importer.finish(None)) }
    }
}

/// The lib and the function of a frame: ``libc.so.1`read+0x7``, `read+7`, `7f00 read+7 (/lib/libc.so)`,
/// `0x7f00`.
fn split_frame(text: &str) -> (Option<&str>, &str) {
    if let Some((rest, lib)) = text.strip_suffix(')').and_then(|text| text.rsplit_once(" ("))
        && let Some((address, name)) = rest.split_once(' ')
        && address.bytes().all(|byte| byte.is_ascii_hexdigit())
    {
        return (Some(lib).filter(|lib| *lib != "[unknown]"), without_offset(name));
    }
    match text.split_once('`') {
        Some((lib, name)) if !lib.is_empty() => (Some(lib), without_offset(name)),
        _ => (None, without_offset(text)),
    }
}

fn without_offset(name: &str) -> &str {
    match name.rsplit_once('+') {
        Some((shorter, offset)) if !shorter.is_empty() => {
            let digits = offset.strip_prefix("0x").unwrap_or(offset);
            let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
            if is_number { shorter } else { name }
        }
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_profile::stacks_of;

    fn lines(text: &str) -> Vec<&str> {
        text.lines().filter(|line| !line.trim().is_empty()).collect()
    }

    const STACKS: &str = "CPU     ID                    FUNCTION:NAME\n\n\n              libc.so.1`__read+0x7\n              app`main+0x1b\n              app`_start+0x83\n               17\n\n\n\
        \x20 bash                   \n              unix`idle+0x10\n\n              app`operator++\n              0x1234\n                3\n";

    #[test]
    fn stacks_of_dtrace_have_their_counts_behind() {
        assert!(is_dtrace(&lines(STACKS)) && !is_dtrace(&lines("a`b;c`d 3\na 4\n")));
        let profile = read_dtrace(STACKS.as_bytes()).unwrap().profile;
        assert_eq!(stacks_of(&profile), ["0x1234;operator++;idle 3", "_start;main;__read 17"]);
        assert_eq!((profile.meta().measure.unit, profile.meta().interval), (Unit::Count, 1));
        let libs: Vec<_> = profile.libs().iter().map(|lib| &*lib.name).collect();
        assert_eq!(libs, ["app", "libc.so.1", "unix"]);
        let processes: Vec<_> = profile.processes().iter().map(|it| &*it.name).collect();
        assert_eq!(processes, ["DTrace", "bash"]);
        assert!(read_dtrace(b"no stack\n").is_err());
    }

    /// The counts of bpftrace's own lines add up to 14.
    #[test]
    fn what_has_an_empty_stack_is_counted() {
        let text = "@[\n    main+1\n]: 3\n@[]: 8\n@calls[7]: 100\n@[, bash]: 2\n@[\n, sh]: 1\n";
        let profile = read_bpftrace(text.as_bytes(), None).unwrap().profile;
        assert_eq!(stacks_of(&profile), ["[no stack] 11", "main 3"]);
        let processes: Vec<_> = profile.processes().iter().map(|it| &*it.name).collect();
        assert_eq!(processes, ["bpftrace", "bash", "sh"]);
        let of_dtrace = "\n   app`main+0x1b\n   17\n\n   5\n";
        let profile = read_dtrace(of_dtrace.as_bytes()).unwrap().profile;
        assert_eq!(stacks_of(&profile), ["[no stack] 5", "main 17"]);
    }

    const MAPS: &str = "Attaching 2 probes...\n\n@calls: 3\n@[\n    schedule+35\n    do_exit+9\n,\n    0x7f60\n    a::b(int, char)+12\n, rustc, 42]: 5\n\
        @[, \n    main+1\n, sh, 7]: 2\n@u[\n\t7f00 read+7 (/lib/libc.so.6)\n\t0 [unknown] ([unknown])\n]: 9\n";

    #[test]
    fn maps_of_bpftrace_are_distinguished() {
        assert!(is_bpftrace(&lines(MAPS)) && !is_bpftrace(&lines("@calls: 3\n@x[1, 2]: 5\n")));
        let profile = read_bpftrace(MAPS.as_bytes(), None).unwrap().profile;
        assert_eq!(stacks_of(&profile), ["a::b(int, char);0x7f60;do_exit;schedule 5", "main 2"]);
        let processes: Vec<_> = profile.processes().iter().map(|it| (&*it.pid, &*it.name)).collect();
        assert_eq!(processes, [("42", "rustc"), ("7", "sh")]);
        let kernel: Vec<_> = profile
            .frames()
            .iter()
            .filter(|frame| profile.category(frame.category.unwrap().category).name == "Kernel")
            .map(|frame| profile.func_name(frame.func))
            .collect();
        assert_eq!(kernel, ["do_exit", "schedule"]);
        let other = read_bpftrace(MAPS.as_bytes(), Some("@u")).unwrap().profile;
        assert_eq!((stacks_of(&other), &*other.meta().measure.name), (vec!["[unknown];read 1".into()], "@u"));
        assert!(read_bpftrace(MAPS.as_bytes(), Some("@x")).is_err());
    }
}
