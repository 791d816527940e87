//! Which format a file has, by its first bytes and its name.

use std::fmt;

use crate::{folded, gzip, perf_script};

/// How many bytes of a file [`detect`] wants to see; fewer do where a file has fewer.
pub const PREFIX_BYTES: usize = 64 * 1024;

/// A format that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// The Firefox Profiler's, read by `nyquist-profile`.
    Firefox,
    /// `perf.data` of perf or simpleperf.
    PerfData,
    /// What `perf script` prints.
    PerfScript,
    /// pprof.
    Pprof,
    /// Folded stacks.
    Folded,
    /// speedscope.
    Speedscope,
    /// A CPU profile of V8.
    V8CpuProfile,
    /// A Chrome trace.
    ChromeTrace,
    /// A table of Instruments, as `xctrace export` writes it.
    Instruments,
    /// A Windows event trace, which cannot be read yet.
    Etl,
}

impl fmt::Display for Format {
    /// With its article, as `a pprof profile`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Firefox => "a profile of the Firefox Profiler",
            Self::PerfData => "a perf.data file",
            Self::PerfScript => "the output of perf script",
            Self::Pprof => "a pprof profile",
            Self::Folded => "a file of folded stacks",
            Self::Speedscope => "a speedscope profile",
            Self::V8CpuProfile => "a CPU profile of V8",
            Self::ChromeTrace => "a Chrome trace",
            Self::Instruments => "an export of Instruments",
            Self::Etl => "a Windows event trace (.etl)",
        })
    }
}

/// The format of a file that begins with `prefix` and has that name; `None` where it is none that is known. Contents count
/// more than names.
pub fn detect(prefix: &[u8], name: &str) -> Option<Format> {
    let decompressed;
    let mut start = prefix;
    if gzip::is_gzip(prefix) {
        decompressed = gzip::decompress_start(prefix, PREFIX_BYTES as u64);
        start = &decompressed;
    }
    let name = name.to_ascii_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    by_magic(start)
        .or_else(|| by_text(start, name))
        .or_else(|| is_etl(start, name).then_some(Format::Etl))
        .or_else(|| is_pprof(start).then_some(Format::Pprof))
}

fn by_magic(start: &[u8]) -> Option<Format> {
    // The magic of perf.data is a number: the second is another byte order's.
    (start.starts_with(b"PERFILE2") || start.starts_with(b"2ELIFREP")).then_some(Format::PerfData)
}

fn by_text(start: &[u8], name: &str) -> Option<Format> {
    let text = String::from_utf8_lossy(start);
    let text = text.trim_start_matches('\u{feff}').trim_start();
    match text.as_bytes().first()? {
        b'{' | b'[' => by_json(text, name),
        b'<' => text.contains("<trace-query-result").then_some(Format::Instruments),
        _ => by_lines(text),
    }
}

fn by_json(text: &str, name: &str) -> Option<Format> {
    let keys = top_level_keys(text);
    let has = |wanted: &[&str]| wanted.iter().all(|key| keys.contains(key));
    if has(&["traceEvents"]) {
        Some(Format::ChromeTrace)
    } else if text.starts_with('[') {
        // Events, of which each has a phase; an empty array may also be a trace that was cut off.
        has(&["ph"]).then_some(Format::ChromeTrace)
    } else if is_speedscope(text, &keys) || name.ends_with(".speedscope.json") {
        Some(Format::Speedscope)
    } else if has(&["nodes"]) {
        Some(Format::V8CpuProfile)
    } else {
        ["meta", "libs", "threads", "shared"].iter().any(|key| keys.contains(key)).then_some(Format::Firefox)
    }
}

fn is_speedscope(text: &str, keys: &[&str]) -> bool {
    let has = |key| keys.contains(&key);
    has("shared") && has("profiles") || has("$schema") && text.contains("speedscope.app")
}

/// The keys of the outermost object, or of the objects in the outermost array, as far as they are in the text.
fn top_level_keys(text: &str) -> Vec<&str> {
    let wanted_depth = if text.starts_with('[') { 2 } else { 1 };
    let (mut keys, mut depth, mut string) = (Vec::new(), 0_usize, None);
    let mut last = "";
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match (string, byte) {
            (Some(_), _) if is_escaped => is_escaped = false,
            (Some(_), b'\\') => is_escaped = true,
            (Some(start), b'"') => {
                last = text.get(start..at).unwrap_or_default();
                string = None;
            }
            (None, b'"') => string = Some(at + 1),
            (None, b'{' | b'[') => depth += 1,
            (None, b'}' | b']') => depth = depth.saturating_sub(1),
            (None, b':') if depth == wanted_depth => keys.push(last),
            _ => {}
        }
    }
    keys
}

/// How many lines are looked at.
const LINES: usize = 100;

fn by_lines(text: &str) -> Option<Format> {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')).take(LINES);
    if lines.clone().any(perf_script::is_header) {
        return Some(Format::PerfScript);
    }
    let first = lines.next()?;
    let is_text = !first.contains('\u{fffd}') && !first.contains('\0');
    (is_text && folded::split_count(first).is_some()).then_some(Format::Folded)
}

