//! Makes modules of the unwind information of files, one function for each format, and of code alone.

use super::{Module, next_number};
use crate::aarch64::Aarch64;
use crate::call_frame_info::{CallFrameInfo, ReadFrames};
use crate::cfi::{FrameSection, SectionKind, find_eh_frame};
use crate::code::{AllCode, CodeRange, UncoveredCode, code_ranges, pe_code_ranges};
use crate::compile::{CodePiece, CompiledFdes, FdeCompiler, FunctionRange, merge};
use crate::indexed_frame_section::IndexedFrameSection;
use crate::lazy_uncovered_code::LazyUncoveredCode;
use crate::table_parts::{TableParts, Tables};
use crate::x86_64::X86_64;
use crate::{Damage, UnwindError, go, macho, pe};
use nyquist_object::{Architecture, ByteSource, Elf, MachO, Pe, Svma};
use std::ops::Range;
use std::slice;
use std::sync::Arc;

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

    pub(super) fn of_parts(
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
    pub(super) fn of_frames<S: ByteSource>(elf: &Elf<S>, frames: CallFrameInfo, damage: Damage) -> Self {
        let image_base = elf.image_base();
        let parts = TableParts::new(elf.architecture(), image_base.0, frames.starts());
        Self::of_parts(image_base, (Tables::Parts(parts), frames), UncoveredCode::default(), damage)
    }

    fn with_uncovered<S: ByteSource, D: ByteSource>(self, elf: &Elf<S>, debug: Option<&Elf<D>>) -> Self {
        let uncovered = LazyUncoveredCode::read(elf, debug, &self.frames.covered());
        Self { uncovered, ..self }
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
pub(super) fn pieces_for(
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
