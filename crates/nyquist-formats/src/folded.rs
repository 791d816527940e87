//! Folded stacks: `process;outer;inner 17`, with a line for each stack, for `flamegraph.pl` and `inferno`.
//!
//! The format is described in the README of <https://github.com/brendangregg/FlameGraph> (stackcollapse).

use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};

use nyquist_profile::{Frame, FrameId, Measure, Profile, Samples, StackId, ThreadIndex, Unit, well_known};
use rustc_hash::FxHashMap;

use crate::error::{ImportedProfile, Note, ReadError};
use crate::hidden;
use crate::import::{CodePosition, Importer, JIT, MILLISECOND, ThreadName};
use crate::select;
use crate::text_lines::each_line;
use crate::values::SampleQueue;

const FORMAT: &str = "a file of folded stacks";

/// The value of [`imported_from`](nyquist_profile::Meta::imported_from) in profiles that were read from such
/// a file.
const IMPORTED: &str = "folded stacks";

/// The marks of stackcollapse-perf.pl for functions of the kernel, of just-in-time compilers, and for inlined
/// ones.
const KERNEL: &str = "_[k]";
const COMPILED: &str = "_[j]";
const INLINED: &str = "_[i]";

/// Options for writing stacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriteOptions {
    /// Whether a thread's name is written between its process and its frames.
    pub thread_names: bool,
    /// Whether each function is preceded by its lib, as ``libc.so.6`write``.
    pub libs: bool,
}

/// Writes one line for each distinct stack, sorted. Its count is the weight in sampling intervals of CPU
/// time, or of waiting if the profile has no CPU time. A profile that was read from folded stacks is written
/// like the original file: without a process, with the annotations of its functions and with its counts.
/// O(samples + stacks × depth).
///
/// # Errors
/// If `out` cannot be written.
pub fn write(profile: &Profile, out: &mut impl Write, options: WriteOptions) -> io::Result<()> {
    let names = frame_names(profile, options);
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    for (index, stacks) in weights(profile) {
        let root = root_name(profile, index, options);
        for (stack, weight) in stacks {
            let sum = lines.entry(line(profile, &root, stack, &names)).or_default();
            *sum = sum.saturating_add(weight);
        }
    }
    for (line, weight) in lines {
        writeln!(out, "{line} {}", count(profile, weight))?;
    }
    Ok(())
}

/// The weights of each thread's stacks; the empty stack is `None`.
fn weights(profile: &Profile) -> Vec<(ThreadIndex, FxHashMap<Option<StackId>, u64>)> {
    let requested = select::one_kind(profile);
    let sum = |samples: &Samples| {
        let mut weights: FxHashMap<_, u64> = FxHashMap::default();
        for sample in samples.iter().filter(|sample| requested(sample)) {
            let sum = weights.entry(sample.stack).or_default();
            *sum = sum.saturating_add(sample.weight);
        }
        weights
    };
    let threads = profile.threads().iter().enumerate();
    threads.map(|(index, thread)| (ThreadIndex::from_index(index), sum(&thread.samples))).collect()
}

fn is_folded(profile: &Profile) -> bool {
    profile.meta().imported_from.as_deref() == Some(IMPORTED)
}

/// The text of a weight: in sampling intervals, in bytes or things if these are counted, or in the unit of
/// the file that the profile was read from.
fn count(profile: &Profile, weight: u64) -> String {
    let interval = profile.meta().interval;
    if profile.meta().measure.unit != Unit::Time {
        return weight.saturating_mul(interval).to_string();
    }
    if is_folded(profile) && interval != MILLISECOND {
        (weight as f64 * interval as f64 / MILLISECOND as f64).to_string()
    } else {
        weight.to_string()
    }
}

