//! Stacks whose copies ended too early: which readings of the living process's memory complete them, and
//! which do not.

use crate::converter::Converter;
use crate::converter::tests::occurrences::event;
use crate::converter::tests::{MS, at, converter, sample};
use crate::event::{
    Event, EventKind, LiveStack, MappedFile, Mapping, Occurrence, Pid, Registers, Tid, Timestamp, UserStack,
};
use crate::unwind::deep_stacks::incomplete::Incomplete;
use nyquist_object::{Avma, FileOffset};
use nyquist_profile::{self as profile, well_known};
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io::Write as _;
use std::ops::Range;
use std::os::unix::fs::MetadataExt as _;
use std::sync::LazyLock;

/// Where the code is, in the program's file and relative to the file's mapping.
const CODE: u64 = 0x1000;
const CODE_LEN: u64 = 0x1000;
const BASE: u64 = 0x5000_0000;
/// The size of each function in bytes.
const FUNCTION: u64 = 0x100;
/// The number of functions. All but the first one have frames of a page, and a thread begins in the last one.
const FUNCTIONS: u64 = 5;
/// A function that no unwind information describes.
const UNDESCRIBED: u64 = 8;

/// The first page of the stack, the offset of the innermost return address in it, and the first word that was
/// not copied.
const STACK: u64 = 0x7fff_0000_0000;
const INNERMOST: u64 = 0x800;
const COPY_END: u64 = 0x2400;
/// The first of the words that are compared to check whether a reading fits the copy.
const COMPARED: u64 = COPY_END - 0x1000;

const WHOLE: &str = "*4 *3 2 1 0";
const CUT: &str = "(truncated: stack copy ended after 7 kB) 2 1 0";

/// The callees of functions, at one place each.
#[derive(Clone, Copy)]
enum Calls {
    /// The function before it.
    Inner,
    /// The function before it, called at another place.
    InnerAgain,
    /// The first function.
    First,
    /// An address in the middle of a function, as the target of a jump may be.
    Stub,
    /// A function pointer in a register.
    Register,
    Nothing,
}

/// The address that a call at this place of a function returns to.
const fn returns_to(function: u64, calls: Calls) -> u64 {
    BASE + CODE + FUNCTION * function + 0x20 * (calls as u64 + 1)
}

/// The return addresses of the whole stack, from that of the first function on.
const RETURNS: [u64; 4] = [
    returns_to(1, Calls::Inner),
    returns_to(2, Calls::Inner),
    returns_to(3, Calls::Inner),
    returns_to(4, Calls::Inner),
];

fn code() -> Vec<u8> {
    const NOP: u8 = 0x90;
    let mut code = vec![NOP; CODE_LEN as usize];
    for function in 0..CODE_LEN / FUNCTION {
        let mut put = |calls: Calls, instruction: &[u8]| {
            let back = (returns_to(function, calls) - BASE - CODE) as usize;
            code[back - instruction.len()..back].copy_from_slice(instruction);
        };
        let inner = (FUNCTION * function).wrapping_sub(FUNCTION);
        for (calls, target) in
            [(Calls::Inner, inner), (Calls::InnerAgain, inner), (Calls::First, 0), (Calls::Stub, 0x18)]
        {
            let distance =
                (BASE + CODE).wrapping_add(target).wrapping_sub(returns_to(function, calls)) as u32;
            put(calls, &[&[0xe8][..], &distance.to_le_bytes()].concat());
        }
        put(Calls::Register, &[0xff, 0xd0]);
    }
    code
}

/// The section `.debug_frame` (DWARF 5, section 6.4.1).
fn unwind_information() -> Vec<u8> {
    let entry = |id: u32, body: &[u8]| {
        let mut bytes = [&id.to_le_bytes(), body].concat();
        bytes.resize(bytes.len().next_multiple_of(8) + 4, 0);
        [&(bytes.len() as u32).to_le_bytes(), &bytes[..]].concat()
    };
    // The stack pointer points to the return address, unless a function has another rule.
    let mut section = entry(u32::MAX, &[4, 0, 8, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1]);
    for function in 0..FUNCTIONS {
        let rule: &[u8] = match function {
            0 => &[],
            // The whole frame is 0x1000 bytes; or the return address is unknown.
            1..4 => &[0x0e, 0x80, 0x20],
            _ => &[0x07, 16],
        };
        let range = [CODE + FUNCTION * function, FUNCTION].map(u64::to_le_bytes).concat();
        section.extend(entry(0, &[&range, rule].concat()));
    }
    section
}

