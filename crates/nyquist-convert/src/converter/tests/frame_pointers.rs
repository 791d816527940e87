//! Stacks that were walked by frame pointers: how far they are used.

use super::*;

pub(crate) fn map_code(pid: u32, start: u64, len: u64) -> EventKind {
    EventKind::Map(Mapping {
        pid: Some(Pid(pid)),
        start: Avma(start),
        len,
        offset: FileOffset(0),
        path: "//anon".to_owned(),
        identity: MappedFile::Unknown,
    })
}

/// A sample whose stack was walked by frame pointers.
fn by_frame_pointers(pid: u32, stack: &[u64]) -> EventKind {
    let EventKind::Sample(mut sample) = sample(pid, pid, None, stack) else { unreachable!() };
    sample.user = UserStack::FramePointers(stack.iter().map(|&address| Avma(address)).collect());
    EventKind::Sample(sample)
}

/// The stacks of these events, one each millisecond, and how many stacks do not reach their roots.
fn stacks_of(events: Vec<EventKind>) -> (Vec<String>, u64) {
    let mut converter = converter(true);
    for (time, event) in (1..).zip(events) {
        converter.push(at(time, event));
    }
    let finished = converter.finish();
    (folded(&finished.profile), finished.statistics.truncated)
}

#[test]
fn frame_pointers_are_followed_within_known_code() {
    let check = |stack: &[u64], expected: &str| {
        let (stacks, truncated) = stacks_of(vec![
            map_code(1, 0x1000, 0x1000),
            map_code(1, 0x5000, 0x1000),
            by_frame_pointers(1, stack),
        ]);
        assert_eq!(stacks, [format!("{expected} 1")]);
        assert_eq!(truncated, u64::from(expected.starts_with("(truncated")), "{expected}");
    };
    check(&[0x1234], "0x1234");
    check(&[0x1234, 0x5001, 0x1fff], "0x1ffe;0x5000;0x1234");
    check(&[0x1234, 0x5678, 0x7fff_0000, 0x1888], "(truncated: return address not in code);0x5677;0x1234");
    check(&[0x1234, 0x0, 0x5678], "(truncated: return address not in code);0x1234");
    // A call may be the last instruction of the code, and a signal may return to the first instruction.
    check(&[0x1234, 0x6000, 0x5000], "0x4fff;0x5fff;0x1234");
    check(&[0x1234, 0x6001], "(truncated: return address not in code);0x1234");
    check(&[0x1234, 0xffff_ffff_ff60_0400], "0xffffffffff6003ff;0x1234");
}

#[test]
fn unknown_code_lets_frame_pointers_go_anywhere() {
    let astray = [0x1234, 0x9999];
    let whole = "0x9998;0x1234 1";
    let cut = "(truncated: return address not in code);0x1234 1";
    let check = |events: Vec<EventKind>, expected: &str| {
        assert_eq!(stacks_of(events).0.last().map(String::as_str), Some(expected));
    };
    let map = || map_code(1, 0x1000, 0x1000);
    check(vec![map(), by_frame_pointers(1, &astray)], cut);
    check(vec![by_frame_pointers(1, &astray)], whole);
    // Code ran whose mapping was not reported, before the first mapping and at another address.
    check(vec![by_frame_pointers(1, &astray), map(), by_frame_pointers(1, &astray)], whole);
    check(vec![map(), by_frame_pointers(1, &[0x5000]), by_frame_pointers(1, &astray)], whole);
    let lost = || EventKind::Lost { records: 1 };
    check(vec![map(), lost(), by_frame_pointers(1, &astray)], whole);
    check(vec![map(), lost(), fork(2, 2, 1), by_frame_pointers(2, &astray)], whole);
    // All mappings are known again for another program, and for another process.
    check(vec![lost(), name(1, 1, "new", true), map(), by_frame_pointers(1, &astray)], cut);
    check(
        vec![
            map(),
            lost(),
            map_code(2, 0x1000, 9),
            name(1, 1, "new", true),
            map(),
            by_frame_pointers(1, &astray),
        ],
        cut,
    );
}

#[test]
fn old_code_says_nothing_of_the_new_programs() {
    let EventKind::Sample(mut during) = by_frame_pointers(1, &[0x5000]) else { unreachable!() };
    during.in_kernel = true;
    let (stacks, truncated) = stacks_of(vec![
        name(1, 1, "new", true),
        map_code(1, 0x1000, 0x1000),
        EventKind::Sample(during),
        by_frame_pointers(1, &[0x1234, 0x5001]),
    ]);
    assert_eq!(stacks, ["0x5000 1", "(truncated: return address not in code);0x1234 1"]);
    assert_eq!(truncated, 1);
}
