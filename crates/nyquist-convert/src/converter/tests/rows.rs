//! Tests of the rows of the profile: which thread or process has which.

use super::*;

#[test]
fn threads_of_one_name_share_a_row_in_turn() {
    let events = || {
        let mut events = vec![name(1, 1, "app", true), sample(1, 1, None, &[1])];
        for tid in [2, 3] {
            events.extend([fork(1, tid, 1), name(1, tid, "worker", false), sample(1, tid, None, &[2])]);
        }
        events.extend([exit(1, 3), fork(1, 4, 1), name(1, 4, "worker", false), sample(1, 4, None, &[3])]);
        events
    };
    assert_eq!(rows(Shape::default(), events()).len(), 4);
    assert_eq!(
        rows(REUSE, events()),
        ["app.app 1 1-", "worker.worker 1 3-", "worker.worker 2 6-"]
            .map(|row| row.replace("worker.", "app."))
    );
}

#[test]
fn processes_of_one_name_share_a_row_in_turn() {
    let mut events = vec![name(1, 1, "sh", true)];
    for pid in [2, 3] {
        events.extend([fork(pid, pid, 1), name(pid, pid, "true", true), sample(pid, pid, None, &[1])]);
        events.push(exit(pid, pid));
    }
    // Nothing was sampled while it lived.
    events.extend([fork(4, 4, 1), name(4, 4, "true", true), exit(4, 4)]);
    events.push(EventKind::Total { pid: Pid(4), tid: Tid(4), cpu_time_ns: 3 * MS });
    assert_eq!(rows(REUSE, events), ["true.true 3 2-12"]);
}

#[test]
fn a_row_is_left_to_its_name_after_a_rename() {
    let mut events = vec![name(1, 1, "sh", true), sample(1, 1, None, &[1])];
    for (pid, program) in [(2, "ls"), (3, "cat")] {
        // The child is a shell until it becomes another program.
        events.extend([fork(pid, pid, 1), sample(pid, pid, None, &[1])]);
        events.extend([name(pid, pid, program, true), sample(pid, pid, None, &[2]), exit(pid, pid)]);
    }
    assert_eq!(rows(REUSE, events), ["sh.sh 1 1-", "ls.ls 2 3-7", "cat.cat 2 8-12"]);
}

#[test]
fn samples_before_exec_make_no_row_per_child() {
    let mut events = vec![name(1, 1, "sh", true), sample(1, 1, None, &[1])];
    for pid in [2, 3, 4] {
        events.extend([fork(pid, pid, 1), sample(pid, pid, None, &[1])]);
        events.extend([name(pid, pid, "true", true), sample(pid, pid, None, &[2]), exit(pid, pid)]);
    }
    assert_eq!(rows(REUSE, events), ["sh.sh 1 1-", "true.true 4 3-17", "sh.sh 2 8-"]);
}

#[test]
fn a_thread_takes_a_row_of_the_name_it_chooses() {
    let mut events = vec![name(1, 1, "app", true), sample(1, 1, None, &[1])];
    for tid in [2, 3] {
        events.extend([fork(1, tid, 1), sample(1, tid, None, &[1])]);
        events.extend([name(1, tid, "worker", false), sample(1, tid, None, &[2]), exit(1, tid)]);
    }
    assert_eq!(rows(REUSE, events), ["app.app 1 1-", "app.worker 3 3-12", "app.app 1 8-"]);
}

#[test]
fn only_main_threads_where_they_alone_are_wanted() {
    let mut events = vec![sample(1, 1, None, &[1]), sample(1, 2, None, &[1]), sample(3, 3, None, &[1])];
    events.push(EventKind::Total { pid: Pid(1), tid: Tid(5), cpu_time_ns: 9 * MS });
    let shape = Shape { main_threads_only: true, ..Shape::default() };
    assert_eq!(rows(shape, events).len(), 2);
}

#[test]
fn without_main_thread_the_first_row_stands_in() {
    let mut converter = converter(true);
    converter.push(at(0, name(1, 1, "rustc", true)));
    for (tid, own) in [(2, "cgu 0"), (3, "cgu 1")] {
        converter.push(at(0, fork(1, tid, 1)));
        converter.push(at(0, name(1, tid, own, false)));
        converter.push(at(1, sample(1, tid, None, &[1])));
    }
    let profile = converter.finish().profile;
    let rows: Vec<_> = profile.threads().iter().map(|row| (&*row.name, row.is_main)).collect();
    assert_eq!(rows, [("rustc (cgu 0)", true), ("cgu 1", false)]);
}

#[test]
fn a_cpu_has_what_ran_on_it() {
    let mut converter = shaped(Shape { cpu_threads: true, ..Shape::default() });
    converter.push(at(0, name(1, 1, "app", true)));
    for (time, cpu) in [(1, 0), (2, 3), (3, 0)] {
        converter.push(Event { cpu: Some(cpu), ..at(time, sample(1, 1, None, &[0x10])) });
    }
    let profile = converter.finish().profile;
    let rows: Vec<_> = profile
        .threads()
        .iter()
        .map(|thread| {
            (profile.process(thread.process).name.as_str(), thread.name.as_str(), thread.samples.len())
        })
        .collect();
    assert_eq!(rows, [("app", "app", 3), ("CPU", "All CPUs", 3), ("CPU", "CPU 0", 2), ("CPU", "CPU 3", 1)]);
    assert_eq!(folded(&profile)[3], "app (process 1, thread 1);0x10 1");
}

#[test]
fn samples_are_of_the_thread_they_name() {
    let mut converter = converter(true);
    let name =
        |pid, name: &str| EventKind::Name { pid: Pid(pid), tid: Tid(pid), name: name.to_owned(), exec: true };
    let fork = EventKind::Fork { pid: Pid(2), tid: Tid(2), parent_pid: Pid(1), parent_tid: Tid(1) };
    converter.push(at(0, name(1, "parent")));
    converter.push(at(2, fork));
    converter.push(at(3, name(2, "child")));
    converter.push(at(4, sample(2, 2, None, &[1])));
    converter.push(at(5, EventKind::Exit { pid: Pid(2), tid: Tid(2) }));
    converter.push(at(6, sample(1, 1, None, &[2])));
    let profile = converter.finish().profile;
    let processes: Vec<_> = profile
        .processes()
        .iter()
        .map(|process| (process.name.as_str(), process.start / MS, process.end.map(|end| end / MS)))
        .collect();
    assert_eq!(processes, [("child", 2, Some(5)), ("parent", 0, None)]);
}

#[test]
fn a_number_used_again_gives_two_processes() {
    let mut converter = converter(true);
    let fork = || EventKind::Fork { pid: Pid(2), tid: Tid(2), parent_pid: Pid(1), parent_tid: Tid(1) };
    converter.push(at(1, fork()));
    converter.push(at(2, sample(2, 2, None, &[1])));
    converter.push(at(3, EventKind::Exit { pid: Pid(2), tid: Tid(2) }));
    converter.push(at(4, fork()));
    converter.push(at(5, sample(2, 2, None, &[1])));
    let profile = converter.finish().profile;
    let pids: Vec<_> = profile.processes().iter().map(|process| process.pid.as_str()).collect();
    assert_eq!(pids, ["2", "2.1"]);
    assert_eq!(profile.processes()[0].end, Some(3 * MS));
}
