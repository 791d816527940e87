//! Detects the format of a file by its first bytes and its name.

mod format;
mod json;
mod lines;
#[cfg(test)]
mod own_samples;
mod protobuf;

use std::borrow::Cow;

use crate::{encoding, gzip, pstats, zstd};
use json::by_json;
use lines::by_lines;

pub use format::Format;

/// The number of bytes of a file that [`detect`] needs, or fewer if the file is shorter.
pub const PREFIX_BYTES: usize = 1024 * 1024;

/// The format of a file that begins with `prefix` and has this name. `None` if it is unknown. Contents take
/// precedence over names. Text may be in UTF-16, or have a byte order mark.
pub fn detect(prefix: &[u8], name: &str) -> Option<Format> {
    let start = decompressed(prefix);
    let name = name.to_ascii_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    by_magic(&start)
        .or_else(|| by_text(&encoding::to_utf8(&start), name))
        .or_else(|| is_etl(&start, name).then_some(Format::Etl))
        .or_else(|| protobuf::is_perfetto(&start).then_some(Format::Perfetto))
        .or_else(|| protobuf::is_otlp(&start).then_some(Format::Otlp))
        .or_else(|| protobuf::is_pprof(&start).then_some(Format::Pprof))
}

/// Whether a file with these first bytes may be JSON: it looks like JSON, or is compressed and truncated
/// before its first byte.
pub fn may_be_json(prefix: &[u8]) -> bool {
    let start = decompressed(prefix);
    start.is_empty() && !prefix.is_empty()
        || json::is_json(&String::from_utf8_lossy(&encoding::to_utf8(&start)))
}

/// Whether a file with these first bytes is text in UTF-16 or with a byte order mark, which
/// [`plain_text`](crate::plain_text) converts to UTF-8.
pub fn is_recoded(prefix: &[u8]) -> bool {
    encoding::is_recoded(&decompressed(prefix))
}

fn decompressed(prefix: &[u8]) -> Cow<'_, [u8]> {
    if gzip::is_gzip(prefix) {
        Cow::Owned(gzip::decompress_start(prefix, PREFIX_BYTES as u64))
    } else if zstd::is_zstd(prefix) {
        Cow::Owned(zstd::decompress_start(prefix, PREFIX_BYTES as u64))
    } else {
        Cow::Borrowed(prefix)
    }
}

fn by_magic(start: &[u8]) -> Option<Format> {
    if start.starts_with(crate::jfr::MAGIC) {
        return Some(Format::Jfr);
    }
    if crate::legacy::is_cpu(start) {
        return Some(Format::GperftoolsCpu);
    }
    if crate::austin::is_mojo(start) {
        return Some(Format::AustinMojo);
    }
    if crate::nettrace::is_trace(start) {
        return Some(Format::NetTrace);
    }
    if crate::simpleperf_report::is_report(start) {
        return Some(Format::SimpleperfReport);
    }
    if crate::art_trace::is_trace(start) {
        return Some(Format::ArtTrace);
    }
    if crate::sysprof::is_capture(start) {
        return Some(Format::Sysprof);
    }
    if is_go_trace(start) {
        return Some(Format::GoTrace);
    }
    if start.starts_with(b"PAR1") {
        return Some(Format::Parquet);
    }
    // The magic of perf.data is a number. The second form has the other byte order.
    if start.starts_with(b"PERFILE2") || start.starts_with(b"2ELIFREP") {
        return Some(Format::PerfData);
    }
    pstats::is_pstats(start).then_some(Format::Pstats)
}

/// Whether it is Go's execution trace: `go 1.22 trace` and zeros up to 16 bytes.
fn is_go_trace(start: &[u8]) -> bool {
    let first = start.get(..16).and_then(|first| first.strip_prefix(b"go 1."));
    first.is_some_and(|first| first.windows(7).any(|window| window == b" trace\0"))
}

fn by_text(start: &[u8], name: &str) -> Option<Format> {
    let text = String::from_utf8_lossy(start);
    let text = text.trim_start();
    match text.as_bytes().first()? {
        b'{' | b'[' if json::is_json(text) => by_json(text, name),
        b'<' if text.contains("<trace-query-result") => Some(Format::Instruments),
        _ => by_lines(text),
    }
}

