//! The lines of `perf script`: heads of samples, and frames.

use super::{INLINED, UNKNOWN};

/// The head of a sample: `comm pid/tid [cpu] misc time: period event: rest`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SampleHeader<'a> {
    pub comm: &'a str,
    /// If only one id is printed, it is that of the thread.
    pub pid: &'a str,
    pub tid: &'a str,
    pub cpu: Option<u32>,
    /// In ns. `None` if it is not printed.
    pub time: Option<u64>,
    pub period: Option<u64>,
    pub event: &'a str,
    /// The text after the event: the fields of a tracepoint, or the only frame.
    pub rest: &'a str,
}

/// A frame: `address symbol+offset (dso)`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FrameLine<'a> {
    pub address: u64,
    pub symbol: &'a str,
    /// `None` if it is not known.
    pub dso: Option<&'a str>,
    pub is_inlined: bool,
}

/// Whether a line is the head of a sample with a time, which is the default format.
pub(crate) fn is_header(line: &str) -> bool {
    parse_header(line).is_some_and(|header| header.time.is_some() && !header.event.is_empty())
}

/// Whether two lines are the head of a sample that lacks its time or its event, and a frame below it.
pub(crate) fn is_short_header(line: &str, next: &str) -> bool {
    let is_frame =
        parse_frame_line(next).is_some_and(|frame| !frame.symbol.is_empty() || frame.dso.is_some());
    is_frame && parse_header(line).or_else(|| parse_timeless_header(line)).is_some()
}

/// The words of a line, with their offsets.
fn fields(line: &str) -> impl Iterator<Item = (usize, &str)> {
    line.split_ascii_whitespace().map(move |word| (word.as_ptr() as usize - line.as_ptr() as usize, word))
}

pub(super) fn parse_header(line: &str) -> Option<SampleHeader<'_>> {
    let (at, time) = fields(line).skip(1).find_map(|(at, word)| Some((at, parse_time(word)?)))?;
    let rest = line[at..].split_once(char::is_whitespace).map_or("", |(_, rest)| rest).trim();
    let TaskFields { comm, pid, tid, cpu } = parse_task(&line[..at])?;
    let (period, rest) = split_period(rest);
    let (event, rest) = split_event(rest);
    Some(SampleHeader { comm, pid, tid, cpu, time: Some(time), period, event, rest })
}

/// A head without a time. Its event is the first word that ends with a colon and can be an event.
pub(super) fn parse_timeless_header(line: &str) -> Option<SampleHeader<'_>> {
    let is_event = |word: &str| {
        word.len() > 1 && word.ends_with(':') && word.starts_with(|letter: char| letter.is_ascii_alphabetic())
    };
    let (at, _) = fields(line).skip(2).find(|(_, word)| is_event(word))?;
    let (event, rest) = split_event(line[at..].trim());
    let before = line[..at].trim_end();
    let with_period = before
        .rsplit_once(char::is_whitespace)
        .and_then(|(task, period)| Some((parse_task(task)?, Some(period.parse().ok()?))));
    let (task, period) = with_period.or_else(|| Some((parse_task(before)?, None)))?;
    let TaskFields { comm, pid, tid, cpu } = task;
    Some(SampleHeader { comm, pid, tid, cpu, time: None, period, event, rest })
}

/// The fields before the time.
struct TaskFields<'a> {
    comm: &'a str,
    pid: &'a str,
    tid: &'a str,
    cpu: Option<u32>,
}

