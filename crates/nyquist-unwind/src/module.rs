//! A module's unwind information, compiled.

use crate::aarch64::Aarch64;
use crate::call_frame_info::{CallFrameInfo, ReadFrames};
use crate::cfi::{FrameSection, SectionKind, find_eh_frame};
use crate::code::{
    AllCode, CodeAround, CodeRange, UncoveredCode, UncoveredExtent, code_ranges, pe_code_ranges,
};
use crate::compile::{CodePiece, CompiledFdes, FdeCompiler, FunctionRange, merge};
use crate::indexed_frame_section::IndexedFrameSection;
use crate::inferred_rules::MIN_CODE_BYTES;
use crate::lazy_uncovered_code::{LazyUncoveredCode, ReadAll, UncoveredCache};
use crate::macho;
use crate::rule::Rule;
use crate::rule_table::RuleTable;
use crate::table_parts::{TableParts, Tables};
use crate::x86_64::X86_64;
use crate::{Damage, UnwindError, go, pe};
use nyquist_object::{Architecture, ByteSource, Elf, MachO, Pe, RelativeAddress, Svma};
use std::ops::Range;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

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
    /// Compiles the unwind information of an ELF file, or of an image of one in memory, as the vdso is.
    ///
    /// Damage in one entry costs that entry: see [`Module::damage`]. A file without any unwind information is
    /// still a module. Its code is walked by frame pointers.
    ///
    /// Takes time proportional to the size of the sections `.eh_frame` and `.debug_frame`. Only the places of
    /// entries are read now. Their contents are read when they are needed, or by [`Module::tables`].
    ///
    /// # Errors
    /// For an architecture that is not supported.
    pub fn from_elf<S: ByteSource>(elf: &Elf<S>) -> Result<Self, UnwindError> {
        Self::from_elf_with_debug::<S, S>(elf, None)
    }

    /// As [`Module::from_elf`], for a file that can also be read later. Uncovered instructions are read when
    /// a walk first needs some. Parts of a large `.eh_frame` are read when walks need them, by its header.
    ///
    /// # Errors
    /// For an architecture that is not supported.
    pub fn from_shared_elf<S: ByteSource + Send + Sync + 'static>(elf: Elf<S>) -> Result<Self, UnwindError> {
        check_is_supported(&elf)?;
        let elf = Arc::new(elf);
        let indexed = if go::has_functions(&elf) { None } else { IndexedFrameSection::of_elf(&elf) };
        let module = match indexed {
            Some(indexed) => Self::of_frames(&elf, CallFrameInfo::Indexed(indexed), Damage::default()),
            None => Self::described::<S, S>(&elf, None)?,
        };
        Ok(Self { uncovered: LazyUncoveredCode::later(elf), ..module })
    }

    /// As [`Module::from_elf`], with a separate debug file whose `.debug_frame` describes code that the
    /// file's own sections do not.
    pub fn from_elf_with_debug<S: ByteSource, D: ByteSource>(
        elf: &Elf<S>,
        debug: Option<&Elf<D>>,
    ) -> Result<Self, UnwindError> {
        Ok(Self::described(elf, debug)?.with_uncovered(elf, debug))
    }

    /// A module of an ELF file's unwind information alone, without its uncovered code.
    fn described<S: ByteSource, D: ByteSource>(
        elf: &Elf<S>,
        debug: Option<&Elf<D>>,
    ) -> Result<Self, UnwindError> {
        check_is_supported(elf)?;
        let mut damage = Damage::default();
        let mut sections = Vec::new();
        for (name, kind) in [(".eh_frame", SectionKind::EhFrame), (".debug_frame", SectionKind::DebugFrame)] {
            sections.extend(frame_section(elf, name, kind, &mut damage));
        }
        if elf.section(".eh_frame").is_none() {
            match find_eh_frame(elf) {
                Ok(section) => sections.splice(..0, section).for_each(drop),
                Err(error) => damage.add(|| format!("the header of .eh_frame: {error}")),
            }
        }
        if let Some(debug) = debug.filter(|_| sections.iter().all(|s| s.kind == SectionKind::EhFrame)) {
            sections.extend(frame_section(debug, ".debug_frame", SectionKind::DebugFrame, &mut damage));
        }
        Ok(Self::compile(elf, sections, damage))
    }

    /// Compiles the unwind information of a PE image: the table of functions in `.pdata`, and the description
    /// of each function's prologue. Epilogues are found in the code on 64-bit x86, and are described on
    /// 64-bit ARM.
    ///
    /// As with ELF, damage in one entry costs that entry.
    ///
    /// # Errors
    /// For an architecture that is not supported.
    pub fn from_pe<S: ByteSource>(pe: &Pe<S>) -> Result<Self, UnwindError> {
        let is_known = matches!(pe.architecture(), Architecture::X86_64 | Architecture::Aarch64);
        if !is_known || !pe.is_64_bit() {
            return Err(UnwindError::Unsupported(format!("PE for {:?}", pe.architecture())));
        }
        let mut damage = Damage::default();
        let code = pe_code_ranges(pe);
        let ranges: Vec<Range<u32>> = code.iter().map(|code| code.range.clone()).collect();
        let pe::CompiledFunctionTable { table, functions, covered } = pe::compile(pe, &ranges, &mut damage);
        Ok(Self {
            number: next_number(),
            image_base: pe.image_base(),
            tables: Tables::Whole(table),
            frames: CallFrameInfo::default(),
            pe: Some(functions),
            uncovered: LazyUncoveredCode::of(UncoveredCode::read_source(pe.source(), &code, &covered)),
            may_change: false,
            damage,
        })
    }

    /// Compiles the unwind information of a Mach-O file: compact unwind information, and call frame
    /// information where the former refers to it or has gaps. Prologues and epilogues, which compact
    /// information leaves out, are derived from the instructions.
    ///
    /// Takes time proportional to the size of the code.
    ///
    /// # Errors
    /// For an architecture that is not supported.
    pub fn from_macho<S: ByteSource>(file: &MachO<S>) -> Result<Self, UnwindError> {
        let architecture = file.architecture();
        if !matches!(architecture, Architecture::X86_64 | Architecture::Aarch64) {
            return Err(UnwindError::Unsupported(format!("Mach-O for {architecture:?}")));
        }
        let (mut damage, image_base) = (Damage::default(), file.image_base());
        let macho::UnwindParts { code, functions, sections } = macho::read(file, &mut damage);
        let ranges: Vec<Range<u32>> = code.iter().map(|code| code.range.clone()).collect();
        let instructions = AllCode::read(file.source(), &code);
        let go = go::read_macho(file, &ranges, &instructions, &mut damage);
        let functions = go::with_others(go, functions);
        let mut compiler = FdeCompiler { image_base: image_base.0, code: &ranges, damage: &mut damage };
        let CompiledFdes { table, pieces } =
            compile_for(architecture, &mut compiler, &sections, &functions, &instructions);
        let uncovered = UncoveredCode::read_source(file.source(), &code, &merge(&pieces));
        let tables = (Tables::Whole(table), CallFrameInfo::Read(ReadFrames { pieces, sections }));
        Ok(Self::of_parts(image_base, tables, uncovered, damage))
    }

    /// Compiles the unwind information of code that was generated at run time. It is an `.eh_frame` section
    /// whose addresses assume that it follows the `code_len` bytes of code, at the next multiple of eight, as
    /// in the jitdump format. The image base is the code's first byte.
    pub fn from_made_code(architecture: Architecture, code_len: u32, eh_frame: Vec<u8>) -> Self {
        let (kind, address) = (SectionKind::EhFrame, u64::from(code_len).next_multiple_of(8));
        let sections = vec![FrameSection { kind, bytes: eh_frame, address, text: Some(0), got: None }];
        let mut damage = Damage::default();
        let all = 0..code_len;
        let code = slice::from_ref(&all);
        let mut compiler = FdeCompiler { image_base: 0, code, damage: &mut damage };
        let CompiledFdes { table, pieces } =
            compile_for(architecture, &mut compiler, &sections, &[], &AllCode::default());
        let tables = (Tables::Whole(table), CallFrameInfo::Read(ReadFrames { pieces, sections }));
        Self::of_parts(Svma(0), tables, UncoveredCode::default(), damage)
    }

    /// A module for code that was generated at run time and that nothing describes. Its rules are derived
    /// from its instructions, as far as they lead to a return. This also works for small pieces that only
    /// call something else. The image base is the first byte.
    pub fn from_instructions(instructions: Vec<u8>) -> Self {
        let tables = (Tables::default(), CallFrameInfo::default());
        let uncovered = UncoveredCode::all(instructions);
        Self { may_change: true, ..Self::of_parts(Svma(0), tables, uncovered, Damage::default()) }
    }

    /// A module that only uses the instructions of an ELF file for 64-bit x86, as if it had no unwind
    /// information. Functions are found by symbols and by calls. It is for comparisons with unwind
    /// information.
    ///
    /// # Errors
    /// For an architecture that is not supported.
    pub fn from_elf_instructions<S: ByteSource>(elf: &Elf<S>) -> Result<Self, UnwindError> {
        let architecture = elf.architecture();
        if architecture != Architecture::X86_64 {
            return Err(UnwindError::Unsupported(format!("instructions for {architecture:?}")));
        }
        Ok(Self::compile(elf, Vec::new(), Damage::default()).with_uncovered::<S, S>(elf, None))
    }

    fn of_parts(
        image_base: Svma,
        (tables, frames): (Tables, CallFrameInfo),
        uncovered: UncoveredCode,
        damage: Damage,
    ) -> Self {
        let (number, pe, uncovered, may_change) =
            (next_number(), None, LazyUncoveredCode::of(uncovered), false);
        Self { number, image_base, tables, frames, pe, uncovered, may_change, damage }
    }

    fn compile<S: ByteSource>(elf: &Elf<S>, sections: Vec<FrameSection>, mut damage: Damage) -> Self {
        let code: Vec<CodeRange> = code_ranges(elf);
        let ranges: Vec<Range<u32>> = code.iter().map(|code| code.range.clone()).collect();
        let image_base = elf.image_base();
        let mut compiler = FdeCompiler { image_base: image_base.0, code: &ranges, damage: &mut damage };
        if !go::has_functions(elf) {
            let pieces = pieces_for(elf.architecture(), &mut compiler, &sections);
            return Self::of_frames(elf, CallFrameInfo::Read(ReadFrames { pieces, sections }), damage);
        }
        let bytes = AllCode::read(elf.source(), &code);
        let functions = go::read(elf, &ranges, &bytes, compiler.damage);
        let CompiledFdes { table, pieces } =
            compile_for(elf.architecture(), &mut compiler, &sections, &functions, &bytes);
        let tables = (Tables::Whole(table), CallFrameInfo::Read(ReadFrames { pieces, sections }));
        Self::of_parts(image_base, tables, UncoveredCode::default(), damage)
    }

    /// A module whose tables are compiled when walks need them.
    fn of_frames<S: ByteSource>(elf: &Elf<S>, frames: CallFrameInfo, damage: Damage) -> Self {
        let image_base = elf.image_base();
        let parts = TableParts::new(elf.architecture(), image_base.0, frames.starts());
        Self::of_parts(image_base, (Tables::Parts(parts), frames), UncoveredCode::default(), damage)
    }

    fn with_uncovered<S: ByteSource, D: ByteSource>(self, elf: &Elf<S>, debug: Option<&Elf<D>>) -> Self {
        let uncovered = LazyUncoveredCode::read(elf, debug, &self.frames.covered());
        Self { uncovered, ..self }
    }

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