/// Whether it is an event trace: its first buffer is of the kind that describes a trace, and begins with an event of
/// the system (`WMI_BUFFER_HEADER`; see `nyquist-etw`). A damaged one is known by its name and the size of its
/// buffers, a multiple of 512 bytes.
fn is_etl(start: &[u8], name: &str) -> bool {
    const KIND: usize = 54;
    const FIRST_EVENT: usize = 72;
    let u16_at = |at: usize| start.get(at..)?.first_chunk().map(|bytes| u16::from_le_bytes(*bytes));
    let begins_as_trace = u16_at(KIND) == Some(4) && matches!(u16_at(FIRST_EVENT + 2), Some(0xc001 | 0xc002));
    let has_name = name.rsplit_once('.').is_some_and(|(_, extension)| extension == "etl");
    let size = start.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
    begins_as_trace || has_name && size > 0 && size.is_multiple_of(512)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{folded, perf_script};

    fn check(bytes: &[u8], name: &str, expected: Option<Format>) {
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]).into_owned();
        assert_eq!(detect(bytes, name), expected, "{shown:?} {name}");
    }

    #[test]
    fn formats_are_known_by_their_contents() {
        check(b"PERFILE2\x68\0\0\0", "x", Some(Format::PerfData));
        check(b"2ELIFREP\0", "x", Some(Format::PerfData));
        check(b"FLR\0\0\x02\0\x01", "x", Some(Format::Jfr));
        check(b"PAR1\x15\x04", "x", Some(Format::Parquet));
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
        check(br#"{"head":{"callFrame":{},"selfSize":0,"#, "x", Some(Format::V8HeapProfile));
        check(
            br#"{"head":{"functionName":"(root)","url":"","hitCount":0,"#,
            "x",
            Some(Format::V8OldCpuProfile),
        );
        check(
            br#"{"typeId":"CPU","startTime":1,"head":{"functionName":"a"}}"#,
            "x",
            Some(Format::V8OldCpuProfile),
        );
        check(
            br#"{"version":1.2,"mode":"cpu","interval":1,"missed_samples":0,"frames":{"#,
            "x",
            Some(Format::Stackprof),
        );
        check(br#"{"start_time":1.5,"duration":1,"root_frame":{"#, "x", Some(Format::Pyinstrument));
        check(br#"{"dhatFileVersion":2,"mode":"heap","#, "x", Some(Format::Dhat));
        check(b"{)\x03z\x01a", "x", Some(Format::Pstats));
        check(b"# austin: 3.6.0\n# mode: cpu\n\nP7;T0:7;a.py:f:1 250\n", "x", Some(Format::Austin));
        check(b"MOJ\x03\x01austin\x004.0.0\0", "x", Some(Format::AustinMojo));
        check(b"MOJO;main 3\n", "x", Some(Format::Folded));
        check(b"Analysis of sampling app (pid 7) every 1 millisecond\n", "x", Some(Format::MacSample));
        check(b"CPU     ID\n\n   app`main+0x1b\n   app`_start+0x83\n   17\n", "x", Some(Format::Dtrace));
        check(b"Attaching 1 probe...\n\n@[\n    main+3\n]: 5\n", "x", Some(Format::Bpftrace));
        check(b"v 10400 3\nX ./app\ns 3 app\n", "x", Some(Format::Heaptrack));
        check(b"version: 1\ncreator: callgrind-3.19\npid: 7\n", "x", Some(Format::Callgrind));
        check(b"# callgrind format\nevents: Ir\nfn=main\n16 400\n", "x", Some(Format::Callgrind));
        check(b"desc: I1 cache\ncmd: ./a\nevents: Ir\nfl=a.c\nfn=main\n1 4\n", "x", Some(Format::Callgrind));
        check(&[0, 0, 1, 0, 1, 2], "trace.ETL", Some(Format::Etl));
        let mut trace = [0; 80];
        (trace[54], trace[74], trace[75]) = (4, 2, 0xc0);
        check(&trace, "x", Some(Format::Etl));
    }

    #[test]
    fn what_is_written_is_known() {
        let profile = crate::test_profile::profile();
        let written = |write: &dyn Fn(&mut Vec<u8>) -> std::io::Result<()>| {
            let mut out = Vec::new();
            write(&mut out).unwrap();
            out
        };
        let otlp = written(&|out| crate::otlp::write(&profile, &crate::as_named, out));
        check(&otlp, "x", Some(Format::Otlp));
        let perfetto = written(&|out| crate::perfetto::write(&profile, &crate::as_named, out));
        check(&perfetto, "x", Some(Format::Perfetto));
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
    fn late_keys_are_no_hindrance() {
        let filler = "1,".repeat(PREFIX_BYTES / 2);
        let check_cut = |start: &str, expected| {
            let text = format!("{start}[{filler}");
            check(&text.as_bytes()[..PREFIX_BYTES], "x", Some(expected));
        };
        check_cut(r#"{"metadata":{"a":"#, Format::ChromeTrace);
        check_cut(r#"{"otherData":"#, Format::ChromeTrace);
        check_cut(r#"[{"args":"#, Format::ChromeTrace);
        check_cut(r#"{"startTime":1,"samples":"#, Format::V8CpuProfile);
        check_cut(r#"{"shared":{"frames":"#, Format::Speedscope);
        check_cut(r#"{"name":"x","profiles":"#, Format::Speedscope);
        check_cut(r#"{"shared":{"stringArray":"#, Format::Firefox);
        check(br#"{"metadata":{"a":1},"traceEvents":[{"#, "x", Some(Format::ChromeTrace));
        check(br#"{"samples":[1],"timeDeltas":[1],"nodes":[{"#, "x", Some(Format::V8CpuProfile));
    }

    #[test]
    fn folded_stacks_may_begin_with_anything() {
        for text in [
            "[unknown];main 3\n",
            "[[vdso]];main 3\n",
            "[0x7f];main 3\n",
            "{closure#0};main 3\n",
            "<module>;main 3\n",
            "# a comment\n# another 3\n[unknown];main 3\n",
            "no stack\nmain;x 3\nmain;y 4\n",
        ] {
            check(text.as_bytes(), "x", Some(Format::Folded));
        }
        let long = "main;".repeat(PREFIX_BYTES / 4);
        check(&long.as_bytes()[..PREFIX_BYTES], "x", Some(Format::Folded));
        check(format!("{} 3\na 1\n", &long[..100_000]).as_bytes(), "x", Some(Format::Folded));
        check(&vec![b'x'; PREFIX_BYTES], "x", None);
    }

    #[test]
    fn text_may_be_in_utf16_or_have_a_mark() {
        for (text, format) in [
            ("<module>;main 3\n", Format::Folded),
            (r#"{"nodes":[{"id":1,"#, Format::V8CpuProfile),
            ("<?xml version=\"1.0\"?>\n<trace-query-result>", Format::Instruments),
            ("w 28519 13869.022649:    5025125 cpu-clock:u: \n", Format::PerfScript),
        ] {
            let little: Vec<u8> =
                format!("\u{feff}{text}").encode_utf16().flat_map(u16::to_le_bytes).collect();
            let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
            check(&little, "x", Some(format));
            check(&big, "x", Some(format));
            check(format!("\u{feff}{text}").as_bytes(), "x", Some(format));
            assert!(is_recoded(&little) && !is_recoded(text.as_bytes()));
        }
    }

    #[test]
    fn what_looks_like_folded_stacks_is_refused() {
        let check_refused = |text: &str, expected, sentence| {
            check(text.as_bytes(), "x", Some(expected));
            assert_eq!(crate::read(expected, text.as_bytes()).unwrap_err().to_string(), sentence);
        };
        let files = "it is a list of files, as ls -l prints it, and no profile";
        check_refused("total 48\ndrwxr-xr-x  2 u g 4096 Jan  1 12:00 .\n", Format::FileList, files);
        check_refused("total 0\n-rw-r--r--@ 1 u g 0 Jan  1 2024 a 3\n", Format::FileList, files);
        let numbers = "it is a list of names and numbers, such as `size: 40`, and no stacks with counts";
        check_refused("key: 1\nsize: 40\nvalue: 18446744073709551615\n", Format::Numbers, numbers);
        let raw = "it is the text that pprof -raw prints, and no profile: give the file that was printed, which can be read";
        let text = "PeriodType: cpu nanoseconds\nPeriod: 10000000\nSamples:\nsamples/count cpu/nanoseconds\n\
            \x20         1   10000000: 1 2 3 4\n          2   20000000: 1 2 3\nLocations\n     1: 0x4 M=1 main /a.go:7 s=0\n";
        check_refused(text, Format::PprofRaw, raw);
        check(b"field { key: 1\n name: \"a\" number: 4 }\nvalue: 3\n", "x", None);
        check(b"a::b: c;d 3\n", "x", Some(Format::Folded));
        let go = "it is a list of goroutines, with each on its own: get it with debug=1, or without it, then it is a profile";
        check_refused("goroutine 1 [running]:\nmain.main()\n", Format::GoText, go);
    }

    #[test]
    fn profiles_as_text_are_no_folded_stacks() {
        for text in [
            "goroutine profile: total 7\n1 @ 0x43 0x44\n",
            "heap profile: 1: 2 [3: 4] @ heap/1048576\n",
            "heap profile:     10:  1000 [    10:  1000] @ heapprofile\n",
            "--- contention:\ncycles/second=10\n",
            "--- mutex:\ncycles/second=10\n",
        ] {
            check(text.as_bytes(), "x", Some(Format::PprofText));
        }
    }

    #[test]
    fn a_name_in_brackets_is_no_json() {
        for (text, expected) in
            [("{\"a\":1}", true), (" [ {", true), ("[unknown];a 1", false), ("{a} 1", false)]
        {
            assert_eq!(may_be_json(text.as_bytes()), expected, "{text}");
        }
        assert!(may_be_json(b"\x1f\x8b\x08\0\0") && !may_be_json(b""));
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
