//! A module's unwind information, compiled.

mod open;
mod sections;

use crate::architecture::Architecture;
use crate::call_frame_info::CallFrameInfo;
use crate::call_instruction::CallInstruction;
use crate::cfi::FrameSection;
use crate::code::{CodeAround, UncoveredExtent};
use crate::inferred_rules::MIN_CODE_BYTES;
use crate::lazy_uncovered_code::{LazyUncoveredCode, ReadAll, UncoveredCache};
use crate::rule::Rule;
use crate::rule_table::RuleTable;
use crate::table_parts::Tables;
use crate::{Damage, pe};
use nyquist_object::{RelativeAddress, Svma};
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

pub use sections::{Section, Sections};

/// The compiled unwinding tables of one module, which all processes and threads share. The call frame
/// information of an ELF file is compiled part by part, when a walk first needs it.
#[derive(Debug)]
pub struct Module {
    number: u32,
    image_base: Svma,
    tables: Tables,
    pub(crate) frames: CallFrameInfo,
    /// The functions of a PE image, which it has in place of FDEs.
    pe: Option<pe::PeFunctions>,
    uncovered: LazyUncoveredCode,
    /// Whether the instructions may have changed since they were read.
    may_change: bool,
    damage: Damage,
}

impl Module {
    /// The compiled tables, by address. Compiles the parts that were not needed yet.
    pub fn tables(&self) -> impl Iterator<Item = &RuleTable> {
        self.tables.all(&self.frames)
    }

    /// The unusable part of the unwind information, as far as it was compiled. It is complete after all
    /// [tables](Self::tables) were compiled.
    pub fn damage(&self) -> Damage {
        let mut damage = self.damage.clone();
        damage.merge(self.tables.damage());
        damage
    }

    /// How many bytes of memory the module takes: the tables that are compiled, the data for rows that are
    /// evaluated in full, and the instructions of uncovered code.
    pub fn size(&self) -> usize {
        let pe = self.pe.as_ref().map_or(0, pe::PeFunctions::size);
        self.tables.size() + self.frames.size() + pe + self.uncovered.size()
    }

    /// The rule for the code at a lookup address.
    pub fn rule(&self, address: RelativeAddress) -> Rule {
        self.tables.rule(address, &self.frames)
    }

    /// The rule for uncovered code at a lookup address, derived from the instructions of its whole function.
    pub fn inferred_rule(&self, address: RelativeAddress) -> Rule {
        if self.uncovered.is_linkage(address.0) || self.uncovered.is_elsewhere(address.0) {
            return Rule::UNCOVERED;
        }
        self.known_of_uncovered().inferred.rule(address)
    }

    /// A number that is unique in this program. It is the key of cached rules.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// The address as stated in the file.
    pub(crate) fn svma(&self, address: RelativeAddress) -> u64 {
        address.to_svma(self.image_base).0
    }

    /// Passes the section and the offset of the FDE for the address to `take`, if there is one.
    pub(crate) fn with_fde<T>(
        &self,
        address: RelativeAddress,
        take: impl FnOnce(&FrameSection, usize) -> T,
    ) -> Option<T> {
        self.frames.with_entry(address.0, take)
    }

    /// How far into its function an address is, by the FDE that describes it.
    pub(crate) fn offset_in_function(&self, address: RelativeAddress) -> Option<u32> {
        Some(address.0 - self.frames.piece_before(address.0)?.start)
    }

    /// Whether a function begins at an address, and no other function ends there. Then no call can return to
    /// this address, because no described code is before it. O(log n) in the number of functions.
    pub fn begins_after_gap(&self, address: RelativeAddress) -> bool {
        let before = address.0.checked_sub(1);
        let reaches = |before| self.frames.piece_before(before).is_some_and(|piece| before < piece.end);
        self.offset_in_function(address) == Some(0) && !before.is_some_and(reaches)
    }

    /// The functions of a PE image. Functions that are not listed are leaf functions.
    pub(crate) fn pe(&self) -> Option<&pe::PeFunctions> {
        self.pe.as_ref()
    }

    /// Whether its instructions may have changed since they were read.
    pub(crate) fn may_change(&self) -> bool {
        self.may_change
    }

