//! Stacks whose copies ended too early, walked on through what was read of them from the living process.
//!
//! Such a stack is taken only where every doubt that can be had is met. What was read must have been read within
//! milliseconds of the sample, both before and after it, not counting those in which the thread waited for a CPU. It must join the copy, word by word where the walk has looked, and
//! nearly everywhere else. The walk must come to the root, each frame described by unwind information, each return address
//! behind a call. Whatever was read near the sample and fits it must tell of the same frames, as far as it was read, and
//! must have done so for some time.
//!
//! What this cannot find out: that a thread went back to an outer frame, called what it had called before by another way,
//! with the same 60 kB of inner frames to the word, was sampled, and came back as it was, between two readings.

use std::cell::{Cell, RefCell};

use nyquist_object::Avma;
use nyquist_unwind::{
    AddressSpace, Call, FrameAddress, Registers, StackCopy, StackMemory, Unwinder, WalkEnd,
};
use rustc_hash::FxHashMap;

use super::Stages;
use crate::event::{LiveStack, Pid, Tid, Timestamp};
use crate::modules::index::ModuleIndex;
use crate::modules::store::ModuleStore;
use crate::processes::process::Process;
use crate::unwind::deep_stacks::incomplete::Incomplete;
use crate::unwind::deep_stacks::live_stacks::fits;
use crate::unwind::deep_stacks::stack_copy_feedback::StackCopyFeedback;
use crate::unwind::walk::settled;

/// The most calls that are remembered.
const MOST_CALLS: usize = 1 << 16;

/// A sample whose copy ended too early.
#[derive(Clone, Copy)]
pub(super) struct CutSample<'a> {
    pub(super) id: (Pid, Tid),
    pub(super) time: Timestamp,
    pub(super) registers: &'a Registers,
    pub(super) copy: StackCopy<'a>,
    /// How many frames were found in the copy.
    pub(super) found: usize,
}

/// Whether frames' functions are what the next outer ones call, as far as that has been looked at.
pub(crate) type Calls = FxHashMap<[Code; 2], Option<bool>>;

/// An address in a module that is mapped with its image base at another one.
pub(crate) type Code = (ModuleIndex, Avma, Avma);

/// A copy, and behind it what was read later.
struct CopyThenLive<'a> {
    copy: StackCopy<'a>,
    end: u64,
    live: &'a LiveStack,
    /// The words that the walk has looked at in both.
    in_both: Cell<usize>,
    /// Whether one of them was not the same in both.
    differs: Cell<bool>,
    /// The outermost word that the walk has looked at.
    outermost: Cell<u64>,
    /// The pages behind the copy that it has looked at.
    pages: RefCell<Vec<Avma>>,
    /// Whether it has come to one that was not read.
    has_met_gap: Cell<bool>,
}

impl CopyThenLive<'_> {
    /// What was read of a word behind the copy.
    fn read_live(&self, address: Avma) -> Option<u64> {
        let page = LiveStack::page_of(address);
        if self.live.is_gap(address) {
            self.has_met_gap.set(true);
        } else if self.pages.borrow().last() != Some(&page) {
            self.pages.borrow_mut().push(page);
        }
        let word = self.live.read_u64(address)?;
        self.outermost.set(self.outermost.get().max(address.0));
        Some(word)
    }
}

impl StackMemory for CopyThenLive<'_> {
    fn read_u64(&self, address: Avma) -> Option<u64> {
        if let Some(word) = self.copy.read_u64(address) {
            if let Some(later) = self.live.read_u64(address) {
                self.in_both.set(self.in_both.get() + 1);
                self.differs.set(self.differs.get() || later != word);
            }
            return Some(word);
        }
        // What lies below the copy is no stack any more.
        if address.0 >= self.end.saturating_sub(7) { self.read_live(address) } else { None }
    }
}

/// A stack that was walked on.
pub(super) struct Completed {
    pub(super) frames: Vec<FrameAddress>,
    /// Whether these are not all, because a page was not read.
    ends_at_gap: bool,
    /// The outermost word of the stack that the walk has looked at.
    pub(super) outermost: Avma,
    read_at: Timestamp,
    /// Whether both belong together. Where one frame fills all that both have, nothing in it proves that; then all calls must
    /// lead to who is called, which they need not where functions end in jumps to others.
    is_joined: bool,
}

impl Completed {
    /// Whether what was read then is of another stack than what was read now.
    fn contradicts(&self, other: &Self) -> bool {
        let both = match (self.ends_at_gap, other.ends_at_gap) {
            (false, false) => usize::MAX,
            (true, false) => self.frames.len(),
            (false, true) => other.frames.len(),
            (true, true) => self.frames.len().min(other.frames.len()),
        };
        self.frames.iter().take(both).ne(other.frames.iter().take(both))
    }
}

