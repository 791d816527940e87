//! Tests of the rows of a process that becomes another program.

use super::*;

/// The rows of a profile as "pid process: samples start-end".
fn programs(profile: &Profile) -> Vec<String> {
    let row = |thread: &profile::Thread| {
        let process = profile.process(thread.process);
        let end = thread.end.map_or_else(String::new, |end| (end / MS).to_string());
        format!("{} {}: {} {}-{end}", process.pid, process.name, thread.samples.len(), thread.start / MS)
    };
    profile.threads().iter().map(row).collect()
}

#[test]
fn samples_stay_with_the_program_they_are_of() {
    let mut converter = converter(true);
    converter.push(at(0, name(1, 1, "sh", true)));
    for time in 1..=20 {
        converter.push(at(time, sample(1, 1, None, &[0x10])));
    }
    converter.push(at(21, name(1, 1, "app", true)));
    for time in 22..=24 {
        converter.push(at(time, sample(1, 1, None, &[0x20])));
    }
    converter.push(at(25, exit(1, 1)));
    let profile = converter.finish().profile;
    assert_eq!(programs(&profile), ["1 sh: 20 0-21", "1.1 app: 3 21-25"]);
}

#[test]
fn few_samples_before_exec_are_the_next_programs() {
    let mut converter = converter(true);
    converter.push(at(0, name(1, 1, "sh", true)));
    converter.push(at(1, fork(2, 2, 1)));
    converter.push(at(2, sample(2, 2, None, &[0x10])));
    converter.push(at(3, name(2, 2, "app", true)));
    converter.push(at(4, sample(2, 2, None, &[0x20])));
    assert_eq!(programs(&converter.finish().profile), ["2 app: 2 1-"]);
}