    /// The instructions of uncovered code around an address. The end of such code counts as part of it.
    pub(crate) fn uncovered_around(&self, address: u32) -> Option<CodeAround<'_>> {
        let is_covered = |address| self.frames.piece_before(address).is_some_and(|piece| address < piece.end);
        // Nothing is read for code that is known to be covered.
        let (is_unread, is_linkage) = (self.uncovered.cache().is_none(), self.uncovered.is_linkage(address));
        if (is_unread || is_linkage) && is_covered(address) && address.checked_sub(1).is_some_and(is_covered)
        {
            return None;
        }
        if is_linkage {
            let code = self.uncovered.linkage_code().around(address)?;
            return Some(CodeAround::new(code, UncoveredExtent::Any));
        }
        if self.uncovered.is_elsewhere(address) {
            return None;
        }
        if is_unread && let Ok(found) = self.small_gap_around(address) {
            return found;
        }
        let (code, at) = self.known_of_uncovered().code.around(address)?;
        let start = address - at as u32;
        Some(CodeAround::new((code, at), self.extent(&(start..start + code.len() as u32))))
    }

    /// The same for a small gap between functions, in a module whose unwind information is read when walks
    /// need it. Only the gap is read.
    fn small_gap_around(&self, address: u32) -> Result<Option<CodeAround<'_>>, ReadAll> {
        let CallFrameInfo::Indexed(frames) = &self.frames else { return Err(ReadAll) };
        for inside in address.saturating_sub(1)..=address {
            let Some(stretch) = self.uncovered.stretch_at(inside) else { continue };
            let Some(gap) = frames.gap_around(inside)? else { continue };
            let gap = gap.start.max(stretch.start)..gap.end.min(stretch.end);
            let extent = self.extent(&gap);
            if extent != UncoveredExtent::LoneGap {
                return Err(ReadAll);
            }
            if let Some(code) = self.uncovered.small_gap(&gap)? {
                let (code, at) = (code.into(), (address - gap.start) as usize);
                return Ok(Some(CodeAround { code, at, extent }));
            }
        }
        Ok(None)
    }

    /// The rule for uncovered code at an address where a thread was interrupted, by following its function
    /// alone.
    pub(crate) fn followed_rule(&self, code: &CodeAround<'_>, address: RelativeAddress) -> Rule {
        self.uncovered.followed_rule(code, address.0)
    }

    /// The rule for code that is made at run time, by its instructions.
    pub(crate) fn rule_of_made_code<A: Architecture>(
        &self,
        code: &CodeAround<'_>,
        address: RelativeAddress,
    ) -> Option<Rule> {
        let found = self.uncovered.found_rules();
        self.may_change.then(|| found.get(address.0, || A::rule_of_made_code(&code.code, code.at)))?
    }

    /// The code before an address, as much as a call can take. `None` if it is not known.
    pub(crate) fn code_before(&self, address: u32) -> Option<Vec<u8>> {
        self.uncovered.code_before(address).or_else(|| {
            let CodeAround { code, at, .. } = self.uncovered_around(address)?;
            Some(code.get(at.saturating_sub(CallInstruction::MAX_LEN)..at)?.to_vec())
        })
    }

    /// Whether an address is in a table of jumps to other modules.
    pub(crate) fn is_linkage(&self, address: RelativeAddress) -> bool {
        self.uncovered.is_linkage(address.0)
    }

    /// The extent of a range of uncovered code.
    fn extent(&self, range: &Range<u32>) -> UncoveredExtent {
        if self.may_change || range.len() >= MIN_CODE_BYTES {
            return UncoveredExtent::Any;
        }
        let begins_program = self.uncovered.entry().is_some_and(|entry| range.contains(&entry));
        match self.frames {
            CallFrameInfo::Indexed(_) if !begins_program => UncoveredExtent::LoneGap,
            _ => UncoveredExtent::SmallGap,
        }
    }

    fn known_of_uncovered(&self) -> &UncoveredCache {
        self.uncovered.get(|| self.frames.covered())
    }
}

