//! Detects the format of a text by its lines.

use super::format::Format;
use crate::{
    austin, csv_tree, folded, ghc_report, heaptrack, legacy, mac_sample, perf_script, pmcstat, stack_counts,
    v8,
};

/// The number of lines that are checked.
const LINES: usize = 100;

/// The minimum length of a truncated line that is treated as a stack without its count.
const MIN_TRUNCATED_STACK_LEN: usize = 64 * 1024;

/// The format of a text, of which only the beginning may be available.
pub(super) fn by_lines(text: &str) -> Option<Format> {
    let text = text.trim_end_matches('\u{fffd}');
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let lines: Vec<_> = lines.filter(|line| !line.starts_with('#')).take(LINES).collect();
    let first = *lines.first()?;
    if is_callgrind(text, &lines) {
        Some(Format::Callgrind)
    } else if let Some(format) = by_first(first) {
        Some(format)
    } else if let Some(format) = by_stacks(text, first, &lines) {
        Some(format)
    } else if lines.iter().any(|line| perf_script::is_header(line))
        || lines.windows(2).any(|pair| perf_script::is_short_header(pair[0], pair[1]))
    {
        Some(Format::PerfScript)
    } else if legacy::is_text(first) {
        Some(Format::PprofText)
    } else if is_go_text(first) {
        Some(Format::GoText)
    } else if let Some(format) = by_heading(&lines) {
        Some(format)
    } else {
        is_folded(&lines).then_some(Format::Folded)
    }
}

/// A text that its first line shows.
fn by_first(first: &str) -> Option<Format> {
    let known = [
        (v8::log::is_log(first), Format::V8Log),
        (ghc_report::is_report(first), Format::GhcReport),
        (pmcstat::is_call_graph(first), Format::Pmcstat),
        (csv_tree::is_vtune(first), Format::Vtune),
        (csv_tree::is_visual_studio(first), Format::VisualStudio),
    ];
    known.into_iter().find(|(is_it, _)| *is_it).map(|(_, format)| format)
}

/// A text that is known, and is no profile or cannot be read.
fn by_heading(lines: &[&str]) -> Option<Format> {
    let has = |start: &str| lines.iter().take(5).any(|line| line.trim_start().starts_with(start));
    if lines.iter().take(5).any(|line| is_file(line)) {
        Some(Format::FileList)
    } else if has("PeriodType: ") && lines.iter().any(|line| line.starts_with("Samples:")) {
        Some(Format::PprofRaw)
    } else {
        lines.iter().all(|line| is_name_and_number(line)).then_some(Format::Numbers)
    }
}

/// Whether a line is as in `size: 40`.
fn is_name_and_number(line: &str) -> bool {
    line.split_once(": ")
        .is_some_and(|(name, number)| !name.contains([' ', ';']) && number.trim().parse::<f64>().is_ok())
}

/// The format of a text with its own notation of stacks.
fn by_stacks(text: &str, first: &str, lines: &[&str]) -> Option<Format> {
    if heaptrack::is_heaptrack(text) {
        Some(Format::Heaptrack)
    } else if lines.iter().take(5).any(|line| austin::is_sample(line)) {
        Some(Format::Austin)
    } else if mac_sample::is_sample(first) {
        Some(Format::MacSample)
    } else if stack_counts::is_bpftrace(lines) {
        Some(Format::Bpftrace)
    } else {
        stack_counts::is_dtrace(lines).then_some(Format::Dtrace)
    }
}

/// Whether a line is a stack with a count. Names with values (`key: 17`), and columns of a table, are none: they have
/// a colon before a space or at the end, or several spaces in a row. A line with a semicolon is a stack.
fn is_stack(line: &str) -> bool {
    folded::split_count(line).is_some_and(|(frames, _)| {
        let is_pair = frames.ends_with(':') || frames.contains(": ");
        frames.contains(';') || !is_pair && !frames.contains("  ") && !frames.starts_with([' ', '\t'])
    })
}

/// Whether at least half of the lines are stacks with a count. The last one may be truncated.
fn is_folded(lines: &[&str]) -> bool {
    let is_text = |line: &str| !line.contains('\u{fffd}') && !line.contains('\0');
    match lines {
        [] => false,
        [line] => {
            is_text(line) && (is_stack(line) || line.len() >= MIN_TRUNCATED_STACK_LEN && line.contains(';'))
        }
        [first, ..] => {
            let stacks = lines.iter().filter(|line| is_stack(line)).count();
            is_text(first) && stacks > 0 && stacks * 2 >= lines.len()
        }
    }
}

fn is_callgrind(text: &str, lines: &[&str]) -> bool {
    let has = |start: &str| lines.iter().any(|line| line.starts_with(start));
    text.starts_with("# callgrind format") || has("creator: callgrind") || has("events:") && has("fn=")
}

/// Whether it is the output of Go's `net/http/pprof` or `runtime/pprof` with `debug=2`.
fn is_go_text(first: &str) -> bool {
    first.starts_with("goroutine ") && first.ends_with("]:")
}

/// Whether it is a line of `ls -l`, as `drwxr-xr-x 2 user group 4096 Jan 1 12:00 name`.
fn is_file(line: &str) -> bool {
    let Some((mode, rest)) = line.split_once(' ') else { return false };
    let mode = mode.trim_end_matches(['.', '+', '@']);
    let is_kind = mode.starts_with(['-', 'd', 'l', 'b', 'c', 'p', 's']);
    let is_right = |letter| matches!(letter, 'r' | 'w' | 'x' | 's' | 'S' | 't' | 'T' | '-');
    let has_rights = mode.len() == 10 && mode.chars().skip(1).all(is_right);
    let links = rest.split_whitespace().next();
    is_kind && has_rights && links.is_some_and(|links| links.parse::<u64>().is_ok())
}
