//! Steps of this unwinder and of framehop from frames that the instructions themselves describe (`truth.rs`).
//!
//! Each word of the stack holds its own address and a distance more, so that where a return address and a frame pointer
//! were read shows in what the steps lead to.

use crate::instruction::State;
use crate::known;
use crate::truth::Instruction;
use anyhow::{Result, ensure};
use framehop::aarch64::{CacheAarch64, UnwindRegsAarch64, UnwinderAarch64};
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{FrameAddress, ModuleSectionInfo, Unwinder as _};
use nyquist_object::{Architecture, Avma};
use nyquist_unwind::{AddressSpace, Module, Registers, StackMemory, Unwinder};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Where the stack is. Its words look like addresses of code that nothing describes.
const STACK: u64 = 0x7000_0000_0000;
const STACK_LEN: u64 = 1 << 32;
const SP: u64 = STACK + (1 << 30);
/// How much more than its address a word holds.
const FURTHER: u64 = 1 << 28;
/// Where the frame pointer of a caller is, above its callee's frame; and the return address in the link register.
const CALLERS_FRAME: u64 = 1 << 20;
const LINK: u64 = STACK + 0x100;
/// How much of the stack an instruction takes that does not say how much.
const DYNAMIC: i64 = 0x2000;

struct Stack;

impl StackMemory for Stack {
    fn read_u64(&self, address: Avma) -> Option<u64> {
        (STACK..STACK + STACK_LEN).contains(&address.0).then_some(address.0 + FURTHER)
    }
}

/// A frame in memory.
pub struct Frame {
    state: State,
    /// Its canonical frame address.
    cfa: u64,
}

impl Frame {
    /// `None` where neither the stack pointer nor the frame pointer leads anywhere.
    pub fn of(state: State) -> Option<Self> {
        let depth = state.sp.or_else(|| state.fp.map(|fp| fp + DYNAMIC))?;
        Some(Self { state, cfa: SP.wrapping_add_signed(depth) })
    }

    fn place(&self, below: i64) -> u64 {
        self.cfa.wrapping_add_signed(-below)
    }

    fn frame_pointer(&self) -> u64 {
        self.state.fp.map_or(self.cfa + CALLERS_FRAME, |fp| self.place(fp))
    }

    /// The return address, and that of the caller, which has a frame record.
    fn expected(&self) -> [u64; 2] {
        let link = self.state.saved_lr.map_or(LINK, |place| self.place(place) + FURTHER);
        let callers =
            self.state.saved_fp.map_or(self.cfa + CALLERS_FRAME, |place| self.place(place) + FURTHER);
        [link, callers + 8 + FURTHER]
    }

    /// Where a return address was read, as seen from the frame.
    fn describe(&self, found: Option<u64>) -> &'static str {
        let Some(found) = found else { return "nothing" };
        match found.wrapping_sub(FURTHER) {
            _ if found == LINK => "the link register",
            SP => "the stack pointer",
            place if (SP..self.cfa).contains(&place) => "a place in the frame",
            place if place == self.frame_pointer() + 8 => "above the frame pointer",
            place if place >= self.cfa => "beyond the frame",
            _ => "elsewhere",
        }
    }
}

/// framehop with one module.
pub enum Peer {
    /// For 64-bit x86.
    X86_64(UnwinderX86_64<Vec<u8>>),
    /// For 64-bit ARM.
    Aarch64(UnwinderAarch64<Vec<u8>>),
}

impl Peer {
    /// framehop with a module at its own base.
    pub fn new(
        architecture: Architecture,
        range: Range<u64>,
        sections: impl ModuleSectionInfo<Vec<u8>>,
    ) -> Self {
        let base = range.start;
        let module = framehop::Module::new(String::new(), range, base, sections);
        if architecture == Architecture::Aarch64 {
            let mut unwinder = UnwinderAarch64::new();
            unwinder.add_module(module);
            return Self::Aarch64(unwinder);
        }
        let mut unwinder = UnwinderX86_64::new();
        unwinder.add_module(module);
        Self::X86_64(unwinder)
    }

