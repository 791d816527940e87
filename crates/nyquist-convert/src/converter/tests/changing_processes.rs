//! Tests of walks in processes that start, end, map other code and make code.

use super::*;
use crate::event::LiveStack;
use crate::unwind::active_completion::StackCopyFeedback;
use bytes::Bytes;
use std::sync::{Arc, LazyLock};

const STACK: u64 = 0x7fff_0000;
const CODE: u64 = 0x10_0000;
const TURNS: u64 = 2000;

/// A sample of a thread with `calls` frames that have frame pointers. Each frame is in the code that is
/// mapped at `code`.
fn copied(pid: u32, tid: u32, (code, calls): (u64, u64)) -> EventKind {
    let EventKind::Sample(mut sample) = sample(pid, tid, None, &[]) else { unreachable!() };
    let mut registers = [0; 17];
    (registers[6], registers[7], registers[16]) = (STACK + 16, STACK, code + calls);
    let mut stack = vec![0; 256];
    stack[0] = 1;
    for call in 0..calls as usize {
        let at = 2 + 4 * call;
        stack[at] = STACK + 16 + 32 * (call as u64 + 1);
        stack[at + 1] = code + 0x100 + call as u64;
    }
    sample.user = copy_of(registers, &stack, false);
    EventKind::Sample(sample)
}

/// A sample of a thread at the start of a function. The function's first instruction has called the function
/// itself `calls` times. `words` words of the stack were copied.
fn nested(tid: u32, function: u64, calls: usize, words: usize) -> EventKind {
    let EventKind::Sample(mut sample) = sample(std::process::id(), tid, None, &[]) else { unreachable!() };
    let mut registers = [0; 17];
    (registers[7], registers[16]) = (STACK, function);
    let stack = [vec![function + 1; calls], vec![0; 2]].concat();
    let copied = stack.get(..words).unwrap_or(&stack);
    sample.user = copy_of(registers, copied, copied.len() == words);
    EventKind::Sample(sample)
}

/// Code that was generated at run time. At [`LEAVES`] it pops a word off the stack and returns.
static MADE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut code = vec![0xcc; 0x1000];
    code[LEAVES..LEAVES + 5].copy_from_slice(&[0x48, 0x83, 0xc4, 8, 0xc3]);
    code
});
const LEAVES: usize = 0x800;

/// A sample of a thread in generated code that a function has called. The frame pointer register has an
/// arbitrary value. If nothing is known of the code, the value may seem to point to a frame.
fn in_made_code(tid: u32, function: u64, frame_pointer: u64) -> EventKind {
    let EventKind::Sample(mut sample) = sample(std::process::id(), tid, None, &[]) else { unreachable!() };
    let mut registers = [0; 17];
    (registers[6], registers[7], registers[16]) =
        (frame_pointer, STACK, MADE.as_ptr() as u64 + LEAVES as u64);
    sample.user = copy_of(registers, &[7, function + 1, 0, function + 1, function + 1, 0], false);
    EventKind::Sample(sample)
}

fn copy_of(registers: [u64; 17], stack: &[u64], limited: bool) -> UserStack {
    let stack: Vec<u8> = stack.iter().flat_map(|word| word.to_le_bytes()).collect();
    UserStack::Copied { registers: Box::new(Registers::X86_64(registers)), stack: stack.into(), limited }
}

/// The code of this program, as it is mapped in its process.
fn own_code(address: u64) -> EventKind {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let mapping = maps.lines().find_map(|line| {
        let fields: Vec<_> = line.split_ascii_whitespace().collect();
        let (start, end) = fields[0].split_once('-')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        let (start, end) = (number(start)?, number(end)?);
        (start..end).contains(&address).then(|| Mapping {
            pid: Some(Pid(std::process::id())),
            start: Avma(start),
            len: end - start,
            offset: FileOffset(number(fields[2]).unwrap()),
            path: fields[5].to_owned(),
            identity: MappedFile::Unknown,
        })
    });
    EventKind::Map(mapping.unwrap())
}

/// Two processes with threads that are born and end, map other code, and become other programs, and one that
/// makes code.
fn events() -> Vec<EventKind> {
    let map = super::frame_pointers::map_code;
    let (me, function) = (std::process::id(), events as fn() -> Vec<EventKind> as usize as u64);
    let mut events = vec![
        name(me, me, "me", true),
        own_code(function),
        map(me, MADE.as_ptr() as u64, MADE.len() as u64),
        name(1, 1, "app", true),
        map(1, CODE, 0x1000),
        name(2, 2, "other", true),
        map(2, 2 * CODE, 0x1000),
        fork(3, 3, 1),
        map_dump(3),
    ];
    for turn in 0..TURNS {
        let calls = turn % 9;
        let tid = 10 + (turn % 3) as u32;
        events.push(nested(me, function, 4, 1 + calls as usize));
        events.push(in_made_code(me, function, if turn % 2 == 0 { 5 } else { STACK + 16 }));
        events.push(copied(1, 1, (CODE, calls)));
        events.push(copied(1, tid, (CODE, calls)));
        events.push(copied(2, 2, (2 * CODE, 2 * calls)));
        events.push(copied(3, 3, (CODE, calls)));
        match turn % 100 {
            20 => events.push(fork(100 + turn as u32, 100 + turn as u32, 2)),
            21 => events.push(copied(99 + turn as u32, 99 + turn as u32, (2 * CODE, 3))),
            40 => events.push(name(2, 2, "again", true)),
            // Its mappings are not known until then.
            45 => events.push(map(2, 2 * CODE, 0x1000)),
            60 => events.push(exit(1, tid)),
            80..83 => events.push(EventKind::LiveStack(Arc::new(LiveStack {
                pid: Pid(me),
                tid: Tid(me),
                read_at: Timestamp((events.len() as u64 + 1) * MS),
                start: Avma(STACK & !0xfff),
                pages: vec![Bytes::from(vec![0; LiveStack::PAGE])],
                stack_pointer: None,
            }))),
            _ => {}
        }
    }
    events
}

fn map_dump(pid: u32) -> EventKind {
    let EventKind::Map(mapping) = super::frame_pointers::map_code(pid, 8 * CODE, 0x1000) else {
        unreachable!()
    };
    EventKind::Map(Mapping { path: format!("/nowhere/jit-{pid}.dump"), ..mapping })
}

/// The profile of the events, and the feedback on their copies.
pub(crate) fn converted() -> (ConversionResult, Vec<StackCopyFeedback>) {
    let mut converter = converter(true);
    let mut feedback = Vec::new();
    for (time, event) in (1..).zip(events()) {
        converter.push(at(time, event));
        if time % 3000 == 0 {
            converter.advance(Timestamp(time * MS));
            feedback.push(converter.take_stack_copy_feedback());
        }
    }
    (converter.finish(), feedback)
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "/proc has the mappings and the memory of a process")]
fn stacks_of_changing_processes_are_walked() {
    let (finished, _) = converted();
    let stacks = folded(&finished.profile);
    assert!(stacks.iter().any(|stack| stack.matches(';').count() >= 8), "{:?}", &stacks[..100]);
    let made = format!("{:#x} 1", MADE.as_ptr() as usize + LEAVES);
    let left: Vec<_> = stacks.iter().filter_map(|stack| stack.strip_suffix(&made)).collect();
    assert_eq!(left.len() as u64, TURNS);
    assert!(left[2..].iter().all(|callers| callers.matches(';').count() == 1), "{:?}", &left[..9]);
    assert!(finished.statistics.truncated > 100);
}
