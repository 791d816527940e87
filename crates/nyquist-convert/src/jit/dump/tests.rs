//! Tests of reading jitdumps.

use super::*;
use crate::jit::tests::test_dump::TestDump;
use nyquist_object::RelativeAddress;

/// The name of the code at an address at a time.
fn name(dump: &mut Dump, address: u64, time: u64) -> Option<String> {
    let (_, base) = dump.find(Avma(address), Timestamp(time))?.module?;
    let relative = RelativeAddress::from_avma(Avma(address), base)?;
    let code = dump.codes.iter().find(|code| (code.offset..code.offset + code.size).contains(&relative.0));
    code.map(|code| code.name.to_string())
}

#[test]
fn an_address_is_what_was_last_made_there() {
    let file = TestDump::new(0);
    file.load(10, 0x1000, 16, 1, "first");
    file.load(20, 0x1008, 16, 2, "second");
    file.load(30, 0x1000, 4, 3, "third");
    let mut dump = file.open();
    dump.read_on();
    let mut check = |time, address, expected: Option<&str>| {
        assert_eq!(name(&mut dump, address, time).as_deref(), expected, "{address:#x} at {time}");
    };
    check(9, 0x1000, None);
    check(10, 0x1000, Some("first"));
    check(19, 0x100f, Some("first"));
    check(20, 0x100f, Some("second"));
    check(20, 0x1000, None);
    check(31, 0x1003, Some("third"));
    check(31, 0x1004, None);
    check(31, 0x1017, Some("second"));
    check(31, 0x1018, None);
}

#[test]
fn moved_code_keeps_its_name_and_file_place() {
    let file = TestDump::new(0);
    file.load(10, 0x1000, 16, 7, "f");
    file.relocate(20, 7, 0x1000, 0x5000, 16);
    let mut dump = file.open();
    dump.read_on();
    let place = |dump: &mut Dump, address, time| {
        let (_, base) = dump.find(Avma(address), Timestamp(time))?.module?;
        RelativeAddress::from_avma(Avma(address), base)
    };
    let before = place(&mut dump, 0x1004, 15);
    assert!(before.is_some());
    assert_eq!(place(&mut dump, 0x5004, 25), before);
    assert_eq!(place(&mut dump, 0x1004, 25), None);
}

#[test]
fn a_file_is_read_while_it_is_written() {
    let file = TestDump::new(0);
    let mut dump = file.open();
    dump.read_on();
    assert!(!dump.is_read_up_to(Timestamp(0)));
    file.load(10, 0x1000, 16, 1, "f");
    file.write(b"\0\0\0\0half a record");
    dump.read_on();
    assert!(dump.is_read_up_to(Timestamp(9)));
    assert!(!dump.is_read_up_to(Timestamp(10)), "more of the same time may come");
    assert_eq!(name(&mut dump, 0x1001, 11).as_deref(), Some("f"));
}

#[test]
fn a_record_larger_than_a_chunk_is_read() {
    let file = TestDump::new(0);
    file.load(10, 0x7f00_0010_0000, 3 * CHUNK as u64, 1, "large");
    file.load(11, 0x7f00_0000_1000, 16, 2, "small");
    let mut dump = file.open();
    dump.read_on();
    assert_eq!(name(&mut dump, 0x7f00_0010_0000 + 2 * CHUNK as u64, 11).as_deref(), Some("large"));
    assert_eq!(name(&mut dump, 0x7f00_0000_1000, 11).as_deref(), Some("small"));
}

#[test]
fn what_a_record_claims_takes_no_memory() {
    let file = TestDump::new(0);
    file.load(10, 0x1000, 16, 1, "first");
    // Code of 3 GB, which is a hole in the file.
    let size = 3_u32 << 30;
    let fields = [0, 0x10_0000, 0x10_0000, u64::from(size) - 64, 2].map(u64::to_le_bytes).concat();
    let start = [&0_u32.to_le_bytes()[..], &size.to_le_bytes(), &11_u64.to_le_bytes(), &fields, b"sparse\0"];
    file.write(&start.concat());
    file.extend_to(u64::from(size) + file.len() - start.concat().len() as u64);
    // More lines than any program has.
    let size = 512_u32 << 20;
    let start = [&2_u32.to_le_bytes()[..], &size.to_le_bytes(), &12_u64.to_le_bytes()].concat();
    file.write(&start);
    file.extend_to(u64::from(size) + file.len() - start.len() as u64);
    file.load(13, 0x7f00_0000_2000, 16, 3, "last");
    let mut dump = file.open();
    dump.read_on();
    assert_eq!(name(&mut dump, 0x1001, 13).as_deref(), Some("first"));
    assert_eq!(name(&mut dump, 0x4000_0000, 13).as_deref(), Some("sparse"));
    assert_eq!(name(&mut dump, 0x7f00_0000_2000, 13).as_deref(), Some("last"));
    assert!(dump.is_too_large() && dump.codes.len() == 3);
}