fn root_name(profile: &Profile, thread: ThreadIndex, options: WriteOptions) -> String {
    if is_folded(profile) {
        return String::new();
    }
    let thread = profile.thread(thread);
    let process = profile.process(thread.process);
    let name = if process.name.is_empty() { &process.pid } else { &process.name };
    let mut root = sanitize(name);
    if options.thread_names {
        root.push(';');
        root.push_str(&sanitize(if thread.name.is_empty() { &thread.tid } else { &thread.name }));
    }
    root
}

fn frame_names(profile: &Profile, options: WriteOptions) -> Vec<String> {
    let name = |index| {
        let frame = profile.frame(FrameId::from_index(index));
        let func = profile.func(frame.func);
        let annotation = if is_folded(profile) { annotation(profile, frame) } else { "" };
        let name = sanitize(profile.string(func.name)) + annotation;
        match func.lib.filter(|_| options.libs) {
            Some(lib) => format!("{}`{name}", sanitize(&profile.lib(lib).name)),
            None => name,
        }
    };
    (0..profile.frames().len()).map(name).collect()
}

fn annotation(profile: &Profile, frame: &Frame) -> &'static str {
    let category = frame.category.map(|pair| profile.category(pair.category).name.as_str());
    match category {
        _ if frame.inline_depth > 0 => INLINED,
        Some(well_known::KERNEL) => KERNEL,
        Some(JIT) => COMPILED,
        _ => "",
    }
}

fn line(profile: &Profile, root: &str, stack: Option<StackId>, names: &[String]) -> String {
    let mut stacks: Vec<_> = stack.into_iter().flat_map(|stack| profile.ancestors(stack)).collect();
    stacks.reverse();
    let mut line = root.to_owned();
    for stack in stacks {
        if !line.is_empty() {
            line.push(';');
        }
        line.push_str(&names[profile.stack(stack).frame.index()]);
    }
    if line.is_empty() { sanitize("") } else { line }
}

/// A name without the characters that end a frame or a line, and with hidden ones escaped.
fn sanitize(name: &str) -> String {
    let letter = |letter: char| match letter {
        ';' => ':',
        letter if letter.is_control() => ' ',
        letter => letter,
    };
    // A name is trimmed, because a trailing space would be read as the one before the count.
    let name: String = name.trim().chars().map(letter).collect();
    if name.is_empty() { "(unknown)".into() } else { hidden::escape(&name).into_owned() }
}

/// Reads folded stacks. They have no times, threads or processes, so the stacks follow each other on one
/// thread. The unit of the numbers is not stated. Whole numbers are treated as samples, and others as
/// milliseconds. Lines that are no stack are counted and left out.
///
/// # Errors
/// If no line is a stack, or the text cannot be read.
pub fn read(text: impl BufRead) -> Result<ImportedProfile, ReadError> {
    let (mut reader, mut is_whole) = (FoldedReader::new(), true);
    each_line(text, |line, has_end| {
        reader.read_line(line);
        is_whole = has_end;
    })?;
    reader.finish(is_whole)
}

/// A frame of the last line.
struct LineFrame {
    /// Where its text ends in the line.
    end: usize,
    stack: StackId,
    inline_depth: u16,
}

/// Reads one line after another. Most lines begin like the one before, and most functions are repeated.
struct FoldedReader {
    importer: Importer,
    /// The frames by their texts, except for inlined ones.
    frames: FxHashMap<Box<str>, FrameId>,
    /// The last line without its count, and its frames, the outermost first.
    last_line: String,
    last_frames: Vec<LineFrame>,
    /// The stacks with their counts, in units of `factor`.
    stacks: Vec<(Option<StackId>, u64)>,
    /// 1 as long as all counts are whole numbers.
    factor: u64,
    skipped: u64,
    /// Whether the last line with text is no stack.
    skips_last: bool,
}

impl FoldedReader {
    fn new() -> Self {
        Self {
            importer: Importer::new("Folded stacks", IMPORTED),
            frames: FxHashMap::default(),
            last_line: String::new(),
            last_frames: Vec::new(),
            stacks: Vec::new(),
            factor: 1,
            skipped: 0,
            skips_last: false,
        }
    }