fn parse_task(text: &str) -> Option<TaskFields<'_>> {
    let mut before = text.trim();
    // The CPU modes that `-F +misc` prints.
    let is_mode = |word: &str| word.len() <= 4 && word.bytes().all(|byte| b"KUHGgMmESpDFf".contains(&byte));
    if let Some((shorter, mode)) = before.rsplit_once(char::is_whitespace)
        && is_mode(mode)
    {
        before = shorter.trim_end();
    }
    let mut cpu = None;
    if let Some((shorter, word)) = before.rsplit_once(char::is_whitespace)
        && let Some(number) = word.strip_prefix('[')
    {
        cpu = number.strip_suffix(']').and_then(|number| number.parse().ok());
        before = shorter.trim_end();
    }
    let (comm, ids) = before.rsplit_once(char::is_whitespace)?;
    let (pid, tid) = ids.split_once('/').unwrap_or((ids, ids));
    let is_id = |id: &str| id == "-1" || (!id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit()));
    (is_id(pid) && is_id(tid)).then(|| TaskFields { comm: comm.trim(), pid, tid, cpu })
}

/// `13869.022649:` in ns.
fn parse_time(word: &str) -> Option<u64> {
    let (seconds, fraction) = word.strip_suffix(':')?.split_once('.')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(seconds) || !is_number(fraction) || fraction.len() > 9 {
        return None;
    }
    let fraction: u64 = format!("{fraction:0<9}").parse().ok()?;
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(fraction)
}

fn split_period(text: &str) -> (Option<u64>, &str) {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    match word.parse() {
        Ok(period) => (Some(period), rest.trim_start()),
        Err(_) => (None, text),
    }
}

fn split_event(text: &str) -> (&str, &str) {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    match word.strip_suffix(':') {
        Some(event) => (event, rest.trim_start()),
        None => ("", text),
    }
}

/// A line that is a frame. It is indented, or has its lib, without which it could be anything.
pub(super) fn parse_frame_line(line: &str) -> Option<FrameLine<'_>> {
    parse_frame(line).filter(|frame| line.starts_with([' ', '\t']) || frame.dso.is_some())
}

pub(super) fn parse_frame(line: &str) -> Option<FrameLine<'_>> {
    let (address, rest) = line.trim().split_once([' ', '\t']).unwrap_or((line.trim(), ""));
    let address = u64::from_str_radix(address, 16).ok()?;
    let (symbol, dso) = split_dso(rest.trim());
    let symbol = match symbol.rsplit_once("+0x") {
        Some((name, offset)) if offset.bytes().all(|byte| byte.is_ascii_hexdigit()) => name,
        _ => symbol,
    };
    let known = |text: &&str| !text.is_empty() && *text != UNKNOWN;
    Some(FrameLine {
        address,
        symbol: Some(symbol).filter(known).unwrap_or(""),
        dso: dso.filter(known).filter(|&dso| dso != INLINED),
        is_inlined: dso == Some(INLINED),
    })
}

/// Splits `(dso)` off the end. The path of a deleted file ends with another pair of parentheses.
fn split_dso(text: &str) -> (&str, Option<&str>) {
    let Some(inner) = text.strip_suffix(')') else { return (text, None) };
    let inner = inner.strip_suffix(" (deleted)").unwrap_or(inner);
    match inner.rsplit_once(" (").or_else(|| inner.rsplit_once("\t(")) {
        Some((symbol, dso)) => (symbol.trim_end(), Some(dso)),
        None => match inner.strip_prefix('(') {
            Some(dso) => ("", Some(dso)),
            None => (text, None),
        },
    }
}

