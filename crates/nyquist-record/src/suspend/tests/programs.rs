//! Processes that become other programs, and children of those that may not be sampled, as on macOS.

use super::*;

/// The clock of macOS.
const FINE: u64 = 1000;

/// A process that executes another program after 200 ms: both of its threads end, and one begins.
fn executing() -> SimProcess {
    let mut process = forever(&[(11, SimActivity::Runs), (12, SimActivity::Runs), (21, SimActivity::Runs)]);
    let at = SECOND + 200 * MS;
    for thread in [11, 12] {
        process.threads.get_mut(&thread).unwrap().ends = at;
    }
    process.threads.get_mut(&21).unwrap().began = at;
    process.executes = Some(at);
    process
}

#[test]
fn another_program_goes_on_in_the_same_process() {
    let plan = SamplingPlan { is_new: true, ..plan(&[10], 400) };
    let recorded = record(&machine(FINE, &[(10, executing())]), plan);
    let texts = |text: fn(&EventKind) -> Option<&str>| {
        recorded.events.iter().filter_map(|event| text(&event.kind)).collect::<Vec<_>>()
    };
    let programs = texts(|kind| match kind {
        EventKind::Name { name, exec: true, .. } => Some(name),
        _ => None,
    });
    assert_eq!(programs, ["program-10.exe", "second-10.exe"]);
    let images = texts(|kind| match kind {
        EventKind::Map(mapping) => Some(&mapping.path),
        _ => None,
    });
    let expected = [r"C:\program\1000", r"C:\program\5000", r"C:\second\1000", r"C:\second\5000"];
    assert_eq!(images, expected, "images at the same places are others");
    assert!(recorded.has(|kind| matches!(kind, EventKind::Exit { tid, .. } if tid.0 == 12)));
    assert!(!recorded.has(|kind| matches!(kind, EventKind::Exit { tid, .. } if tid.0 == 10)));
}

#[test]
fn a_main_thread_keeps_its_time_in_a_new_program() {
    let recorded = record(&machine(FINE, &[(10, executing())]), plan(&[10], 400));
    let used = recorded.cpu_ns(11) + recorded.cpu_ns(21);
    // What the first program used after its last look is not known.
    assert!(recorded.total(10).abs_diff(used) < 2 * MS, "{} of {used}", recorded.total(10));
    let running = recorded.running(10);
    assert!(running.is_sorted() && (350..450).contains(&running.len()), "{}", running.len());
    assert_eq!(recorded.running(21).len(), 0, "it has the number of its process");
    assert_eq!(recorded.end.total_cpu_time_ns, recorded.total(10) + recorded.total(12));
}

#[test]
fn children_of_a_refused_child_are_recorded() {
    let shell = SimProcess {
        refused: 0..u64::MAX,
        ..SimProcess::new(10, SECOND + 50 * MS..u64::MAX, &[(21, SimActivity::Runs)])
    };
    let tool = SimProcess::new(20, SECOND + 50 * MS..u64::MAX, &[(31, SimActivity::Runs)]);
    let all = [(10, forever(&[(11, SimActivity::Waits)])), (20, shell), (30, tool)];
    let recorded = record(&machine(FINE, &all), plan(&[10], 250));
    assert_eq!(recorded.end.left_out.iter().map(|it| it.pid.0).collect::<Vec<_>>(), [20]);
    assert_eq!(recorded.running(20).len(), 0);
    assert!((150..220).contains(&recorded.running(30).len()), "{}", recorded.running(30).len());
}

#[test]
fn idle_threads_are_left_alone_with_a_fine_clock() {
    let machine = machine(FINE, &[(10, forever(&[(11, SimActivity::Runs), (12, SimActivity::Waits)]))]);
    let recorded = record(&machine, plan(&[10], 1000));
    assert!(recorded.suspensions(12) <= 3, "{} suspensions", recorded.suspensions(12));
}

/// A shell that is refused, and executes a program after 200 ms.
fn refused_shell() -> SimProcess {
    let mut process =
        SimProcess::new(10, SECOND + 50 * MS..u64::MAX, &[(21, SimActivity::Runs), (22, SimActivity::Runs)]);
    let at = SECOND + 200 * MS;
    process.threads.get_mut(&21).unwrap().ends = at;
    process.threads.get_mut(&22).unwrap().began = at;
    SimProcess { refused: 0..at, executes: Some(at), ..process }
}

fn openings(recorded: &TestRecording, pid: u32) -> u32 {
    recorded.machine.0.borrow().processes[&pid].openings
}

#[test]
fn a_refused_shell_may_become_a_program() {
    let all = [(10, forever(&[(11, SimActivity::Waits)])), (20, refused_shell())];
    let recorded = record(&machine(FINE, &all), plan(&[10], 500));
    assert_eq!(recorded.end.left_out, []);
    assert!((250..320).contains(&recorded.running(20).len()), "{}", recorded.running(20).len());
    assert_eq!(openings(&recorded, 20), 3, "at first, a little later, and as the program");
}

#[test]
fn a_process_that_just_starts_is_tried_again() {
    let child = SimProcess::new(10, SECOND + 50 * MS..u64::MAX, &[(21, SimActivity::Runs)]);
    let child = SimProcess { refused: 0..SECOND + 65 * MS, ..child };
    let all = [(10, forever(&[(11, SimActivity::Waits)])), (20, child)];
    let recorded = record(&machine(FINE, &all), plan(&[10], 250));
    assert_eq!(recorded.end.left_out, []);
    assert!((150..200).contains(&recorded.running(20).len()), "{}", recorded.running(20).len());
}

#[test]
fn a_refused_process_is_not_retried_for_ever() {
    let shell = SimProcess { refused: 0..u64::MAX, executes: None, ..refused_shell() };
    let all = [(10, forever(&[(11, SimActivity::Waits)])), (20, shell)];
    let recorded = record(&machine(FINE, &all), plan(&[10], 1000));
    assert_eq!(recorded.end.left_out.iter().map(|it| it.pid.0).collect::<Vec<_>>(), [20]);
    assert_eq!(openings(&recorded, 20), 2);
}

#[test]
fn a_process_that_becomes_refused_is_named() {
    let process = SimProcess { refused: SECOND + 200 * MS..u64::MAX, ..executing() };
    let recorded = record(&machine(FINE, &[(10, process)]), plan(&[10], 600));
    assert_eq!(recorded.end.reason, Some(EndReason::Duration), "it lives on");
    let left_out: Vec<_> = recorded.end.left_out.iter().map(|it| (it.pid.0, it.reason.as_str())).collect();
    assert_eq!(left_out, [(10, "10 is refused")]);
    assert!(recorded.has(|kind| matches!(kind, EventKind::Exit { tid, .. } if tid.0 == 10)));
    assert!((150..250).contains(&recorded.running(10).len()));
    assert_eq!(openings(&recorded, 10), 2, "at the beginning, and once after the refusal");
}