/// An ELF file for 64-bit x86 with this code and unwind information.
fn program() -> Vec<u8> {
    const SECTIONS: u64 = CODE + CODE_LEN;
    const NAMES: u64 = SECTIONS + 3 * 64;
    let (names, unwind_information) = (b"\0.debug_frame\0", unwind_information());
    let section = |name: u32, kind: u32, at: u64, len: usize| {
        let words = [0, 0, at, len as u64, 0, 1, 0].map(u64::to_le_bytes).concat();
        [[name, kind].map(u32::to_le_bytes).concat(), words].concat()
    };
    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0\x01\0\0\0".to_vec();
    file.extend([0, 64, SECTIONS].map(u64::to_le_bytes).concat());
    file.extend([0_u16, 0, 64, 56, 1, 64, 3, 2].map(u16::to_le_bytes).concat());
    // All up to the end of the code is one segment, at the same place in memory.
    file.extend([1_u32, 5].map(u32::to_le_bytes).concat());
    file.extend([0, 0, 0, SECTIONS, SECTIONS, 0x1000].map(u64::to_le_bytes).concat());
    file.resize(CODE as usize, 0);
    file.extend(code());
    file.extend(section(0, 0, 0, 0));
    file.extend(section(1, 1, NAMES + names.len() as u64, unwind_information.len()));
    file.extend(section(0, 3, NAMES, names.len()));
    file.extend(names);
    file.extend(unwind_information);
    file
}

/// The program's file. It is in memory, so that no file is left behind.
static PROGRAM: LazyLock<File> = LazyLock::new(|| {
    let mut file = File::from(memfd_create("nyquist-completing", MemfdFlags::CLOEXEC).unwrap());
    file.write_all(&program()).unwrap();
    file
});

fn map_program() -> EventKind {
    let inode = PROGRAM.metadata().unwrap().ino();
    EventKind::Map(Mapping {
        pid: Some(Pid(std::process::id())),
        start: Avma(BASE),
        len: CODE + CODE_LEN,
        offset: FileOffset(0),
        path: "/memfd:nyquist-completing (deleted)".into(),
        identity: MappedFile::Inode { major: 0, minor: 1, inode, generation: 0 },
    })
}

/// The four pages of a stack with these return addresses.
fn stack(returns: [u64; 4]) -> Vec<u8> {
    let mut stack = vec![7; 4 * LiveStack::PAGE];
    for (frame, back) in returns.into_iter().enumerate() {
        stack[INNERMOST as usize + frame * LiveStack::PAGE..][..8].copy_from_slice(&back.to_le_bytes());
    }
    stack
}

/// A sample in the first function, whose stack was copied up to [`COPY_END`].
fn truncated_sample() -> EventKind {
    let me = std::process::id();
    let EventKind::Sample(mut sample) = sample(me, me, None, &[]) else { unreachable!() };
    let mut registers = [0; 17];
    (registers[7], registers[16]) = (STACK + INNERMOST, BASE + CODE + 0x10);
    sample.user = UserStack::Copied {
        registers: Box::new(Registers::X86_64(registers)),
        stack: stack(RETURNS)[INNERMOST as usize..COPY_END as usize].to_vec().into(),
        limited: true,
    };
    EventKind::Sample(sample)
}

/// The part of the thread's memory that was read.
#[derive(Clone)]
struct Reading {
    /// When, in milliseconds after the sample.
    at: i64,
    pid: u32,
    returns: [u64; 4],
    /// How many of the words that are compared with the copy have changed.
    changed: usize,
    pages: Range<usize>,
}

/// A reading that agrees with a sample's stack.
fn good(at: i64) -> Reading {
    Reading { at, pid: std::process::id(), returns: RETURNS, changed: 0, pages: 1..4 }
}

impl Reading {
    /// The event. Its time is before the sample that it is for, and before the time of the reading.
    fn event(&self, sampled_ms: u64) -> Event {
        let read_at = Timestamp(sampled_ms.strict_add_signed(self.at) * MS);
        let mut stack = stack(self.returns);
        stack[COMPARED as usize..][..8 * self.changed].fill(9);
        let mut pages: Vec<Vec<u8>> = stack.chunks(LiveStack::PAGE).map(<[u8]>::to_vec).collect();
        pages.truncate(self.pages.end);
        let live = LiveStack {
            pid: Pid(self.pid),
            tid: Tid(std::process::id()),
            read_at,
            start: Avma(STACK + (self.pages.start * LiveStack::PAGE) as u64),
            pages: pages.drain(self.pages.start..).map(Into::into).collect(),
            stack_pointer: None,
        };
        let time = Timestamp(read_at.0.min(sampled_ms * MS) - 1);
        Event { time, cpu: Some(0), kind: EventKind::LiveStack(live.into()) }
    }
}

/// A converter that gets samples with truncated copies one by one.
struct Recording(Converter);

impl Recording {
    fn begin() -> Self {
        let mut converter = converter(true);
        converter.push(at(1, map_program()));
        Self(converter)
    }

