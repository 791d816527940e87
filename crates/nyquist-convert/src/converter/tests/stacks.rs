//! Tests of the frames of stacks.

use super::*;

#[test]
fn the_base_of_a_recursion_is_folded() {
    let check = |stack: &[u64], expected: &str| {
        let mut converter = shaped(Shape { fold_recursive_prefix: true, ..Shape::default() });
        converter.push(at(1, sample(1, 1, None, stack)));
        assert_eq!(folded(&converter.finish().profile), [expected]);
    };
    check(&[0x30, 0x11, 0x11, 0x11], "0x10;0x30 1");
    check(&[0x30, 0x11, 0x11, 0x21], "0x20;0x10;0x10;0x30 1");
    check(&[0x11], "0x11 1");
}

#[test]
fn return_addresses_are_looked_up_a_byte_earlier() {
    let mut converter = converter(true);
    converter.push(at(1, sample(1, 1, None, &[0x30, 0x20, 0x10])));
    assert_eq!(folded(&converter.finish().profile), ["0xf;0x1f;0x30 1"]);
}

#[test]
fn kernel_frames_are_on_top_of_user_frames() {
    let mut converter = converter(true);
    let EventKind::Sample(mut both) = sample(1, 1, None, &[0x10]) else { unreachable!() };
    both.kernel_stack = vec![Avma(0xffff_0000_0000_0010), Avma(0xffff_0000_0000_0021)];
    converter.push(at(1, EventKind::Sample(both)));
    let profile = converter.finish().profile;
    assert_eq!(folded(&profile), ["0x10;0xffff000000000020;0xffff000000000010 1"]);
    let categories: Vec<_> = profile
        .frames()
        .iter()
        .map(|frame| profile.category(frame.category.unwrap().category).name.as_str())
        .collect();
    assert_eq!(categories, ["User", "Kernel", "Kernel"]);
}

#[test]
fn a_stack_that_cannot_be_finished_says_why() {
    let mut converter = converter(true);
    let mapping = Mapping {
        pid: Some(Pid(1)),
        start: Avma(0x1000),
        len: 0x1000,
        offset: FileOffset(0),
        path: "//anon".to_owned(),
        identity: MappedFile::Unknown,
    };
    converter.push(at(0, EventKind::Map(mapping)));
    let mut registers = [0; 17];
    registers[16] = 0x1234;
    let EventKind::Sample(mut cut) = sample(1, 1, None, &[]) else { unreachable!() };
    cut.user = UserStack::Copied {
        registers: Box::new(Registers::X86_64(registers)),
        stack: bytes::Bytes::new(),
        limited: false,
    };
    converter.push(at(1, EventKind::Sample(cut)));
    let finished = converter.finish();
    assert_eq!(folded(&finished.profile), ["(truncated: no unwind information);0x1234 1"]);
    assert_eq!(finished.statistics.truncated, 1);
}

#[test]
fn in_the_middle_of_exec_there_is_no_user_stack() {
    let mut converter = converter(true);
    let exec = EventKind::Name { pid: Pid(1), tid: Tid(1), name: "new".to_owned(), exec: true };
    converter.push(at(1, exec));
    let mut registers = [0; 17];
    registers[16] = 0x1234;
    let EventKind::Sample(mut sample) = sample(1, 1, None, &[]) else { unreachable!() };
    sample.in_kernel = true;
    sample.kernel_stack = vec![Avma(0xffff_0000_0000_0010)];
    sample.user = UserStack::Copied {
        registers: Box::new(Registers::X86_64(registers)),
        stack: bytes::Bytes::from_static(&[0; 8]),
        limited: false,
    };
    converter.push(at(2, EventKind::Sample(sample)));
    assert_eq!(folded(&converter.finish().profile), ["0xffff000000000010 1"]);
}