    /// The return address; `None` where it gives up.
    fn step(&self, frame: &Frame, address: u64) -> Option<u64> {
        let mut read = |address| Stack.read_u64(Avma(address)).ok_or(());
        let at = FrameAddress::from_instruction_pointer(address);
        let fp = frame.frame_pointer();
        let next = match self {
            Self::Aarch64(peer) => {
                let mut registers = UnwindRegsAarch64::new(LINK, SP, fp);
                peer.unwind_frame(at, &mut registers, &mut CacheAarch64::new(), &mut read)
            }
            Self::X86_64(peer) => {
                let mut registers = UnwindRegsX86_64::new(address, SP, fp);
                peer.unwind_frame(at, &mut registers, &mut CacheX86_64::new(), &mut read)
            }
        };
        next.ok().flatten()
    }
}

/// Compares steps, and keeps count.
pub struct Comparison {
    walker: Unwinder,
    classes: BTreeMap<String, Vec<u64>>,
    shown: usize,
    /// How many steps were compared.
    pub steps: usize,
    /// How many of them were wrong here.
    pub wrong: usize,
}

impl Comparison {
    /// None so far. Shows so many of framehop's of each class.
    pub fn new(shown: usize) -> Self {
        Self { walker: Unwinder::new(), classes: BTreeMap::new(), shown, steps: 0, wrong: 0 }
    }

    /// The module at its own base.
    pub fn space(module: &Arc<Module>, range: &Range<u64>) -> AddressSpace {
        let mut space = AddressSpace::new();
        space.map(Avma(range.start), range.end - range.start, Avma(range.start), Arc::clone(module));
        space.map_code(Avma(STACK), STACK_LEN);
        space
    }

    /// Compares the steps from an instruction of a file of this kind.
    pub fn add(
        &mut self,
        kind: &str,
        (space, peer): (&AddressSpace, Option<&Peer>),
        (address, instruction): (u64, &Instruction),
        state: State,
    ) {
        let Some(frame) = Frame::of(state) else { return };
        self.steps += 1;
        let (found, requested) = (self.walk(kind, space, &frame, address), frame.expected());
        if found != requested {
            self.wrong += 1;
            if self.wrong <= 20 {
                println!("  {address:#x}: {found:x?}, not {requested:x?} of {state:?}");
            }
        }
        let Some(peer) = peer else { return };
        let theirs = peer.step(&frame, address);
        if theirs != Some(requested[0]) {
            let (read, right) = (frame.describe(theirs), frame.describe(Some(requested[0])));
            let class = format!("{kind}, at {}: framehop takes {read}, right is {right}", name(instruction));
            self.classes.entry(class).or_default().push(address);
        }
    }

    fn walk(&mut self, kind: &str, space: &AddressSpace, frame: &Frame, address: u64) -> Vec<u64> {
        let registers = if kind.ends_with("arm64") {
            let mut values = [0x10; 33];
            (values[29], values[30], values[31], values[32]) = (frame.frame_pointer(), LINK, SP, address);
            Registers::Aarch64(values)
        } else {
            let mut values = [0x10; 17];
            (values[6], values[7], values[16]) = (frame.frame_pointer(), SP, address);
            Registers::X86_64(values)
        };
        let mut frames = Vec::new();
        self.walker.walk(space, &registers, &Stack, &mut |frame| frames.push(frame.address().0));
        frames.into_iter().skip(1).take(2).collect()
    }

    /// Fails on a step that was wrong here, and on a class of framehop's that the list does not have, or has less of.
    pub fn check(&self) -> Result<()> {
        let mut unlisted = 0;
        for (class, found) in &self.classes {
            if self.shown > 0 {
                println!("  {:x?}", &found[..found.len().min(self.shown)]);
            }
            if let Err(error) = known::check(class, found.len(), self.steps) {
                println!("{error}");
                unlisted += 1;
            }
        }
        ensure!(self.wrong == 0, "{} of {} steps are wrong", self.wrong, self.steps);
        ensure!(unlisted == 0, "{unlisted} ways in which framehop's steps differ are not listed");
        Ok(())
    }
}

/// Which of the instructions that matter to prologues and epilogues it is.
fn name((name, _): &Instruction) -> &'static str {
    match name.as_str() {
        "b" | "br" | "jmp" | "rex64" => "a jump",
        name if name.starts_with('j') || name.starts_with("b.") => "a branch",
        name if name.starts_with("ret") => "a return",
        "pop" | "ldp" | "ldr" | "leave" => "a load",
        _ => "another instruction",
    }
}
