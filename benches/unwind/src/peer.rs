//! framehop on the same modules and stacks.

use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{ExplicitModuleSectionInfo, FrameAddress, Unwinder as _};
use nyquist_object::{ByteSource, Elf};
use nyquist_unwind::{StackCopy, StackMemory};
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
    unwinder: UnwinderX86_64<Bytes>,
}

impl Default for Peer {
    fn default() -> Self {
        Self::new()
    }
}

impl Peer {
    /// No modules.
    pub fn new() -> Self {
        Self { unwinder: UnwinderX86_64::new() }
    }

    /// Adds a module.
    pub fn map(&mut self, range: Range<u64>, base: u64, module: &PeerModule) {
        self.unwinder.add_module(framehop::Module::new(String::new(), range, base, module.info()));
    }

    /// Walks a stack; the result is whether the root was reached.
    pub fn walk(
        &self,
        cache: &mut CacheX86_64,
        registers: &[u64; 17],
        stack: &StackCopy<'_>,
        frames: &mut impl FnMut(u64),
    ) -> bool {
        let mut state = UnwindRegsX86_64::new(registers[16], registers[7], registers[6]);
        let mut read = |address| stack.read_u64(nyquist_object::Avma(address)).ok_or(());
        let mut address = FrameAddress::from_instruction_pointer(registers[16]);
        for _ in 0..nyquist_unwind::MAX_FRAMES {
            frames(address.address());
            match self.unwinder.unwind_frame(address, &mut state, cache, &mut read) {
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
}
