//! Tests of which processes and samples are kept.

use super::*;

#[test]
fn only_samples_that_are_wanted_are_converted() {
    let check = |selection: SampleSelection, expected: &[&str]| {
        let mut converter = selecting(selection);
        let name = |pid, tid, name: &str| EventKind::Name {
            pid: Pid(pid),
            tid: Tid(tid),
            name: name.to_owned(),
            exec: false,
        };
        converter.push(at(0, name(1, 1, "server")));
        converter.push(at(0, name(1, 2, "worker")));
        converter.push(at(0, name(3, 3, "client")));
        converter.push(at(1, sample(1, 1, None, &[1])));
        converter.push(at(2, sample(1, 2, None, &[2])));
        converter.push(Event { cpu: Some(4), ..at(3, sample(3, 3, None, &[3])) });
        assert_eq!(folded(&converter.finish().profile), expected);
    };
    check(SampleSelection::default(), &["0x1 1", "0x2 1", "0x3 1"]);
    check(SampleSelection { pids: vec![Pid(1)], ..SampleSelection::default() }, &["0x1 1", "0x2 1"]);
    check(SampleSelection { tids: vec![Tid(2), Tid(3)], ..SampleSelection::default() }, &["0x2 1", "0x3 1"]);
    check(SampleSelection { cpus: vec![4], ..SampleSelection::default() }, &["0x3 1"]);
    check(SampleSelection { names: vec!["worker".into()], ..SampleSelection::default() }, &["0x2 1"]);
    check(
        SampleSelection { names: vec!["server".into()], ..SampleSelection::default() },
        &["0x1 1", "0x2 1"],
    );
    let time = Some(2 * MS..3 * MS);
    check(SampleSelection { time, ..SampleSelection::default() }, &["0x2 1"]);
    check(SampleSelection { pids: vec![Pid(1)], cpus: vec![4], ..SampleSelection::default() }, &[]);
}

fn born(time: u64, pid: u32, parent: u32) -> Event {
    let (pid, tid) = (Pid(pid), Tid(pid));
    at(time, EventKind::Fork { pid, tid, parent_pid: Pid(parent), parent_tid: Tid(parent) })
}

/// The samples that a filter keeps, each by its address.
fn retained(filter: ProcessFilter, events: impl IntoIterator<Item = Event>) -> Vec<String> {
    let mut converter = Converter::new(Options { filter, ..options() });
    for event in events {
        converter.push(event);
    }
    folded(&converter.finish().profile)
}

#[test]
fn an_idle_cpu_is_nobodys_doing() {
    assert_eq!(retained(ProcessFilter::All, [at(1, sample(0, 0, None, &[1]))]), [""; 0]);
}

#[test]
fn what_runs_before_exec_is_not_the_commands() {
    let events = [
        at(1, sample(7, 7, None, &[1])),
        at(1, sample(8, 8, None, &[2])),
        exec(2, 7, "x"),
        at(3, sample(7, 7, None, &[3])),
    ];
    assert_eq!(retained(ProcessFilter::FromExec(Pid(7)), events), ["0x2 1", "0x3 1"]);
}

#[test]
fn a_family_is_what_descends_from_a_process() {
    let events = [
        at(1, sample(7, 7, None, &[1])),
        exec(2, 7, "x"),
        born(3, 8, 7),
        born(4, 9, 8),
        born(4, 10, 1),
        at(5, sample(7, 7, None, &[7])),
        at(6, sample(9, 9, None, &[9])),
        at(6, sample(10, 10, None, &[10])),
        born(7, 7, 1),
        exec(8, 7, "another"),
        at(9, sample(7, 7, None, &[11])),
    ];
    assert_eq!(retained(ProcessFilter::Family([Pid(7)].into()), events), ["0x7 1", "0x9 1"]);
}

#[test]
fn processes_are_kept_by_their_names_at_the_time() {
    let events = [
        exec(1, 7, "cc1plus"),
        at(2, sample(7, 7, None, &[1])),
        exec(3, 7, "ld"),
        at(4, sample(7, 7, None, &[2])),
    ];
    let filter = ProcessFilter::Named(vec![crate::NamePattern::new("cc1*")]);
    assert_eq!(retained(filter, events), ["0x1 1"]);
}
