//! Tests of the intervals that threads run on CPUs.

use super::*;

/// Two threads that alternate on one CPU.
fn switches(shape: Shape) -> Profile {
    let mut converter = shaped(shape);
    converter.push(at(1, name(1, 1, "app", true)));
    converter.push(at(2, fork(1, 2, 1)));
    let come = |tid| EventKind::SwitchIn { tid: Tid(tid) };
    let events = [
        (4, descheduled(1, false)),
        (4, come(2)),
        (6, descheduled(2, true)),
        (6, come(1)),
        // The idle task, and a thread that has no number any more, belong to no process.
        (7, descheduled(1, false)),
        (7, come(0)),
        (8, EventKind::Descheduled { pid: Pid(0), tid: Tid(0), preempted: false }),
        (8, come(2)),
        (9, exit(1, 2)),
        (9, descheduled(2, false)),
        (9, EventKind::Descheduled { pid: Pid(u32::MAX), tid: Tid(u32::MAX), preempted: false }),
        (9, EventKind::Descheduled { pid: Pid(1), tid: Tid(u32::MAX), preempted: false }),
        (9, come(1)),
        (11, sample(1, 1, None, &[1])),
    ];
    for (time, event) in events {
        converter.push(at(time, event));
    }
    converter.finish().profile
}

#[test]
fn intervals_on_a_cpu_are_markers_of_threads() {
    let shape = Shape { switch_markers: true, ..Shape::default() };
    assert_eq!(
        marker_lines(&switches(shape)),
        [
            "1: Running on CPU CPU 0 blocked 1-4",
            "1: Running on CPU CPU 0 blocked 6-7",
            "1: Running on CPU CPU 0 recording ended 9-11",
            "2: Running on CPU CPU 0 preempted 4-6",
            "2: Running on CPU CPU 0 ended 8-9",
        ]
    );
    assert_eq!(marker_lines(&switches(Shape::default())), [""; 0]);
}

#[test]
fn intervals_on_a_cpu_are_markers_on_its_row() {
    let shape =
        Shape { switch_markers: true, cpu_threads: true, main_threads_only: true, ..Shape::default() };
    let lines = marker_lines(&switches(shape));
    let of_cpu: Vec<_> = lines.iter().filter(|line| line.contains(": CPU 0 ")).collect();
    assert_eq!(of_cpu.len(), 6, "each of three on the CPU's row and on that of all: {lines:?}");
    assert!(of_cpu[0].ends_with(": CPU 0 app (process 1, thread 1) blocked 1-4"), "{lines:?}");
}