impl Stages {
    /// The whole stack of a sample whose copy ended too early, where it can be had from what was read of it.
    pub(super) fn complete(&mut self, sample: CutSample<'_>) -> Result<Completed, Incomplete> {
        let CutSample { id: (pid, tid), time, .. } = sample;
        let interval = self.interval();
        if self.live_stacks.is_distrusted(tid, time) {
            return Err(Incomplete::Distrusted);
        }
        let process = self.processes.tracker.process(pid, time);
        let mut walker = Walker {
            space: process.address_space(&self.processes.modules, &self.processes.dumps).clone(),
            process,
            modules: &self.processes.modules,
            unwinder: &mut self.unwinder,
            calls: &mut self.calls,
            copies: &mut self.copies,
        };
        let mut all: Vec<Completed> = Vec::new();
        let mut before = Err(Incomplete::UnreadBefore);
        let mut after = Err(Incomplete::UnreadAfter);
        for live in self.live_stacks.near(tid, time, interval).filter(|live| live.pid == pid) {
            let side = if live.read_at < time { &mut before } else { &mut after };
            match walker.walk_on(sample, live) {
                Ok(completed) => {
                    *side = if completed.ends_at_gap { side.or(Err(Incomplete::Gap)) } else { Ok(()) };
                    all.push(completed);
                }
                Err(why) => *side = side.or(Err(why)),
            }
        }
        if all.iter().any(|one| all.iter().any(|other| one.contradicts(other))) {
            self.live_stacks.contradict(tid, time);
            return Err(Incomplete::Contradicted);
        }
        all.retain(|completed| !completed.ends_at_gap);
        let last = all.first().map(|last| last.read_at).filter(|_| all.len() > 1);
        let is_tested = last.is_some_and(|read_at| self.live_stacks.agree(tid, time, read_at));
        before.and(after)?;
        let last = all.into_iter().next().filter(|_| is_tested).ok_or(Incomplete::Untested)?;
        if last.is_joined { Ok(last) } else { Err(Incomplete::Unjoined) }
    }
}

/// What it takes to walk on.
struct Walker<'a> {
    space: AddressSpace,
    process: &'a Process,
    modules: &'a ModuleStore,
    unwinder: &'a mut Unwinder,
    calls: &'a mut Calls,
    /// What is told of the pages that are of use.
    copies: &'a mut StackCopyFeedback,
}