    fn read_line(&mut self, line: &str) {
        let line = line.trim_end();
        if line.is_empty() || line.starts_with('#') {
            return;
        }
        let stack = split_count(line);
        self.skips_last = stack.is_none();
        match stack {
            Some((frames, count)) => self.add(frames, count),
            None => self.skipped += 1,
        }
    }

    fn add(&mut self, frames: &str, count: FoldedCount) {
        let stack = self.stack(frames);
        if let FoldedCount::Part(_) = count
            && self.factor == 1
        {
            self.factor = MILLISECOND;
            for (_, amount) in &mut self.stacks {
                *amount = amount.saturating_mul(MILLISECOND);
            }
        }
        let amount = match count {
            FoldedCount::Whole(count) => count.saturating_mul(self.factor),
            FoldedCount::Part(count) => (count * self.factor as f64).round() as u64,
        };
        self.stacks.push((stack, amount));
    }

    /// The stack of a line without its count. The frames that the last line has, too, are not looked up again.
    fn stack(&mut self, line: &str) -> Option<StackId> {
        let same = common_prefix(line.as_bytes(), self.last_line.as_bytes());
        let ends_there =
            |end: usize| end <= same && line.as_bytes().get(end).is_none_or(|&byte| byte == b';');
        let known = self.last_frames.iter().take_while(|frame| ends_there(frame.end)).count();
        self.last_frames.truncate(known);
        self.last_line.truncate(0);
        self.last_line.push_str(line);
        let mut start = self.last_frames.last().map_or(0, |frame| frame.end + 1);
        while start <= line.len() {
            let end = line[start..].find(';').map_or(line.len(), |length| start + length);
            self.push(&line[start..end], end);
            start = end + 1;
        }
        self.last_frames.last().map(|frame| frame.stack)
    }

    /// Adds the next frame of the line, whose text ends there.
    fn push(&mut self, text: &str, end: usize) {
        let (name, annotation) = split_annotation(text);
        let outer = self.last_frames.last();
        // Functions can only be inlined into a caller.
        let inline_depth = match outer {
            Some(outer) if annotation == INLINED => outer.inline_depth.saturating_add(1),
            _ => 0,
        };
        let prefix = outer.map(|outer| outer.stack);
        let known = self.frames.get(text).copied().filter(|_| inline_depth == 0);
        let frame = known.unwrap_or_else(|| {
            let (is_kernel, is_jit) = (annotation == KERNEL, annotation == COMPILED);
            let code = CodePosition { name, inline_depth, is_kernel, is_jit, ..CodePosition::default() };
            let frame = self.importer.frame(&code);
            if inline_depth == 0 {
                self.frames.insert(text.into(), frame);
            }
            frame
        });
        let stack = self.importer.stack(prefix, frame);
        self.last_frames.push(LineFrame { end, stack, inline_depth });
    }

    /// The profile. A file that is whole ends with an end of a line.
    fn finish(mut self, is_whole: bool) -> Result<ImportedProfile, ReadError> {
        if self.stacks.is_empty() {
            let problem = "no line is a stack and a count".into();
            return Err(ReadError::Malformed { format: FORMAT, problem });
        }
        if self.skips_last && !is_whole {
            self.importer.note(Note::Cut { place: "its last line".into() });
            self.skipped -= 1;
        }
        self.importer.note_left_out(self.skipped, "lines that are not a stack and a count");
        let (name, unit) = if self.factor == 1 { ("samples", Unit::Count) } else { ("time", Unit::Time) };
        self.importer.meta_mut().measure = Measure { name: name.into(), unit };
        let name = ThreadName { pid: "0", tid: "0", process: "Folded stacks", thread: "Folded stacks" };
        let mut queue = SampleQueue::new(self.importer.thread(name));
        for (stack, amount) in self.stacks {
            queue.add(&mut self.importer, stack, amount);
        }
        Ok(self.importer.finish(Some(self.factor)))
    }
}