    /// A recording in which enough readings agree, including the reading of the next sample.
    fn trusting() -> Self {
        let mut recording = Self::begin();
        for turn in 1..16 {
            assert_eq!(recording.sample(turn * 10, &[good(-1), good(1)]), Err(Incomplete::Untested));
        }
        recording
    }

    /// The outcome of a sample with these readings.
    fn sample(&mut self, time_ms: u64, readings: &[Reading]) -> Result<(), Incomplete> {
        let before = self.0.statistics();
        for reading in readings {
            self.0.push(reading.event(time_ms));
        }
        self.0.push(at(time_ms, truncated_sample()));
        self.0.advance(Timestamp(time_ms * MS + 1));
        let after = self.0.statistics();
        let why = after.incomplete.into_iter().find(|counted| !before.incomplete.contains(counted));
        let changes = [after.completed - before.completed, after.truncated - before.truncated];
        assert_eq!(changes, if why.is_some() { [0, 1] } else { [1, 0] });
        let by_text = |text| Incomplete::ALL.into_iter().find(|why| why.text() == text);
        why.and_then(|(text, _)| by_text(text)).map_or(Ok(()), Err)
    }

    /// The last sample's stack, root first: each function by its number, with a star if it was found in a
    /// reading.
    fn last_stack(self) -> String {
        let profile = self.0.finish().profile;
        let last = profile.threads()[0].samples.iter().next_back().unwrap();
        let show = |frame: &profile::Frame| {
            let Some(address) = frame.address else { return profile.func_name(frame.func).to_owned() };
            let category = frame.category.unwrap();
            let kind = &profile.category(category.category).subcategories[usize::from(category.subcategory)];
            let star = if kind == well_known::COMPLETED { "*" } else { "" };
            format!("{star}{}", (u64::from(address) - CODE) / FUNCTION)
        };
        let mut frames: Vec<_> = profile.stack_frames(last.stack.unwrap()).map(show).collect();
        frames.reverse();
        frames.join(" ")
    }
}

/// A time long after all readings of a trusted thread.
const LATER: u64 = 10_000;

/// Checks the outcome of a sample of a trusted thread with these readings.
fn check(what: &str, readings: &[Reading], expected: Result<(), Incomplete>) {
    let mut recording = Recording::trusting();
    assert_eq!(recording.sample(LATER, readings), expected, "{what}");
    assert_eq!(recording.last_stack(), if expected.is_ok() { WHOLE } else { CUT }, "{what}");
}

#[test]
fn a_stack_is_whole_if_readings_around_it_agree() {
    let from_another = |at| Reading { pid: std::process::id() + 1, ..good(at) };
    check("both", &[good(-1), good(1)], Ok(()));
    check("none", &[], Err(Incomplete::UnreadBefore));
    check("only after", &[good(1), good(2)], Err(Incomplete::UnreadBefore));
    check("only before", &[good(-2), good(-1)], Err(Incomplete::UnreadAfter));
    check("of another process", &[from_another(-1), from_another(1)], Err(Incomplete::UnreadBefore));
}

/// What was read at the moment of the sample needs no other reading.
#[test]
fn a_stack_read_at_its_sample_is_whole() {
    let outcome = |reading: Reading, stack_pointer: u64| {
        let mut recording = Recording::begin();
        let mut event = reading.event(10);
        let EventKind::LiveStack(live) = &mut event.kind else { unreachable!() };
        let live = LiveStack { stack_pointer: Some(Avma(stack_pointer)), ..(**live).clone() };
        event.kind = EventKind::LiveStack(live.into());
        recording.0.push(event);
        (recording.sample(10, &[]), recording.last_stack())
    };
    let pointer = STACK + INNERMOST;
    assert_eq!(outcome(good(0), pointer), (Ok(()), WHOLE.to_owned()));
    let too_little = Reading { pages: 1..3, ..good(0) };
    assert_eq!(outcome(too_little, pointer), (Err(Incomplete::Rootless), CUT.to_owned()));
    assert_eq!(outcome(good(0), pointer + 8), (Err(Incomplete::UnreadBefore), CUT.to_owned()));
    assert_eq!(outcome(good(-1), pointer), (Err(Incomplete::UnreadBefore), CUT.to_owned()));
}