impl Walker<'_> {
    /// Walks a stack once more, beyond the copy through what was read.
    fn walk_on(&mut self, sample: CutSample<'_>, live: &LiveStack) -> Result<Completed, Incomplete> {
        let copy = sample.copy;
        let end = copy.start.0.saturating_add(copy.bytes.len() as u64);
        if !fits(live, copy) {
            return Err(Incomplete::Misfit);
        }
        let memory = CopyThenLive {
            copy,
            end,
            live,
            in_both: Cell::new(0),
            differs: Cell::new(false),
            outermost: Cell::new(0),
            pages: RefCell::default(),
            has_met_gap: Cell::new(false),
        };
        let mut frames = Vec::new();
        let walked =
            self.unwinder.walk(&self.space, sample.registers, &memory, &mut |frame| frames.push(frame));
        let walked = settled(walked, &mut frames);
        if memory.differs.get() {
            return Err(Incomplete::Misfit);
        }
        let (pages, ends_at_gap) = (memory.pages.take(), memory.has_met_gap.get());
        if walked != WalkEnd::Root && !ends_at_gap {
            return Err(Incomplete::Rootless);
        }
        self.copies.note_pages(sample.id.1, &pages, ends_at_gap);
        let all_are_called = self.are_called(&frames, sample.found).ok_or(Incomplete::Uncalled)?;
        let is_joined = memory.in_both.get() > 0 || all_are_called;
        let outermost = Avma(memory.outermost.get());
        Ok(Completed { frames, ends_at_gap, outermost, read_at: live.read_at, is_joined })
    }

    /// Whether each frame's function is what the next outer one calls, from the last of those that were found in the copy
    /// on; `None` where one calls nothing, or no unwind information describes it.
    fn are_called(&mut self, frames: &[FrameAddress], found: usize) -> Option<bool> {
        let mut all_are_called = true;
        for pair in frames.get(found.saturating_sub(1)..)?.windows(2) {
            let &[inner, outer] = pair else { return None };
            all_are_called &= self.is_called(inner, outer)?;
        }
        Some(all_are_called)
    }

    /// Whether an inner frame's function is what the outer one calls; `None` where the outer one calls nothing there, or no
    /// unwind information describes it.
    fn is_called(&mut self, inner: FrameAddress, outer: FrameAddress) -> Option<bool> {
        let back = match outer {
            FrameAddress::ReturnAddress(back) => back,
            // A wrong walk comes upon addresses of functions, too, to which nothing returns.
            FrameAddress::InstructionPointer(at) => {
                return (self.space.function_at(at) != Some(at)).then_some(false);
            }
        };
        let code = |frame: FrameAddress| {
            let (module, base) = self.process.find(frame.lookup_address())?.module?;
            Some((module, base, frame.lookup_address()))
        };
        let Some(call) = code(inner).zip(code(outer)).map(|(inner, outer)| [inner, outer]) else {
            return self.calls_function_of(back, inner);
        };
        if let Some(known) = self.calls.get(&call) {
            return *known;
        }
        let is_called = self.calls_function_of(back, inner);
        if self.calls.len() >= MOST_CALLS {
            self.calls.clear();
        }
        self.calls.insert(call, is_called);
        is_called
    }

    /// The same, looked at anew.
    fn calls_function_of(&self, back: Avma, inner: FrameAddress) -> Option<bool> {
        let outer = FrameAddress::ReturnAddress(back);
        self.space.function_at(outer.lookup_address())?;
        match self.call_before(back)? {
            Call::Indirect => Some(true),
            Call::Direct(distance) => {
                let target = Avma(back.0.wrapping_add_signed(i64::from(distance)));
                // A target in the middle of what is described as one is a stub, which leads anywhere.
                let is_function = self.space.function_at(target) == Some(target);
                Some(!is_function || self.space.function_at(inner.lookup_address()) == Some(target))
            }
        }
    }

    /// The call that ends at a return address.
    fn call_before(&self, back: Avma) -> Option<Call> {
        let (module, base) = self.process.find(Avma(back.0.wrapping_sub(1)))?.module?;
        let mut code = [0; Call::LONGEST];
        let start = Avma(back.0.wrapping_sub(Call::LONGEST as u64));
        let read = self.modules.get(module).read_code(base, start, &mut code);
        if read == code.len() { Call::before(&code) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    #[test]
    fn a_word_behind_the_copy_is_read_where_its_page_was() {
        let page = |byte: u8| Bytes::from(vec![byte; LiveStack::PAGE]);
        let pages = vec![page(1), page(2), Bytes::new(), page(3)];
        let (pid, tid, read_at, start) = (Pid(1), Tid(1), Timestamp(5), Avma(0x1000));
        let live = LiveStack { pid, tid, read_at, start, pages };
        let copied = [1; 0x800];
        let joined = || CopyThenLive {
            copy: StackCopy { start: Avma(0x1000), bytes: &copied },
            end: 0x1800,
            live: &live,
            in_both: Cell::new(0),
            differs: Cell::new(false),
            outermost: Cell::new(0),
            pages: RefCell::default(),
            has_met_gap: Cell::new(false),
        };
        let check = |addresses: &[u64], words: &[Option<u8>], pages: &[u64], has_met_gap: bool| {
            let memory = joined();
            let read: Vec<_> = addresses.iter().map(|address| memory.read_u64(Avma(*address))).collect();
            let words: Vec<_> =
                words.iter().map(|word| word.map(|byte| u64::from_le_bytes([byte; 8]))).collect();
            assert_eq!(read, words, "{addresses:x?}");
            assert_eq!(memory.pages.take(), pages.iter().copied().map(Avma).collect::<Vec<_>>());
            assert_eq!(memory.has_met_gap.get(), has_met_gap, "{addresses:x?}");
        };
        check(
            &[0x17f8, 0x1800, 0x2008, 0x2010],
            &[Some(1), Some(1), Some(2), Some(2)],
            &[0x1000, 0x2000],
            false,
        );
        check(&[0x4000, 0x3000], &[Some(3), None], &[0x4000], true);
        check(&[0xff8, 0x1000], &[None, Some(1)], &[], false);
    }

    #[test]
    fn readings_contradict_each_other_as_far_as_both_were_walked() {
        let walked = |frames: &[u64], ends_at_gap: bool| Completed {
            frames: frames.iter().map(|frame| FrameAddress::ReturnAddress(Avma(*frame))).collect(),
            ends_at_gap,
            outermost: Avma(0),
            read_at: Timestamp(0),
            is_joined: true,
        };
        let check = |one: Completed, other: Completed, expected: bool| {
            assert_eq!([one.contradicts(&other), other.contradicts(&one)], [expected; 2]);
        };
        check(walked(&[1, 2, 3], false), walked(&[1, 2, 3], false), false);
        check(walked(&[1, 2, 3], false), walked(&[1, 2], false), true);
        check(walked(&[1, 2, 3], false), walked(&[1, 2], true), false);
        check(walked(&[1, 2, 3], false), walked(&[1, 4], true), true);
        check(walked(&[1, 2], false), walked(&[1, 2, 3], true), true);
        check(walked(&[1, 2, 3], true), walked(&[1, 2], true), false);
        check(walked(&[1, 2, 3], true), walked(&[1, 4], true), true);
    }
}
