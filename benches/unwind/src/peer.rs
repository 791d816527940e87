//! framehop on the same modules and stacks.

use framehop::aarch64::{CacheAarch64, UnwindRegsAarch64, UnwinderAarch64};
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, FrameAddress, Unwinder};
use nyquist_object::{ByteSource, Elf};
use nyquist_unwind::{Registers, StackCopy, StackMemory};
use std::ops::Range;
use std::sync::Arc;

type Bytes = Arc<[u8]>;

/// What framehop wants of a module.
#[derive(Clone)]
pub struct PeerModule {
    base: u64,
    sections: Vec<(&'static str, Range<u64>, Bytes)>,
}

impl PeerModule {
    /// Reads the sections.
    pub fn read<S: ByteSource>(elf: &Elf<S>) -> Self {
        let names = [".text", ".got", ".eh_frame", ".eh_frame_hdr", ".debug_frame"];
        let read = |name| {
            let section = elf.section(name)?;
            let bytes = elf.section_data(name).ok()??;
            Some((name, section.address.0..section.address.0 + section.size, bytes.into()))
        };
        Self { base: elf.image_base().0, sections: names.into_iter().filter_map(read).collect() }
    }

    fn info(&self) -> ExplicitModuleSectionInfo<Bytes> {
        let find = |name| self.sections.iter().find(|section| section.0 == name);
        let range = |name| find(name).map(|section| section.1.clone());
        let bytes = |name| find(name).map(|section| section.2.clone());
        ExplicitModuleSectionInfo {
            base_svma: self.base,
            text_svma: range(".text"),
            text: bytes(".text"),
            got_svma: range(".got"),
            eh_frame_svma: range(".eh_frame"),
            eh_frame: bytes(".eh_frame"),
            eh_frame_hdr_svma: range(".eh_frame_hdr"),
            eh_frame_hdr: bytes(".eh_frame_hdr"),
            debug_frame: bytes(".debug_frame"),
            ..Default::default()
        }
    }
}

/// The modules of a process.
#[derive(Clone)]
pub struct Peer {
    x86_64: UnwinderX86_64<Bytes>,
    aarch64: UnwinderAarch64<Bytes>,
}

/// framehop's rules that were met before.
#[derive(Default)]
pub struct PeerCache {
    x86_64: CacheX86_64,
    aarch64: CacheAarch64,
}

impl Default for Peer {
    fn default() -> Self {
        Self::new()
    }
}

impl Peer {
    /// No modules.
    pub fn new() -> Self {
        Self { x86_64: UnwinderX86_64::new(), aarch64: UnwinderAarch64::new() }
    }

    /// Adds a module.
    pub fn map(&mut self, range: Range<u64>, base: u64, module: &PeerModule) {
        let module = || framehop::Module::new(String::new(), range.clone(), base, module.info());
        self.x86_64.add_module(module());
        self.aarch64.add_module(module());
    }

    /// Walks a stack; the result is whether the root was reached.
    pub fn walk(
        &self,
        cache: &mut PeerCache,
        registers: &Registers,
        stack: &StackCopy<'_>,
        frames: &mut impl FnMut(u64),
    ) -> bool {
        let ip = registers.instruction_pointer().0;
        match registers {
            Registers::X86_64(values) => {
                let state = UnwindRegsX86_64::new(ip, values[7], values[6]);
                walk(&self.x86_64, &mut cache.x86_64, (ip, state), stack, frames)
            }
            Registers::Aarch64(values) => {
                let state = UnwindRegsAarch64::new(values[30], values[31], values[29]);
                walk(&self.aarch64, &mut cache.aarch64, (ip, state), stack, frames)
            }
            _ => false,
        }
    }
}

fn walk<U: Unwinder>(
    unwinder: &U,
    cache: &mut U::Cache,
    (ip, mut state): (u64, U::UnwindRegs),
    stack: &StackCopy<'_>,
    frames: &mut impl FnMut(u64),
) -> bool {
    let mut read = |address| stack.read_u64(nyquist_object::Avma(address)).ok_or(());
    let mut address = FrameAddress::from_instruction_pointer(ip);
    for _ in 0..nyquist_unwind::MAX_FRAMES {
        frames(address.address());
        match unwinder.unwind_frame(address, &mut state, cache, &mut read) {
            Ok(Some(next)) => match FrameAddress::from_return_address(next) {
                Some(next) => address = next,
                None => return true,
            },
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
    false
}