/// No module has number zero.
fn next_number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call_frame_info::ReadFrames;
    use crate::indexed_frame_section::IndexedFrameSection;
    use nyquist_object::{Elf, FileSource};
    use std::fs::File;
    use std::sync::Arc;

    fn this_program() -> Elf<Arc<FileSource>> {
        let file = File::open(std::env::current_exe().unwrap()).unwrap();
        Elf::open(Arc::new(FileSource::new(file))).unwrap()
    }

    /// A module as of a program that is large enough.
    fn indexed() -> Module {
        let elf = Arc::new(this_program());
        let frames = CallFrameInfo::Indexed(IndexedFrameSection::open(&elf).unwrap());
        let module = Module::of_frames(&elf, frames, Damage::default());
        Module { uncovered: LazyUncoveredCode::later(elf), ..module }
    }

    #[cfg_attr(not(target_os = "linux"), ignore = "the test program is not an ELF file")]
    #[test]
    fn uncovered_code_is_read_on_demand_and_the_same() {
        let at_once = Module::from_elf(&this_program()).unwrap();
        let CallFrameInfo::Read(ReadFrames { pieces, .. }) = &at_once.frames else {
            panic!("it is read at once")
        };
        let parts: Vec<_> = at_once.known_of_uncovered().code.parts().map(|(range, _)| range).collect();
        assert!(!parts.is_empty());
        for later in [Module::from_shared_elf(this_program()).unwrap(), indexed()] {
            let same = |address: u32| {
                let code = [&later, &at_once].map(|module| {
                    module.uncovered_around(address).map(|around| (around.code.to_vec(), around.at))
                });
                assert_eq!(code[0], code[1], "{address:#x}");
            };
            for piece in pieces.iter().filter(|piece| piece.end - piece.start > 1) {
                same(piece.start + 1);
            }
            assert!(later.uncovered.cache().is_none(), "nothing has requested uncovered code");
            for range in &parts {
                for address in [range.start.saturating_sub(1), range.start, range.start + 1, range.end] {
                    same(address);
                    let rules =
                        [&later, &at_once].map(|module| module.inferred_rule(RelativeAddress(address)));
                    assert_eq!(rules[0], rules[1], "{address:#x}");
                }
            }
            assert!(later.uncovered.cache().is_some());
        }
    }

    #[cfg_attr(not(target_os = "linux"), ignore = "the test program is not an ELF file")]
    #[test]
    fn a_large_programs_small_gap_is_followed_alone() {
        let at_once = Module::from_elf(&this_program()).unwrap();
        let later = indexed();
        let is_small = |gap: &Range<u32>| later.extent(gap) == UncoveredExtent::LoneGap;
        let parts = at_once.known_of_uncovered().code.parts();
        let gaps: Vec<_> = parts.map(|(gap, _)| gap).filter(is_small).collect();
        assert!(!gaps.is_empty());
        for gap in &gaps {
            for address in [gap.start, gap.start + 1, gap.end] {
                let [alone, among_others] = [&later, &at_once].map(|module| {
                    module.uncovered_around(address).map(|around| (around.code.to_vec(), around.at))
                });
                assert_eq!(alone, among_others, "{address:#x}");
            }
        }
        assert!(later.uncovered.cache().is_none(), "small gaps alone are requested");
        for around in gaps.iter().filter_map(|gap| later.uncovered_around(gap.start + 1)) {
            assert_eq!(around.extent, UncoveredExtent::LoneGap);
        }
    }

    /// Walks from the first instructions of the C library's start files in these sections, which no unwind
    /// information describes.
    #[cfg(target_arch = "x86_64")]
    fn expect_start_files_are_left(module: &Arc<Module>) {
        use crate::{AddressSpace, FrameAddress, Registers, StackCopy, Unwinder};
        use nyquist_object::Avma;

        let elf = this_program();
        let base = elf.image_base();
        let caller = base.0 + u64::from(module.frames.starts().next().unwrap()) + 1;
        let stack = caller.to_le_bytes();
        let mut space = AddressSpace::new();
        space.map(Avma(base.0), 1 << 30, Avma(base.0), module.clone());
        for name in [".init", ".fini"] {
            let mut values = [0; 17];
            (values[7], values[16]) = (0x1000, elf.section(name).unwrap().address.0);
            let memory = StackCopy { start: Avma(0x1000), bytes: &stack };
            let mut found = Vec::new();
            let mut push = |frame| found.push(frame);
            Unwinder::new().walk(&space, &Registers::X86_64(values), &memory, &mut push);
            assert_eq!(found.get(1), Some(&FrameAddress::ReturnAddress(Avma(caller))), "{name}");
        }
    }

    #[cfg_attr(not(target_os = "linux"), ignore = "the test program is not an ELF file")]
    #[test]
    #[cfg(target_arch = "x86_64")]
    fn leaving_start_files_reads_one_small_gap() {
        expect_start_files_are_left(&Arc::new(Module::from_elf(&this_program()).unwrap()));
        let indexed = Arc::new(indexed());
        expect_start_files_are_left(&indexed);
        assert!(indexed.uncovered.cache().is_none(), "all uncovered code was read for one gap");
    }
}