#[test]
fn what_is_beyond_the_budget_is_left_out() {
    let mut file = TestDump::new(0);
    file.budget = nyquist_perf::Budget::new(100_000);
    let long = "x".repeat(100);
    (0..1000).for_each(|number| file.load(number, 0x1000 + 16 * number, 16, number, &long));
    let mut dump = file.open();
    dump.read_on();
    assert!(dump.is_too_large() && dump.is_read_up_to(Timestamp(u64::MAX)));
    assert!((50..200).contains(&dump.codes.len()), "{}", dump.codes.len());
    assert_eq!(name(&mut dump, 0x1000, 1000), Some(long));
}

#[test]
fn times_of_a_clock_that_is_ahead_are_put_back() {
    let file = TestDump::new(0);
    file.load(1010, 0x1000, 16, 1, "f");
    let mut dump = file.open().with_clock_ahead(1000);
    dump.read_on();
    assert!(dump.is_read_up_to(Timestamp(9)) && !dump.is_read_up_to(Timestamp(10)));
    assert_eq!(name(&mut dump, 0x1000, 9), None);
    assert_eq!(name(&mut dump, 0x1000, 10).as_deref(), Some("f"));
}

#[test]
fn times_of_another_clock_are_only_an_order() {
    let file = TestDump::new(1);
    file.load(1_000_000, 0x1000, 16, 1, "f");
    let mut dump = file.open();
    dump.read_on();
    assert!(!dump.is_read_up_to(Timestamp(5)));
    assert_eq!(name(&mut dump, 0x1000, 5).as_deref(), Some("f"));
}

#[test]
fn damage_ends_the_file_and_keeps_what_precedes() {
    let file = TestDump::new(0);
    file.load(10, 0x1000, 16, 1, "f");
    file.write(&[0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    file.load(11, 0x2000, 16, 2, "g");
    let mut dump = file.open();
    dump.read_on();
    assert!(dump.is_read_up_to(Timestamp(u64::MAX)));
    assert_eq!(name(&mut dump, 0x1000, 12).as_deref(), Some("f"));
    assert_eq!(name(&mut dump, 0x2000, 12), None);
}

#[test]
fn lines_belong_to_the_code_that_follows() {
    let file = TestDump::new(0);
    file.lines(9, 0x1000, &[(0x1000, 4, "/x.js"), (0x1008, 5, "\u{ff}")]);
    file.load(10, 0x1000, 16, 1, "f");
    file.load(11, 0x2000, 16, 2, "g");
    let mut dump = file.open();
    dump.read_on();
    let lines: Vec<_> = dump.codes[0].lines.iter().map(|line| (line.offset, line.number)).collect();
    assert_eq!(lines, [(0, 4), (8, 5)]);
    assert_eq!(dump.codes[1].lines, []);
}

#[test]
fn code_without_a_machine_is_of_its_process() {
    let (file, other) = (TestDump::new(0), TestDump::new(0));
    file.set_machine(0);
    let mut dump = file.open().of_process(Architecture::Aarch64);
    dump.read_on();
    assert_eq!(dump.architecture(), Architecture::Aarch64);
    let mut dump = other.open().of_process(Architecture::Aarch64);
    dump.read_on();
    assert_eq!(dump.architecture(), Architecture::X86_64, "the header states it");
}

#[test]
fn only_code_with_unwind_info_is_described() {
    let file = TestDump::new(0);
    file.load(10, 0x1000, 16, 1, "plain");
    file.unwinding(11, &[0; 8]);
    file.load(11, 0x2000, 16, 2, "described");
    let mut dump = file.open();
    dump.read_on();
    let described = |range| dump.unwindable().within(&range).count();
    assert_eq!([described(0x1000..0x1010), described(0x2000..0x2010)], [0, 1]);
}