/// How many bytes two texts have in common at their beginning.
fn common_prefix(one: &[u8], other: &[u8]) -> usize {
    const AT_ONCE: usize = 16;
    let blocks = one.chunks_exact(AT_ONCE).zip(other.chunks_exact(AT_ONCE));
    let same = AT_ONCE * blocks.take_while(|(one, other)| one == other).count();
    same + one[same..].iter().zip(&other[same..]).take_while(|(one, other)| one == other).count()
}

/// The count of a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum FoldedCount {
    Whole(u64),
    /// A number with decimals.
    Part(f64),
}

impl FoldedCount {
    fn of(text: &str) -> Option<Self> {
        if let Ok(count) = text.parse() {
            return Some(Self::Whole(count));
        }
        let count = text.parse().ok().filter(|count: &f64| count.is_finite() && *count >= 0.0)?;
        Some(if count.fract() == 0.0 { Self::Whole(count as u64) } else { Self::Part(count) })
    }
}

/// The frames of a line and its count. If there are two counts, as from `difffolded.pl`, the second one is
/// that of the newer profile.
pub(crate) fn split_count(line: &str) -> Option<(&str, FoldedCount)> {
    let (frames, count) = line.trim_end().rsplit_once([' ', '\t'])?;
    let count = FoldedCount::of(count)?;
    let frames = frames.trim_end();
    match frames.rsplit_once(' ') {
        Some((shorter, before)) if !shorter.is_empty() && FoldedCount::of(before).is_some() => {
            Some((shorter.trim_end(), count))
        }
        _ => (!frames.is_empty()).then_some((frames, count)),
    }
}

