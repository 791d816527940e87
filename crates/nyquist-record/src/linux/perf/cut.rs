//! Samples whose stack may go on behind its copy, as the reader comes by them: told to whoever looks after the rest.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;

use super::skim::{SampleLayout, THREAD_AT, stack, stack_pointer};

/// Where a sample says whose it is (`PERF_SAMPLE_TID`).
const PROCESS_AT: usize = THREAD_AT - 4;

/// How often the rings are looked at while there are such samples: what is read later is younger than they are.
const LOOK_EVERY_MS: u32 = 3;

/// A copy behind which the stack may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) time_ns: u64,
    /// The stack pointer, from which on it was copied.
    pub(crate) start: u64,
    /// The first address that was not copied.
    pub(crate) end: u64,
}

/// Finds the copy in a sample that was copied out of a ring.
fn cut_of(sample: &[u8], layout: &SampleLayout) -> Option<Cut> {
    let word = |at: usize| Some(u64::from_ne_bytes(*sample.get(at..)?.first_chunk()?));
    let number = |at: usize| Some(u32::from_ne_bytes(*sample.get(at..)?.first_chunk()?));
    let read = |position: u64, out: &mut [u8]| {
        let from = sample.get(position as usize..).and_then(|from| from.get(..out.len()));
        out.copy_from_slice(from.unwrap_or(&[0; 8]));
    };
    let stack = stack(&read, 0, sample.len(), layout)?;
    let pointer = stack_pointer(&read, 0, &stack, layout)?;
    let (pid, tid) = (number(PROCESS_AT)?, number(THREAD_AT)?);
    let end = pointer.checked_add(stack.len as u64)?;
    Some(Cut { pid, tid, time_ns: word(layout.time_at)?, start: pointer, end })
}

/// What the reader and the one who looks after outer stacks tell each other without waiting.
#[derive(Debug, Default)]
pub(crate) struct Attention {
    /// Until when the rings are to be looked at often, in nanoseconds of the monotonic clock.
    until_ns: AtomicU64,
}

impl Attention {
    pub(crate) fn ask_until(&self, ns: u64) {
        self.until_ns.fetch_max(ns, Ordering::AcqRel);
    }

    /// How long the rings may stay without a look, in ms; `None` where nobody has asked.
    pub(crate) fn look_every_ms(&self, now_ns: u64) -> Option<u32> {
        (now_ns < self.until_ns.load(Ordering::Acquire)).then_some(LOOK_EVERY_MS)
    }
}

/// The reader's end: tells of cut copies.
#[derive(Clone, Debug)]
pub(crate) struct CutTeller {
    pub(crate) out: SyncSender<Cut>,
    pub(crate) attention: Arc<Attention>,
}

impl CutTeller {
    /// Tells of a sample that was copied out of a ring, whose stack may go on behind its copy. Never waits: where too many have been
    /// told, one is left out.
    pub(crate) fn notice(&self, sample: &[u8], layout: &SampleLayout) {
        if let Some(cut) = cut_of(sample, layout) {
            let _ = self.out.try_send(cut);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::perf::attr::{CallGraph, Common, Features, Reach};

    fn layout() -> SampleLayout {
        let common = Common {
            features: Features::ALL,
            reach: Reach::Cpu,
            switches: false,
            call_graph: CallGraph::Auto,
        };
        SampleLayout::new(&common.format())
    }

    /// A sample of process 7, thread 9 at 1000 ns, its stack pointer at 0x5000, with `room` bytes for its stack.
    fn sample(abi: u64, room: u64, len: u64) -> Vec<u8> {
        let mut words = vec![0, 100, 0x1234, 9 << 32 | 7, 1000, 0, 1, 0, abi];
        words.extend((0..20).map(|register| if register == 7 { 0x5000 } else { register }));
        words.push(room);
        words.extend((0..room / 8).chain([len]));
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn a_copy_is_found() {
        let check = |abi, room, len, expected| {
            assert_eq!(cut_of(&sample(abi, room, len), &layout()), expected, "{abi} {room} {len}");
        };
        let cut = |len: u64| Some(Cut { pid: 7, tid: 9, time_ns: 1000, start: 0x5000, end: 0x5000 + len });
        check(2, 4096, 4096, cut(4096));
        check(2, 4096, 4088, cut(4088));
        check(1, 4096, 4096, None);
    }

    #[test]
    fn what_is_no_such_sample_is_passed_over() {
        for len in [0, 7, 40, 100, 300] {
            assert_eq!(cut_of(&sample(2, 4096, 4096)[..len], &layout()), None);
        }
    }

    #[test]
    fn attention_ends_by_itself() {
        let attention = Attention::default();
        assert_eq!(attention.look_every_ms(5), None);
        attention.ask_until(10);
        attention.ask_until(8);
        assert_eq!([9, 10].map(|now| attention.look_every_ms(now)), [Some(LOOK_EVERY_MS), None]);
    }
}
