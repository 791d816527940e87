//! Files of other tools, undamaged and damaged.

use std::collections::BTreeMap;

use nyquist_formats::{Format, detect, read};
use nyquist_profile::Profile;

const PERF_SCRIPT: &[u8] = include_bytes!("samples/perf-6.1.txt");
const NODE: &[u8] = include_bytes!("samples/node-20.cpuprofile");
const PY_SPY: &[u8] = include_bytes!("samples/py-spy-0.4.speedscope.json");

fn imported(bytes: &[u8], name: &str, expected: Format) -> Profile {
    assert_eq!(detect(bytes, name), Some(expected));
    let imported = read(expected, bytes).unwrap();
    assert_eq!(imported.notes, []);
    imported.profile
}

/// The weights by innermost function, without waiting.
fn self_weights(profile: &Profile) -> BTreeMap<&str, u64> {
    let mut weights = BTreeMap::new();
    for sample in profile.threads().iter().flat_map(|thread| &thread.samples) {
        if let Some(frame) = sample.stack.and_then(|stack| profile.stack_frames(stack).next())
            && !sample.off_cpu
        {
            *weights.entry(profile.func_name(frame.func)).or_default() += sample.weight;
        }
    }
    weights
}

#[test]
fn perf_script_is_read() {
    let profile = imported(PERF_SCRIPT, "out.txt", Format::PerfScript);
    assert_eq!(self_weights(&profile), BTreeMap::from([("leafy", 12)]));
    assert_eq!(profile.meta().interval, 5_025_125, "the period of the samples");
    assert_eq!(profile.threads()[0].name, "w");
    let libs: Vec<_> = profile.libs().iter().map(|lib| lib.name.as_str()).collect();
    assert_eq!(libs, ["libc.so.6", "w"]);
}

#[test]
fn a_cpu_profile_of_node_is_read() {
    let profile = imported(NODE, "node.cpuprofile", Format::V8CpuProfile);
    let weights = self_weights(&profile);
    assert_eq!(profile.meta().interval, 1000, "V8 states times in microseconds");
    // The sums of the times between the file's samples, as DevTools shows them.
    assert_eq!((weights["leaf"], weights["(garbage collector)"]), (4_030_578, 791_855));
    assert_eq!(weights.get("(idle)"), None, "idling is waiting");
}

#[test]
fn a_speedscope_profile_of_py_spy_is_read() {
    let profile = imported(PY_SPY, "x.json", Format::Speedscope);
    assert_eq!(self_weights(&profile)["leaf"], 197);
    assert_eq!(profile.meta().interval, 10_000_000);
}

#[test]
fn files_in_other_encodings_are_read() {
    for (bytes, name, format) in [
        (PERF_SCRIPT, "out.txt", Format::PerfScript),
        (NODE, "node.cpuprofile", Format::V8CpuProfile),
        (PY_SPY, "x.json", Format::Speedscope),
        (b"[unknown];main 3\n", "x", Format::Folded),
    ] {
        let expected = imported(bytes, name, format);
        let text = format!("\u{feff}{}", std::str::from_utf8(bytes).unwrap());
        assert_eq!(imported(text.as_bytes(), name, format), expected);
        let units: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(imported(&units, name, format), expected);
    }
}

#[test]
fn members_may_be_in_any_order() {
    let text = std::str::from_utf8(NODE).unwrap();
    let mut document: serde_json::Map<String, serde_json::Value> = serde_json::from_str(text).unwrap();
    let nodes = document.remove("nodes").unwrap();
    let rest = serde_json::to_string(&document).unwrap();
    let late = format!("{},\"nodes\":{nodes}}}", rest.trim_end_matches('}'));
    assert_eq!(
        self_weights(&imported(late.as_bytes(), "x", Format::V8CpuProfile)),
        self_weights(&imported(NODE, "x", Format::V8CpuProfile))
    );
}

/// Each format's file as this crate writes it, and the files of other tools.
fn files() -> Vec<Vec<u8>> {
    let profile = imported(PERF_SCRIPT, "out.txt", Format::PerfScript);
    let mut written = vec![PERF_SCRIPT.to_vec(), NODE.to_vec(), PY_SPY.to_vec()];
    let mut add = |write: &dyn Fn(&mut Vec<u8>) -> std::io::Result<()>| {
        let mut out = Vec::new();
        write(&mut out).unwrap();
        written.push(out);
    };
    add(&|out| nyquist_formats::pprof::write(&profile, &nyquist_formats::as_named, out));
    add(&|out| nyquist_formats::perfetto::write(&profile, &nyquist_formats::as_named, out));
    add(&|out| nyquist_formats::otlp::write(&profile, &nyquist_formats::as_named, out));
    add(&|out| nyquist_formats::chrome::write(&profile, &nyquist_formats::as_named, out));
    add(&|out| nyquist_formats::speedscope::write(&profile, &nyquist_formats::as_named, out));
    add(&|out| nyquist_formats::perf_script::write(&profile, out));
    add(&|out| {
        nyquist_formats::folded::write(&profile, out, nyquist_formats::folded::WriteOptions::default())
    });
    written
}

/// Reads damaged bytes in every format, and writes the profiles that could be read.
fn survive(bytes: &[u8]) {
    let _ = detect(bytes, "x");
    for &format in Format::READ {
        if let Ok(imported) = read(format, bytes) {
            let mut out = Vec::new();
            nyquist_formats::pprof::write(&imported.profile, &nyquist_formats::as_named, &mut out).unwrap();
            nyquist_formats::perfetto::write(&imported.profile, &nyquist_formats::as_named, &mut out)
                .unwrap();
            nyquist_formats::otlp::write(&imported.profile, &nyquist_formats::as_named, &mut out).unwrap();
            nyquist_formats::chrome::write(&imported.profile, &nyquist_formats::as_named, &mut out).unwrap();
            nyquist_formats::speedscope::write(&imported.profile, &nyquist_formats::as_named, &mut out)
                .unwrap();
            nyquist_formats::perf_script::write(&imported.profile, &mut out).unwrap();
        }
    }
}

#[test]
fn cut_files_do_no_harm() {
    for file in files() {
        for step in 0..40 {
            survive(&file[..file.len() * step / 40]);
        }
    }
}

#[test]
fn damaged_files_do_no_harm() {
    let mut state = 1_u64;
    for file in files() {
        for _ in 0..40 {
            let mut damaged = file.clone();
            for _ in 0..4 {
                // Knuth's generator, so that the damage is the same in each run.
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let at = (state >> 33) as usize % damaged.len();
                damaged[at] = (state >> 17) as u8;
            }
            survive(&damaged);
        }
    }
}
