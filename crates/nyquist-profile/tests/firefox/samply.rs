//! A profile that samply 0.13.1 wrote of a shell loop (`data/samply-0.13.1.json.gz`). Another program
//! extracted the expected values from its JSON.

use nyquist_profile::firefox::{self, FormatVersion, WriteOptions};
use nyquist_profile::{Profile, Thread};

use nyquist_test_support::sample_profile::describe;

fn samply_profile() -> Profile {
    firefox::read(&include_bytes!("data/samply-0.13.1.json.gz")[..]).unwrap()
}

fn shell(profile: &Profile) -> &Thread {
    profile.threads().iter().find(|thread| thread.tid == "4120.1").unwrap()
}

/// Name, address, lib and category of each frame, the innermost first.
fn frames(profile: &Profile, sample: usize) -> Vec<(&str, Option<u32>, &str, &str)> {
    let stack = shell(profile).samples.get(sample).unwrap().stack.unwrap();
    let frames = profile.stack_frames(stack).map(|frame| {
        let func = profile.func(frame.func);
        let lib = &profile.lib(func.lib.unwrap()).name;
        let category = &profile.category(frame.category.unwrap().category).name;
        (profile.string(func.name), frame.address, lib.as_str(), category.as_str())
    });
    frames.collect()
}

#[test]
fn processes_and_threads_are_samplys() {
    let profile = samply_profile();
    let threads = profile.threads().iter().map(|thread| {
        let pid = profile.process(thread.process).pid.as_str();
        (pid, thread.name.as_str(), thread.is_main, thread.samples.len(), thread.markers.len())
    });
    let expected = [
        ("4120", "samply", true, 0, 0),
        ("4120.1", "sh", true, 49, 0),
        ("4122", "sh", true, 0, 0),
        ("4122.1", "cat", true, 1, 39),
    ];
    assert_eq!(threads.collect::<Vec<_>>(), expected);
    let process = profile.process(shell(&profile).process);
    assert_eq!((process.start, process.end), (3_863_912_212_078, Some(3_864_076_762_210)));
    assert_eq!(profile.meta().interval, 1_000_000);
    assert_eq!(profile.meta().start_time, 1_795_255_704_104_076);
    assert!(!profile.meta().symbolicated);
}

#[test]
fn samples_are_samplys() {
    let profile = samply_profile();
    let samples = &shell(&profile).samples;
    let times: Vec<_> = samples.iter().take(3).map(|sample| sample.time).collect();
    assert_eq!(times, [3_863_913_245_723, 3_863_914_240_455, 3_863_915_241_518]);
    // samply's unit is the microsecond.
    assert_eq!(samples.iter().map(|sample| sample.cpu_delta).sum::<u64>(), 48_764_000);
    assert!(samples.iter().all(|sample| sample.weight == 1));
}

#[test]
fn stacks_are_samplys() {
    let profile = samply_profile();
    let first = frames(&profile, 0);
    assert_eq!(first.len(), 14);
    assert_eq!(first[0], ("0x16746f", Some(1_471_599), "libc.so.6", "User"));
    assert_eq!(first[1], ("0x1544c", Some(87_116), "dash", "User"));
    assert_eq!(first[13], ("0x4780", Some(18_304), "dash", "User"));
    let in_dash = (0..49).filter(|&sample| frames(&profile, sample)[0].2 == "dash").count();
    assert_eq!(in_dash, 26);
}

#[test]
fn a_rewritten_profile_keeps_rules_and_contents() {
    let profile = samply_profile();
    for version in [FormatVersion::V49, FormatVersion::V66] {
        let mut output = Vec::new();
        firefox::write(&profile, WriteOptions { version, gzip: true }, &mut output).unwrap();
        assert_eq!(firefox::check_bytes(&output).unwrap(), []);
        assert_eq!(
            describe(&firefox::read(output.as_slice()).unwrap()),
            describe(&profile),
            "version {version}"
        );
    }
}