/// Wire types of protobuf.
const VARINT: u8 = 0;
const BYTES: u8 = 2;

/// Whether these are fields of pprof's `Profile`, in whatever order: none but those that it has, each of its type, and a
/// sample type among them.
fn is_pprof(start: &[u8]) -> bool {
    let (mut rest, mut has_sample_type) = (start, false);
    while let Some((&tag, after)) = rest.split_first() {
        let Some((value, after)) = varint(after) else { break };
        let (field, wire_type) = (tag >> 3, tag & 0b111);
        let (is_varint, is_bytes) = (wire_type == VARINT, wire_type == BYTES);
        let is_known = match field {
            1..=6 | 11 => is_bytes,
            7..=10 | 12 | 14 | 15 => is_varint,
            13 => is_bytes || is_varint,
            _ => false,
        };
        if !is_known {
            return false;
        }
        has_sample_type |= field == 1;
        let length = if is_bytes { usize::try_from(value).unwrap_or(usize::MAX) } else { 0 };
        rest = after.get(length..).unwrap_or_default();
    }
    has_sample_type
}

/// A protobuf varint and what follows it.
fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let length = bytes.iter().take(10).position(|byte| byte & 0x80 == 0)? + 1;
    let (varint, rest) = bytes.split_at(length);
    let value = varint.iter().rev().fold(0_u64, |value, byte| value << 7 | u64::from(byte & 0x7f));
    Some((value, rest))
}

/// Whether it is an event trace: its name says so, and it begins with the size of its buffers, a multiple of 1 KiB.
fn is_etl(start: &[u8], name: &str) -> bool {
    let has_name = name.rsplit_once('.').is_some_and(|(_, extension)| extension == "etl");
    let size = start.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
    has_name && size > 0 && size.is_multiple_of(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], name: &str, expected: Option<Format>) {
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]).into_owned();
        assert_eq!(detect(bytes, name), expected, "{shown:?} {name}");
    }

    #[test]
    fn formats_are_known_by_their_contents() {
        check(b"PERFILE2\x68\0\0\0", "x", Some(Format::PerfData));
        check(b"2ELIFREP\0", "x", Some(Format::PerfData));
        check(br#"{"meta":{"preprocessedProfileVersion":66},"libs":["#, "x", Some(Format::Firefox));
        check(br#"{"threads":[{"nodes":1,"traceEvents":[]}]"#, "x", Some(Format::Firefox));
        check(br#"{"a":"\"traceEvents\":","traceEvents":[{"#, "x", Some(Format::ChromeTrace));
        check(br#" [ {"name":"a","ph":"B"},"#, "x", Some(Format::ChromeTrace));
        check(br#"{"shared":{"frames":[]},"profiles":[]}"#, "x", Some(Format::Speedscope));
        check(
            br#"{"$schema":"https://www.speedscope.app/file-format-schema.json","#,
            "x",
            Some(Format::Speedscope),
        );
        check(br#"{"nodes":[{"id":1,"#, "x", Some(Format::V8CpuProfile));
        check(b"<?xml version=\"1.0\"?>\n<trace-query-result>", "x", Some(Format::Instruments));
        check(b"# comment\nw 28519 13869.022649:    5025125 cpu-clock:u: \n", "x", Some(Format::PerfScript));
        check(b"main;work 17\nmain 1\n", "x", Some(Format::Folded));
        check(&[0, 0, 1, 0, 1, 2], "trace.ETL", Some(Format::Etl));
    }

    #[test]
    fn what_is_written_is_known() {
        let profile = crate::test_profile::profile();
        let written = |write: &dyn Fn(&mut Vec<u8>) -> std::io::Result<()>| {
            let mut out = Vec::new();
            write(&mut out).unwrap();
            out
        };
        let pprof = written(&|out| crate::pprof::write(&profile, &crate::as_named, out));
        check(&pprof, "x", Some(Format::Pprof));
        check(&gzip::decompress(&pprof).unwrap().0, "x", Some(Format::Pprof));
        // Go's profiles begin with their time.
        check(
            &[&[0x48, 0xd3, 0xed, 0x01], &*gzip::decompress(&pprof).unwrap().0].concat(),
            "x",
            Some(Format::Pprof),
        );
        check(
            &written(&|out| crate::speedscope::write(&profile, &crate::as_named, out)),
            "x",
            Some(Format::Speedscope),
        );
        check(&written(&|out| perf_script::write(&profile, out)), "x", Some(Format::PerfScript));
        let options = folded::WriteOptions::default();
        check(&written(&|out| folded::write(&profile, out, options)), "x", Some(Format::Folded));
    }

    #[test]
    fn other_files_are_not() {
        for bytes in
            [&b""[..], b"\x7fELF\x02\x01", b"{\"a\":1}", b"hello world\n", b"[1,2]", b"\x1f\x8b\x08", b"\n"]
        {
            check(bytes, "x", None);
        }
        check(b"MZ", "trace.etl", None);
    }
}
