//! Tests of the feedback to the recorder.

use crate::StackCopyFeedback;
use crate::converter::tests::changing_processes::converted;
use crate::converter::tests::frame_pointers::map_code;
use crate::converter::tests::{at, converter, exit, folded, name, sample};
use crate::event::{EventKind, Registers, Timestamp, UserStack};

const POINTER: u64 = 0x7fff_0000_1000;

/// A sample of a function that was just called, without callers on the stack, and with other memory behind
/// that.
fn with_base_at(tid: u32, stack_pointer: u64) -> EventKind {
    let EventKind::Sample(mut sample) = sample(1, tid, None, &[]) else { unreachable!() };
    let mut registers = [0; 17];
    (registers[7], registers[16]) = (stack_pointer, 0x1234);
    let registers = Box::new(Registers::X86_64(registers));
    sample.user = UserStack::Copied { registers, stack: vec![0; 4096].into(), limited: true };
    EventKind::Sample(sample)
}

#[test]
fn the_bases_that_walks_reach_are_reported() {
    let mut converter = converter(true);
    let mut bases_after = |from: u64, events: Vec<EventKind>| {
        for (time, event) in (from..).zip(events) {
            converter.push(at(time, event));
        }
        converter.advance(Timestamp(u64::MAX));
        let bases = converter.take_stack_copy_feedback().bases;
        bases.into_iter().map(|(tid, base)| (tid.0, base.map(|base| base.0))).collect::<Vec<_>>()
    };
    let samples = |tid, pointer, count| (0..count).map(|_| with_base_at(tid, pointer)).collect::<Vec<_>>();
    let started = [vec![name(1, 1, "app", true)], samples(1, POINTER, 2)].concat();
    assert_eq!(bases_after(1, started), []);
    let both = [samples(1, POINTER, 20), samples(2, POINTER + 0x10_0000, 20)].concat();
    assert_eq!(bases_after(10, both), [(1, Some(POINTER)), (2, Some(POINTER + 0x10_0000))]);
    assert_eq!(bases_after(100, samples(1, POINTER - 0x10_0000, 1)), [(1, None)], "it has another stack");
    assert_eq!(bases_after(110, vec![exit(1, 1), exit(1, 2)]), [(2, None)]);
}

#[test]
fn with_unknown_mappings_no_base_is_recognised() {
    let mut converter = converter(true);
    let mapped = map_code(1, 0x8000, 0x1000);
    let events = [vec![with_base_at(1, POINTER), mapped], vec![with_base_at(1, POINTER); 20]].concat();
    for (time, event) in (1..).zip(events) {
        converter.push(at(time, event));
    }
    converter.advance(Timestamp(u64::MAX));
    assert_eq!(converter.take_stack_copy_feedback().bases, []);
    let finished = converter.finish();
    let stack = "(truncated: the process's mappings are not known);0x1234 1";
    assert_eq!(folded(&finished.profile), vec![stack; 21]);
    assert_eq!(finished.statistics.truncated, 21);
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "/proc has the mappings and the memory of a process")]
fn feedback_names_copies_and_bases_all_along() {
    let (finished, feedback) = converted();
    assert!(finished.statistics.incomplete.len() > 1, "some are near what was read, and some are not");
    let is_full = |one: &StackCopyFeedback| !one.truncated.is_empty() && !one.bases.is_empty();
    assert!(feedback.iter().all(is_full));
}