#[test]
fn one_disagreeing_reading_leaves_a_stack_cut() {
    let outer = |third: u64, fourth: u64| [RETURNS[0], RETURNS[1], third, fourth];
    let other_in_copy = [RETURNS[0], returns_to(2, Calls::InnerAgain), RETURNS[2], RETURNS[3]];
    let other = outer(returns_to(3, Calls::InnerAgain), RETURNS[3]);
    let of_returns = |returns| Reading { returns, ..good(0) };
    let cases = [
        ("other words", Reading { changed: 33, ..good(0) }, Incomplete::Misfit),
        ("another frame in the copy", of_returns(other_in_copy), Incomplete::Misfit),
        ("nothing of the copy", Reading { pages: 3..4, ..good(0) }, Incomplete::Misfit),
        ("another frame behind the copy", of_returns(other), Incomplete::Contradicted),
        ("too little", Reading { pages: 1..3, ..good(0) }, Incomplete::Rootless),
        ("no code", of_returns(outer(RETURNS[2], 0x1234)), Incomplete::Rootless),
        ("no call", of_returns(outer(returns_to(3, Calls::Nothing), RETURNS[3])), Incomplete::Uncalled),
        (
            "no call at the root",
            of_returns(outer(RETURNS[2], returns_to(4, Calls::Nothing))),
            Incomplete::Uncalled,
        ),
        (
            "code without unwind information",
            of_returns(outer(returns_to(UNDESCRIBED, Calls::Inner), RETURNS[3])),
            Incomplete::Uncalled,
        ),
    ];
    for (what, spoilt, expected) in cases {
        let [before, after] = [-1, 1].map(|at| Reading { at, ..spoilt.clone() });
        check(&format!("{what}, before"), &[before, good(1)], Err(expected));
        check(&format!("{what}, after"), &[good(-1), after], Err(expected));
    }
    let few_changes = Reading { changed: 32, ..good(1) };
    check("few other words", &[good(-1), few_changes], Ok(()));
}

#[test]
fn unjoined_copy_and_reading_need_matching_calls() {
    let read_from = |first_page: usize, calls: Calls| {
        let returns = [RETURNS[0], RETURNS[1], returns_to(3, calls), RETURNS[3]];
        [-1, 1].map(|at| Reading { returns, pages: first_page..4, ..good(at) })
    };
    check("another function, joined", &read_from(1, Calls::First), Ok(()));
    check("another function", &read_from(2, Calls::First), Err(Incomplete::NoOverlap));
    check("the function", &read_from(2, Calls::Inner), Ok(()));
    check("a stub", &read_from(2, Calls::Stub), Ok(()));
    check("a register", &read_from(2, Calls::Register), Ok(()));
}

#[test]
fn readings_too_far_from_a_sample_do_not_count() {
    check("soon after", &[good(-1), good(10)], Ok(()));
    check("too late", &[good(-1), good(11)], Err(Incomplete::UnreadAfter));
    check("before it waited", &[good(-500), good(1)], Ok(()));
    check("too long before", &[good(-501), good(1)], Err(Incomplete::UnreadBefore));
    let after_running_for = |samples: u64, read_at: i64| {
        let mut recording = Recording::trusting();
        let me = std::process::id();
        recording.0.push(good(read_at).event(LATER));
        for ago in 1..samples {
            recording.0.push(at(LATER - ago, sample(me, me, None, &[1])));
        }
        recording.sample(LATER, &[good(1)])
    };
    assert_eq!(after_running_for(8, -11), Ok(()));
    assert_eq!(after_running_for(9, -11), Err(Incomplete::UnreadBefore));
    assert_eq!(after_running_for(9, -10), Ok(()));
}

#[test]
fn trust_returns_after_twice_as_many_agreements() {
    let mut recording = Recording::trusting();
    let both = [good(-1), good(1)];
    let other = [RETURNS[0], RETURNS[1], returns_to(3, Calls::InnerAgain), RETURNS[3]];
    let contradicting = [good(-1), Reading { returns: other, ..good(1) }];
    assert_eq!(recording.sample(LATER, &both), Ok(()));
    assert_eq!(recording.sample(LATER + 1000, &contradicting), Err(Incomplete::Contradicted));
    assert_eq!(recording.sample(LATER + 1099, &both), Err(Incomplete::Distrusted));
    for turn in 1..32 {
        assert_eq!(recording.sample(LATER + 2000 + turn * 10, &both), Err(Incomplete::Untested));
    }
    assert_eq!(recording.sample(LATER + 3000, &both), Ok(()));
    assert_eq!(recording.last_stack(), WHOLE);
}

#[test]
fn copies_of_occurrences_are_not_reported() {
    let reported = |is_occurrence: bool| {
        let Recording(mut converter) = Recording::begin();
        let EventKind::Sample(sample) = truncated_sample() else { unreachable!() };
        let kind = if is_occurrence {
            let (kind, values) = (event(10), Vec::new());
            EventKind::Occurrence(Box::new(Occurrence { kind, sample, count: 1, counter: None, values }))
        } else {
            EventKind::Sample(sample)
        };
        converter.push(at(2, kind));
        converter.advance(Timestamp(100 * MS));
        converter.take_stack_copy_feedback().truncated
    };
    assert_eq!([true, false].map(reported), [vec![], vec![Tid(std::process::id())]]);
}
