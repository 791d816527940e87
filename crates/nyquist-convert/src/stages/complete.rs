//! Stacks whose copies ended too early, walked on through what was read of them from the living process.
//!
//! Such a stack is taken only where every doubt that can be had is met: what was read must have been read within
//! milliseconds of the sample; it must join the copy, word by word where the walk has looked, and nearly everywhere else;
//! the walk must come to the root, each frame described by unwind information, each return address behind a call; and
//! whatever was read near the sample and fits it must tell of the same frames.

use std::cell::Cell;

use nyquist_object::Avma;
use nyquist_unwind::{
    AddressSpace, Call, FrameAddress, Registers, StackCopy, StackMemory, Unwinder, WalkEnd,
};
use rustc_hash::FxHashMap;

use super::Stages;
use crate::event::{LiveStack, Pid, Tid, Timestamp};
use crate::live_stacks::fits;
use crate::modules::{ModuleIndex, ModuleStore};
use crate::track::Process;

/// The most return addresses whose calls are remembered.
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

/// The calls before return addresses, as far as they have been looked at: by module and address in it.
pub(crate) type Calls = FxHashMap<(ModuleIndex, u64), Option<Call>>;

/// A copy, and behind it what was read later.
struct Joined<'a> {
    copy: StackCopy<'a>,
    end: u64,
    live: &'a LiveStack,
    /// The words that the walk has looked at in both.
    in_both: Cell<usize>,
    /// Whether one of them was not the same in both.
    differs: Cell<bool>,
}

impl StackMemory for Joined<'_> {
    fn read_u64(&self, address: Avma) -> Option<u64> {
        if let Some(word) = self.copy.read_u64(address) {
            if let Some(later) = self.live.read_u64(address) {
                self.in_both.set(self.in_both.get() + 1);
                self.differs.set(self.differs.get() || later != word);
            }
            return Some(word);
        }
        // What lies below the copy is no stack any more.
        if address.0 >= self.end.saturating_sub(7) { self.live.read_u64(address) } else { None }
    }
}

/// A stack that was walked on.
struct Completed {
    frames: Vec<FrameAddress>,
    /// Whether everything about it fits. Where functions end in jumps to others, not all calls lead to who is called, and
    /// where a frame fills all that both copies have, nothing in it proves that they belong together.
    is_certain: bool,
}

impl Stages {
    /// The whole stack of a sample whose copy ended too early, where it can be had from what was read of it.
    pub(super) fn complete(&mut self, sample: CutSample<'_>) -> Option<Vec<FrameAddress>> {
        let CutSample { id: (pid, tid), time, .. } = sample;
        let process = self.tracker.process(pid, time);
        let mut walker = Walker {
            space: process.address_space(&self.modules, &self.dumps).clone(),
            process,
            modules: &self.modules,
            unwinder: &mut self.unwinder,
            calls: &mut self.calls,
        };
        let mut all = Vec::new();
        for live in self.live_stacks.near(tid, time).filter(|live| live.pid == pid) {
            all.extend(walker.walk_on(sample, live));
        }
        let first = all.first()?;
        if all.iter().any(|other| other.frames != first.frames) {
            self.live_stacks.distrust(tid, time);
            return None;
        }
        let is_certain = all.len() > 1 || first.is_certain;
        is_certain.then(|| all.swap_remove(0).frames)
    }
}

/// What it takes to walk on.
struct Walker<'a> {
    space: AddressSpace,
    process: &'a Process,
    modules: &'a ModuleStore,
    unwinder: &'a mut Unwinder,
    calls: &'a mut Calls,
}

impl Walker<'_> {
    /// Walks a stack once more, beyond the copy through what was read.
    fn walk_on(&mut self, sample: CutSample<'_>, live: &LiveStack) -> Option<Completed> {
        let copy = sample.copy;
        let end = copy.start.0.checked_add(copy.bytes.len() as u64)?;
        if !fits(live, |address| copy.read_u64(address), Avma(end)) {
            return None;
        }
        let memory = Joined { copy, end, live, in_both: Cell::new(0), differs: Cell::new(false) };
        let mut frames = Vec::new();
        let walked =
            self.unwinder.walk(&self.space, sample.registers, &memory, &mut |frame| frames.push(frame));
        if walked != WalkEnd::Root || memory.differs.get() {
            return None;
        }
        let mut is_certain = memory.in_both.get() > 0;
        let outer = sample.found.saturating_sub(1)..frames.len().saturating_sub(1);
        for inner in outer {
            let [inner, outer] = frames.get(inner..inner + 2)? else { return None };
            is_certain &= self.is_called(*inner, *outer)?;
        }
        Some(Completed { frames, is_certain })
    }

    /// Whether an inner frame's function is what the outer one calls; `None` where the outer one calls nothing there, or no
    /// unwind information describes it.
    fn is_called(&mut self, inner: FrameAddress, outer: FrameAddress) -> Option<bool> {
        let FrameAddress::ReturnAddress(back) = outer else { return Some(false) };
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

    fn call_before(&mut self, back: Avma) -> Option<Call> {
        let (module, base) = self.process.find(Avma(back.0.wrapping_sub(1)))?.module?;
        let key = (module, back.0.wrapping_sub(base.0));
        if let Some(known) = self.calls.get(&key) {
            return *known;
        }
        let mut code = [0; Call::LONGEST];
        let start = Avma(back.0.wrapping_sub(Call::LONGEST as u64));
        let read = self.modules.get(module).read_code(base, start, &mut code);
        let call = if read == code.len() { Call::before(&code) } else { None };
        if self.calls.len() >= MOST_CALLS {
            self.calls.clear();
        }
        self.calls.insert(key, call);
        call
    }
}
