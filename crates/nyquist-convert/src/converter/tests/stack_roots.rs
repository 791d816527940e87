//! Where stacks have their roots, as the source is told.

use super::*;

const POINTER: u64 = 0x7fff_0000_1000;

/// A sample of a function that was just called with nobody before it on the stack, and with other memory behind that.
fn with_root_at(tid: u32, stack_pointer: u64) -> EventKind {
    let EventKind::Sample(mut sample) = sample(1, tid, None, &[]) else { unreachable!() };
    let mut registers = [0; 17];
    (registers[7], registers[16]) = (stack_pointer, 0x1234);
    let registers = Box::new(Registers::X86_64(registers));
    sample.user = UserStack::Copied { registers, stack: vec![0; 4096].into(), limited: true };
    EventKind::Sample(sample)
}

#[test]
fn the_source_is_told_where_walks_have_come_to_the_root() {
    let mut converter = converter(true);
    let mut roots_after = |from: u64, events: Vec<EventKind>| {
        for (time, event) in (from..).zip(events) {
            converter.push(at(time, event));
        }
        converter.advance(Timestamp(u64::MAX));
        let roots = converter.take_copy_counts().roots;
        roots.into_iter().map(|(tid, root)| (tid.0, root.map(|root| root.0))).collect::<Vec<_>>()
    };
    let samples = |tid, pointer, count| (0..count).map(|_| with_root_at(tid, pointer)).collect::<Vec<_>>();
    assert_eq!(roots_after(1, samples(1, POINTER, 2)), []);
    let both = [samples(1, POINTER, 20), samples(2, POINTER + 0x10_0000, 20)].concat();
    assert_eq!(roots_after(10, both), [(1, Some(POINTER)), (2, Some(POINTER + 0x10_0000))]);
    assert_eq!(roots_after(100, samples(1, POINTER - 0x10_0000, 1)), [(1, None)], "it has another stack");
    assert_eq!(roots_after(110, vec![exit(1, 1), exit(1, 2)]), [(2, None)]);
}
