//! Tests of allocations: their measures by stack, and stacks that are named by numbers.

use super::*;
use crate::event::{Allocation, Free, HeapContents, HeapId};

fn allocation((pid, tid): (u32, u32), address: u64, size: u64, stack: (u64, &[u64])) -> EventKind {
    let EventKind::Sample(mut sample) = sample(pid, tid, None, stack.1) else { unreachable!() };
    if stack.1.is_empty() {
        sample.user = UserStack::None;
    }
    let (heap, stack) = (HeapId(u64::from(pid)), Some(stack.0).filter(|number| *number != 0));
    let allocation = Allocation { heap, sample, stack, address, size, distance: 1, number: address, live: 0 };
    EventKind::Allocation(Box::new(allocation))
}

fn measured(
    filter: ProcessFilter,
    events: impl IntoIterator<Item = EventKind>,
) -> impl Fn(&str) -> Vec<String> {
    let mut converter = Converter::new(Options { filter, ..options() });
    converter.push(at(0, name(1, 1, "app", true)));
    for (time, event) in (1..).zip(events) {
        converter.push(at(time, event));
    }
    let profile = converter.finish().profile;
    move |event| summed(&folded(&profile.clone().with_event_as_samples(event).unwrap()))
}

/// Each stack once.
fn summed(lines: &[String]) -> Vec<String> {
    let mut sums = std::collections::BTreeMap::new();
    for (stack, weight) in lines.iter().filter_map(|line| line.rsplit_once(' ')) {
        *sums.entry(stack).or_insert(0) += weight.parse::<u64>().unwrap();
    }
    sums.into_iter().map(|(stack, sum)| format!("{stack} {sum}")).collect()
}

#[test]
fn allocations_have_measures_by_stack() {
    let free = |address| {
        EventKind::Free(Free { heap: HeapId(1), pid: Pid(1), tid: Tid(1), address, number: address })
    };
    let of = measured(
        ProcessFilter::All,
        [
            sample(1, 1, None, &[0x90]),
            allocation((1, 1), 1, 100, (0, &[0x20, 0x10])),
            allocation((1, 1), 2, 30, (0, &[0x30, 0x10])),
            free(2),
            allocation((1, 1), 3, 7, (0, &[0x30, 0x10])),
        ],
    );
    // Return addresses are looked up one byte before.
    assert_eq!(of("total"), ["0xf;0x1f 100", "0xf;0x2f 37"]);
    assert_eq!(of("live"), ["0xf;0x1f 100", "0xf;0x2f 7"]);
    assert_eq!(of("peak"), ["0xf;0x1f 100", "0xf;0x2f 30"]);
    assert_eq!(
        (of("temporary"), of("allocations")),
        (vec!["0xf;0x2f 1".into()], vec!["0xf;0x1f 1".into(), "0xf;0x2f 2".into()])
    );
}

/// What each measure has at each stack, in the profile so far.
fn so_far(converter: &Converter) -> impl Fn(&str) -> Vec<String> + use<> {
    let profile = converter.snapshot();
    move |event| {
        let measured = profile.clone().with_event_as_samples(event);
        measured.map(|measured| summed(&folded(&measured))).unwrap_or_default()
    }
}

#[test]
fn each_window_has_its_allocations() {
    let free = |address| {
        EventKind::Free(Free { heap: HeapId(1), pid: Pid(1), tid: Tid(1), address, number: address })
    };
    let mut converter = shaped(Shape { reuse_threads: true, ..Shape::default() });
    converter.push(at(0, name(1, 1, "app", true)));
    converter.push(at(1, sample(1, 1, None, &[0x90])));
    converter.push(at(2, allocation((1, 1), 1, 100, (0, &[0x20, 0x10]))));
    converter.push(at(3, allocation((1, 1), 2, 30, (7, &[0x30, 0x10]))));
    converter.push(at(4, allocation((1, 1), 3, 5, (0, &[0x40]))));
    converter.push(at(5, free(3)));
    converter.advance(Timestamp(10 * MS));
    let first = so_far(&converter);
    assert_eq!(first("total"), ["0x3f 5", "0xf;0x1f 100", "0xf;0x2f 30"]);
    assert_eq!(first("live"), ["0xf;0x1f 100", "0xf;0x2f 30"]);
    converter.evict(Timestamp(10 * MS));
    // A stack that only the first window had comes back by its number, and none has another's name.
    converter.push(at(11, sample(1, 1, None, &[0x91])));
    converter.push(at(12, free(1)));
    converter.push(at(13, allocation((1, 1), 4, 8, (7, &[]))));
    converter.push(at(14, allocation((1, 1), 5, 1, (0, &[0x50]))));
    converter.advance(Timestamp(20 * MS));
    let second = so_far(&converter);
    assert_eq!(second("total"), ["0x4f 1", "0xf;0x2f 8"]);
    assert_eq!(second("live"), ["0x4f 1", "0xf;0x2f 38"]);
    assert_eq!(second("live-blocks"), ["0x4f 1", "0xf;0x2f 2"]);
    converter.evict(Timestamp(20 * MS));
    // The process ends: what it has is live in the window of its end, and not later.
    converter.push(at(25, EventKind::Exit { pid: Pid(1), tid: Tid(1) }));
    converter.advance(Timestamp(30 * MS));
    let third = so_far(&converter);
    assert_eq!((third("total"), third("live")), (vec![], vec!["0x4f 1".into(), "0xf;0x2f 38".into()]));
    converter.evict(Timestamp(30 * MS));
    assert!(so_far(&converter)("live").is_empty());
    assert_eq!(converter.left_out_blocks(), 0);
}

#[test]
fn a_stack_can_be_named_by_its_number() {
    let of = measured(
        ProcessFilter::Family([Pid(1)].into()),
        [
            allocation((1, 1), 1, 10, (77, &[0x20])),
            allocation((1, 1), 2, 10, (77, &[])),
            allocation((1, 1), 3, 10, (78, &[])),
            allocation((9, 9), 4, 10, (77, &[0x20])),
            EventKind::HeapContents(Box::new(HeapContents { heap: HeapId(1), addresses: vec![2] })),
        ],
    );
    assert_eq!((of("total"), of("live")), (vec![" 10".into(), "0x1f 20".into()], vec!["0x1f 10".to_owned()]));
}

#[test]
fn a_snapshot_has_the_allocations_so_far() {
    let mut converter = Converter::new(options());
    converter.push(at(0, name(1, 1, "app", true)));
    let of = |profile: Profile, event| summed(&folded(&profile.with_event_as_samples(event).unwrap()));
    converter.push(at(1, allocation((1, 1), 1, 100, (0, &[0x20]))));
    converter.advance(Timestamp(2 * MS));
    let first = converter.snapshot();
    converter.push(at(2, allocation((1, 1), 2, 30, (0, &[0x20]))));
    let free = Free { heap: HeapId(1), pid: Pid(1), tid: Tid(1), address: 1, number: 1 };
    converter.push(at(3, EventKind::Free(free)));
    converter.advance(Timestamp(4 * MS));
    let (second, last) = (converter.snapshot(), converter.finish().profile);
    assert_eq!([of(first.clone(), "total"), of(first, "live")], [["0x1f 100"], ["0x1f 100"]]);
    for profile in [second, last] {
        assert_eq!([of(profile.clone(), "total"), of(profile, "live")], [["0x1f 130"], ["0x1f 30"]]);
    }
}
