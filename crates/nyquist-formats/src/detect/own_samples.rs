//! Tests that no format is taken for another one: each of the samples, and its beginnings.

use super::{Format, detect};
use crate::{csv_tree, firefox_timeline, ghc_json, ghc_report, pmcstat, safari, simpleperf_report, v8};
use nyquist_test_support::{art_trace, nettrace, sysprof};

/// Samples of formats, each with a beginning that is enough to know it.
fn samples() -> Vec<(Format, Vec<u8>)> {
    vec![
        (Format::NetTrace, nettrace::trace()),
        (Format::SimpleperfReport, simpleperf_report::tests::report()),
        (Format::ArtTrace, art_trace::dual()),
        (Format::ArtTrace, art_trace::streamed()),
        (Format::V8Log, v8::log::tests::LOG.into()),
        (Format::GhcJson, ghc_json::tests::FILE.into()),
        (Format::GhcReport, ghc_report::tests::report().into()),
        (Format::Vtune, csv_tree::tests::VTUNE.into()),
        (Format::VisualStudio, csv_tree::tests::VISUAL_STUDIO.into()),
        (Format::Pmcstat, pmcstat::tests::GRAPH.into()),
        (Format::Safari, safari::tests::FILE.into()),
        (Format::FirefoxPanel, firefox_timeline::tests::FILE.into()),
        (Format::Sysprof, sysprof::capture()),
    ]
}

/// Files of formats that have samples elsewhere, by what they begin with.
const OTHERS: [(Format, &[u8]); 12] = [
    (Format::PerfData, b"PERFILE2\x68\0\0\0"),
    (Format::Jfr, b"FLR\0\0\x02\0\x01"),
    (Format::Austin, b"# austin: 3.6.0\n# mode: cpu\n\nP7;T0:7;a.py:f:1 250\n"),
    (Format::AustinMojo, b"MOJ\x03\x01austin\x004.0.0\0"),
    (Format::Folded, b"SLOW;main 3\n"),
    (Format::Folded, b"Nettracer;main 3\nSIMPLEPERF;a 4\n"),
    (Format::Folded, b"Level,Function;main 3\n"),
    (Format::Folded, b"tick,0x2010;main 3\nv8-version;a 1\n"),
    (
        Format::V8CpuProfile,
        br#"{"nodes":[{"id":1,"callFrame":{"functionName":"cost_centres"}}],"samples":[1]}"#,
    ),
    (Format::Callgrind, b"version: 1\ncreator: callgrind-3.19\npid: 7\n"),
    (Format::PerfScript, b"w 28519 13869.022649:    5025125 cpu-clock:u: \n"),
    (Format::GoTrace, b"go 1.22 trace\0\0\0\x01\x02"),
];

#[test]
fn no_format_takes_another_ones_file() {
    for (format, bytes) in samples() {
        assert_eq!(detect(&bytes, "x"), Some(format));
        // A beginning is of this format, or too short to be known. That of a text has whole lines.
        let is_text = !bytes.contains(&0);
        let ends = (0..bytes.len().min(400)).chain([bytes.len() / 2]);
        for end in ends.filter(|&end| !is_text || bytes[..end].ends_with(b"\n")) {
            let found = detect(&bytes[..end], "x");
            assert!(found.is_none_or(|found| found == format), "{found:?} of {end} bytes of {format:?}");
        }
    }
    for (format, bytes) in OTHERS {
        assert_eq!(detect(bytes, "x"), Some(format), "{}", String::from_utf8_lossy(bytes));
    }
}

/// Each reader refuses the samples of all others.
#[test]
fn readers_refuse_what_is_of_other_formats() {
    let own = samples();
    for (format, _) in &own {
        for (other, bytes) in own.iter().filter(|(other, _)| other != format) {
            // A table is one by its columns alone.
            let read = crate::read(*format, bytes);
            assert!(read.is_err(), "{format:?} reads {other:?}");
        }
    }
}