fn check_is_supported<S: ByteSource>(elf: &Elf<S>) -> Result<(), UnwindError> {
    let architecture = elf.architecture();
    let is_known = matches!(architecture, Architecture::X86_64 | Architecture::Aarch64);
    if is_known && elf.is_64_bit() && elf.is_little_endian() {
        Ok(())
    } else {
        Err(UnwindError::Unsupported(format!("ELF for {architecture:?}")))
    }
}

/// Compiles sections and functions for an architecture. Compiles nothing for an unsupported one.
fn compile_for(
    architecture: Architecture,
    compiler: &mut FdeCompiler<'_>,
    sections: &[FrameSection],
    functions: &[FunctionRange],
    code: &AllCode,
) -> CompiledFdes {
    match architecture {
        Architecture::X86_64 => compiler.compile::<X86_64>(sections, functions, code),
        Architecture::Aarch64 => compiler.compile::<Aarch64>(sections, functions, code),
        Architecture::X86 | Architecture::Other(_) => compiler.compile::<X86_64>(&[], &[], code),
    }
}

/// The pieces of sections, for an architecture. There are none for an unsupported one.
fn pieces_for(
    architecture: Architecture,
    compiler: &mut FdeCompiler<'_>,
    sections: &[FrameSection],
) -> Vec<CodePiece> {
    match architecture {
        Architecture::X86_64 => compiler.all_pieces::<X86_64>(sections, &[]),
        Architecture::Aarch64 => compiler.all_pieces::<Aarch64>(sections, &[]),
        Architecture::X86 | Architecture::Other(_) => Vec::new(),
    }
}

/// Reads a section. If it exists but cannot be read, that is damage.
fn frame_section<S: ByteSource>(
    elf: &Elf<S>,
    name: &str,
    kind: SectionKind,
    damage: &mut Damage,
) -> Option<FrameSection> {
    let address_of = |name| elf.section(name).map(|section| section.address.0);
    match elf.section_data(name) {
        Ok(Some(bytes)) => Some(FrameSection {
            kind,
            bytes,
            address: address_of(name).unwrap_or_default(),
            text: address_of(".text"),
            got: address_of(".got"),
        }),
        Ok(None) => None,
        Err(error) => {
            damage.add(|| format!("{name} is unreadable: {error}"));
            None
        }
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
    use nyquist_object::FileSource;
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
