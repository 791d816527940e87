//! Folded stacks: `process;outer;inner 17`, with a line for each stack, for `flamegraph.pl` and `inferno`.
//!
//! The format is described in the README of <https://github.com/brendangregg/FlameGraph> (stackcollapse).

use std::collections::BTreeMap;
use std::io::{self, Write};

use nyquist_profile::{Frame, FrameId, Measure, Profile, Samples, StackId, ThreadIndex, Unit, well_known};
use rustc_hash::FxHashMap;

use crate::error::{ImportedProfile, Note, ReadError};
use crate::hidden;
use crate::import::{CodePosition, Importer, JIT, MILLISECOND, ThreadName};
use crate::select;

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
    let wanted = select::one_kind(profile);
    let sum = |samples: &Samples| {
        let mut weights: FxHashMap<_, u64> = FxHashMap::default();
        for sample in samples.iter().filter(|sample| wanted(sample)) {
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
/// If no line is a stack.
pub fn read(bytes: &[u8]) -> Result<ImportedProfile, ReadError> {
    let mut importer = Importer::new("Folded stacks", IMPORTED);
    let mut skipped = 0;
    // Whether the last line with text is no stack.
    let mut skips_last = false;
    let mut stacks = Vec::new();
    let name = ThreadName { pid: "0", tid: "0", process: "Folded stacks", thread: "Folded stacks" };
    let thread = importer.thread(name);
    for line in bytes.split(|&byte| byte == b'\n') {
        let line = String::from_utf8_lossy(line);
        let line = line.trim_end();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let stack = split_count(line);
        skips_last = stack.is_none();
        let Some((frames, count)) = stack else {
            skipped += 1;
            continue;
        };
        stacks.push((read_stack(&mut importer, frames), count));
    }
    if stacks.is_empty() {
        let problem = "no line is a stack and a count".into();
        return Err(ReadError::Malformed { format: FORMAT, problem });
    }
    if skips_last && !bytes.ends_with(b"\n") {
        importer.note(Note::Cut { place: "its last line".into() });
        skipped -= 1;
    }
    importer.note_left_out(skipped, "lines that are not a stack and a count");
    let are_whole = stacks.iter().all(|(_, count)| count.fract() == 0.0);
    let (name, unit, factor) =
        if are_whole { ("samples", Unit::Count, 1) } else { ("time", Unit::Time, MILLISECOND) };
    let measure = Measure { name: name.into(), unit };
    importer.meta_mut().measure = measure;
    let mut time = 0_u64;
    for (stack, count) in stacks {
        let amount = (count * factor as f64).round() as u64;
        importer.span(thread, time, (stack, false), amount);
        time = time.saturating_add(amount);
    }
    Ok(importer.finish(Some(factor)))
}

/// The frames of a line and its count. If there are two counts, as from `difffolded.pl`, the second one is
/// that of the newer profile.
pub(crate) fn split_count(line: &str) -> Option<(&str, f64)> {
    let number = |text: &str| text.parse::<f64>().ok().filter(|count| count.is_finite() && *count >= 0.0);
    let (frames, count) = line.trim_end().rsplit_once([' ', '\t'])?;
    let count = number(count)?;
    let frames = frames.trim_end();
    match frames.rsplit_once(' ') {
        Some((shorter, before)) if !shorter.is_empty() && number(before).is_some() => {
            Some((shorter.trim_end(), count))
        }
        _ => (!frames.is_empty()).then_some((frames, count)),
    }
}

fn read_stack(importer: &mut Importer, frames: &str) -> Option<StackId> {
    let mut depth = 0_u16;
    frames.split(';').fold(None, |prefix, frame| {
        let (name, annotation) = split_annotation(frame);
        // Functions can only be inlined into a caller.
        depth = if annotation == INLINED && prefix.is_some() { depth.saturating_add(1) } else { 0 };
        let (is_kernel, is_jit) = (annotation == KERNEL, annotation == COMPILED);
        let code = CodePosition { name, is_kernel, is_jit, inline_depth: depth, ..CodePosition::default() };
        let frame = importer.frame(&code);
        Some(importer.stack(prefix, frame))
    })
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
        let read = read(b"main;run_[j];sum_[i];page_fault_[k] 1\n_[k];a_[x] 2\n").unwrap().profile;
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
        check("a;b 17", Some(("a;b", 17.0)));
        check("a b;c d 2.5", Some(("a b;c d", 2.5)));
        check("a;b 3 4", Some(("a;b", 4.0)));
        check("a;b", None);
        check("17", None);
        check(" 17", None);
        check("a -1", None);
    }

    #[test]
    fn odd_lines_are_counted_and_a_cut_one_is_noted() {
        let read = read(b"# comment\na;b_[k] 2\nnonsense\n\na;c").unwrap();
        assert_eq!(stacks_of(&read.profile), ["a;b 2"]);
        assert_eq!(read.notes, [cut(), left_out(1)]);
        assert!(super::read(b"nothing\nat all").is_err());
    }

    #[test]
    fn a_whole_last_line_is_not_called_cut() {
        let notes = |bytes| read(bytes).unwrap().notes;
        assert_eq!(notes(b"a 1\nnonsense\nb 2"), [left_out(1)]);
        assert_eq!(notes(b"a 1\nnonsense\n"), [left_out(1)]);
        assert_eq!(notes(b"a 1\nnonsense"), [cut()]);
    }
}