/// `/src/main.c:17`, as `-F +srcline` prints it below a frame.
pub(super) fn parse_source_line(line: &str) -> Option<(&str, u32)> {
    let (file, number) = line.trim().rsplit_once(':')?;
    let number = number.split_ascii_whitespace().next()?.parse().ok()?;
    (!file.is_empty() && !file.contains('?')).then_some((file, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read_in_all_their_forms() {
        let check = |line: &str, expected: (&str, &str, &str, u64, Option<u64>, &str, &str)| {
            let header = parse_header(line).unwrap();
            let SampleHeader { comm, pid, tid, time, period, event, rest, .. } = header;
            assert_eq!((comm, pid, tid, time.unwrap(), period, event, rest), expected, "{line}");
        };
        let us = 13_869_022_649_000;
        check(
            "w 28519 13869.022649:    5025125 cpu-clock:u: ",
            ("w", "28519", "28519", us, Some(5_025_125), "cpu-clock:u", ""),
        );
        check("  my app 7/8 [003] 13869.022649: cycles: ", ("my app", "7", "8", us, None, "cycles", ""));
        check(
            "swapper     0 [000] 13869.022649: sched:sched_switch: prev_comm=x 1.5: y",
            ("swapper", "0", "0", us, None, "sched:sched_switch", "prev_comm=x 1.5: y"),
        );
        check(
            "a 1 13869.022649: 1 cycles:  11ab main+0x3 (/a)",
            ("a", "1", "1", us, Some(1), "cycles", "11ab main+0x3 (/a)"),
        );
        check(
            "w\t7 [003]\t13869.022649:\t12 cpu-clock:u: ",
            ("w", "7", "7", us, Some(12), "cpu-clock:u", ""),
        );
        check("w 7 [003] UK 13869.022649: cycles: ", ("w", "7", "7", us, None, "cycles", ""));
        check("w 7 K 13869.022649: ", ("w", "7", "7", us, None, "", ""));
        assert_eq!(parse_header("w 7 [003] 1.5: x: ").unwrap().cpu, Some(3));
        for line in ["", "main", "\t11ab main+0x3 (/a)", "a b 1.5: 1 cycles:", "1.5: 1 cycles:"] {
            assert_eq!(parse_header(line), None, "{line}");
        }
    }

    #[test]
    fn heads_may_lack_their_times() {
        let check = |line: &str, expected: (&str, &str, Option<u64>, &str)| {
            let SampleHeader { comm, tid, period, event, .. } = parse_timeless_header(line).unwrap();
            assert_eq!((comm, tid, period, event), expected, "{line}");
        };
        check("my app 7/8 [003] 250000 cycles:u: ", ("my app", "8", Some(250_000), "cycles:u"));
        check("     w     7 cycles: ", ("w", "7", None, "cycles"));
        check("w 7 9 cpu-clock: ", ("w", "7", Some(9), "cpu-clock"));
        for line in ["", "w cycles: ", "\t 11ab std::f: x (/a)", "a b c: "] {
            assert_eq!(parse_timeless_header(line), None, "{line}");
        }
        assert!(is_short_header("w 7 1.5: ", "\t 11ab main+0x1 (/a)"));
        assert!(is_short_header("w 7 cycles: ", "\t 11ab main+0x1 (/a)"));
        assert!(!is_short_header("w 7 1.5: ", "main 3"));
        assert!(!is_short_header("main;w 7", "\t 11ab main+0x1 (/a)"));
    }

    #[test]
    fn frames_with_parentheses_in_names_are_read() {
        let check = |line: &str, expected: (u64, &str, Option<&str>, bool)| {
            let frame = parse_frame(line).unwrap();
            assert_eq!((frame.address, frame.symbol, frame.dso, frame.is_inlined), expected, "{line}");
        };
        check("\t 11ab main+0x13 (/a/b)", (0x11ab, "main", Some("/a/b"), false));
        check("\t 11ab f(int (*)()) const+0x1 (/a b)", (0x11ab, "f(int (*)()) const", Some("/a b"), false));
        check("\t 11ab [unknown] ([unknown])", (0x11ab, "", None, false));
        check("\t 11ab g (inlined)", (0x11ab, "g", None, true));
        check("\t 11ab g+0x1 (/memfd:x (deleted))", (0x11ab, "g", Some("/memfd:x"), false));
        check("\t ffffffff81000000 h", (0xffff_ffff_8100_0000, "h", None, false));
        check("\t11ab\tg\t(/a)", (0x11ab, "g", Some("/a"), false));
        check("\t 11ab (/a)", (0x11ab, "", Some("/a"), false));
        assert_eq!(parse_frame("  main.c:17"), None);
        assert_eq!(parse_source_line("  main.c:17"), Some(("main.c", 17)));
    }
}