/// A function's name and its mark, if it has one.
fn split_annotation(frame: &str) -> (&str, &str) {
    let is_annotation = |end: &str| [KERNEL, COMPILED, INLINED].contains(&end);
    let split = frame.len().checked_sub(KERNEL.len()).and_then(|at| frame.split_at_checked(at));
    split.filter(|(name, end)| !name.is_empty() && is_annotation(end)).unwrap_or((frame, ""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_profile::{profile, stacks_of};

    fn cut() -> Note {
        Note::Cut { place: "its last line".into() }
    }

    fn left_out(count: u64) -> Note {
        Note::LeftOut { count, what: "lines that are not a stack and a count".into() }
    }

    fn written(options: WriteOptions) -> String {
        let mut out = Vec::new();
        write(&profile(), &mut out, options).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn each_stack_is_a_line_with_its_weight() {
        assert_eq!(
            written(WriteOptions::default()),
            "app;main 2\napp;main;inlined: x;write 4\napp;worker 1\n"
        );
    }

    #[test]
    fn threads_and_libs_are_written_if_requested() {
        let text = written(WriteOptions { thread_names: true, libs: true });
        assert_eq!(
            text,
            "app;app;app`main 2\napp;app;app`main;app`inlined: x;libc.so.6`write 4\napp;pool 1;worker 1\n"
        );
    }

    #[test]
    fn a_name_ends_no_frame_and_no_line() {
        let check = |name, expected| assert_eq!(sanitize(name), expected);
        check("a;b\nc", "a:b c");
        check("a\u{85}b\u{2028}c\u{202e}d", "a b\\u{2028}c\\u{202e}d");
        check(" \n", "(unknown)");
    }

    #[test]
    fn what_is_written_is_read_again() {
        let text = written(WriteOptions::default());
        let read = read(text.as_bytes()).unwrap();
        assert_eq!(read.notes, []);
        assert_eq!(stacks_of(&read.profile).join("\n") + "\n", text);
        assert_eq!(read.profile.meta().measure, Measure { name: "samples".into(), unit: Unit::Count });
    }

    /// Reads a file of folded stacks, and writes it again.
    fn again(text: &str) -> String {
        let mut out = Vec::new();
        write(&read(text.as_bytes()).unwrap().profile, &mut out, WriteOptions::default()).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn folded_stacks_stay_as_they_are() {
        let text = "[unknown];main 3\nmain;work 170000\nmain;work;do_exit_[k] 20\nmain;work;sum_[i];add_[i] 5\n\
                    node;run_[j] 7\n";
        assert_eq!(again(text), text);
        assert_eq!(again("b;c 2.5\na 1\n"), "a 1\nb;c 2.5\n");
    }

    #[test]
    fn annotations_are_no_part_of_names() {
        let read = read(&b"main;run_[j];sum_[i];page_fault_[k] 1\n_[k];a_[x] 2\n"[..]).unwrap().profile;
        assert_eq!(stacks_of(&read), ["_[k];a_[x] 2", "main;run;sum;page_fault 1"]);
        let frame = |name: &str| {
            let frame = read.frames().iter().find(|frame| read.func_name(frame.func) == name).unwrap();
            (read.category(frame.category.unwrap().category).name.as_str(), frame.inline_depth)
        };
        assert_eq!(frame("run"), ("JIT", 0));
        assert_eq!(frame("sum"), ("User", 1));
        assert_eq!(frame("page_fault"), ("Kernel", 0));
    }

    #[test]
    fn counts_are_taken_from_the_end_of_the_line() {
        let check = |line: &str, expected| assert_eq!(split_count(line), expected, "{line}");
        check("a;b 17", Some(("a;b", FoldedCount::Whole(17))));
        check("a b;c d 2.5", Some(("a b;c d", FoldedCount::Part(2.5))));
        check("a;b 3 4", Some(("a;b", FoldedCount::Whole(4))));
        check("a;b 4.0", Some(("a;b", FoldedCount::Whole(4))));
        check("a;b", None);
        check("17", None);
        check(" 17", None);
        check("a -1", None);
    }

    /// flamegraph.pl draws these widths. 2^53 + 1 is no number of a double.
    #[test]
    fn great_counts_stay_exact() {
        let text = "main;a 10000000000\nmain;b 3000000000\nmain;c 9007199254740993\n";
        assert_eq!(again(text), text);
        let profile = read(text.as_bytes()).unwrap().profile;
        let weights: Vec<_> = profile.threads()[0].samples.iter().map(|sample| sample.weight).collect();
        assert_eq!(
            (weights, profile.meta().interval),
            (vec![10_000_000_000, 3_000_000_000, 9_007_199_254_740_993], 1)
        );
    }

    #[test]
    fn stacks_that_begin_alike_share_what_is_alike() {
        let text = "a;b;c 1\na;b 2\na;bc;c 4\na;bc;c;d_[i] 8\na;bc;c;d_[i];e_[i] 16\nab 32\nab;\u{e9};c 64\nab;\u{e8};c 128\n";
        assert_eq!(
            again(text).lines().map(str::to_owned).collect::<std::collections::BTreeSet<_>>(),
            text.lines().map(str::to_owned).collect()
        );
    }

    #[test]
    fn odd_lines_are_counted_and_a_cut_one_is_noted() {
        let read = read(&b"# comment\na;b_[k] 2\nnonsense\n\na;c"[..]).unwrap();
        assert_eq!(stacks_of(&read.profile), ["a;b 2"]);
        assert_eq!(read.notes, [cut(), left_out(1)]);
        assert!(super::read(&b"nothing\nat all"[..]).is_err());
    }

    #[test]
    fn a_whole_last_line_is_not_called_cut() {
        let notes = |bytes: &[u8]| read(bytes).unwrap().notes;
        assert_eq!(notes(b"a 1\nnonsense\nb 2"), [left_out(1)]);
        assert_eq!(notes(b"a 1\nnonsense\n"), [left_out(1)]);
        assert_eq!(notes(b"a 1\nnonsense"), [cut()]);
    }
}
