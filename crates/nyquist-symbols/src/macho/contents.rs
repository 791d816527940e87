//! The contents of a Mach-O file for names and stacks.

use super::debug_map::DebugMap;
use super::images::{MachOImage, id_of, images};
use super::symbols;
use crate::section_contents::SharedSource;
use crate::{OpenFile, SymbolsError};
use nyquist_object::macho::FileKind;
use nyquist_object::{Architecture, DebugId, MachUuid, ObjectError};

/// The contents of one file for names and stacks. A universal file has several files.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a thing of its own that a file has or lacks")]
pub struct MachoContents {
    /// The instruction set.
    pub architecture: Architecture,
    /// Whether its return addresses are signed (`arm64e`).
    pub authenticates_pointers: bool,
    /// The id that its linker gave it.
    pub uuid: Option<MachUuid>,
    /// The id by which a profile names it.
    pub debug_id: Option<DebugId>,
    /// Whether it is the file in a `.dSYM`, which only has debug info.
    pub is_debug_file: bool,
    /// DWARF in the file itself.
    pub debug_info: bool,
    /// The number of object files that it was linked from, according to its debug map. These have its debug
    /// info.
    pub object_files: usize,
    /// Whether its symbol table names functions.
    pub symbol_table: bool,
    /// How many functions it exports.
    pub exports: usize,
    /// The number of functions whose starts it lists.
    pub function_starts: usize,
    /// Whether it has unwind information (`__unwind_info`, `__eh_frame`).
    pub unwind_information: bool,
}

impl MachoContents {
    /// Reads a file's headers and symbols, and returns the contents of each of the files in it. `None` if it
    /// is no Mach-O file.
    ///
    /// # Errors
    /// It is a Mach-O file, but is damaged or not supported.
    pub fn of(file: &OpenFile) -> Result<Option<Vec<Self>>, SymbolsError> {
        match images(&(file.source.clone() as SharedSource)) {
            Ok(images) => Ok(Some(images.iter().map(Self::of_image).collect())),
            Err(ObjectError::NotAnObject) => Ok(None),
            Err(source) => Err(SymbolsError::Object { path: file.path.clone(), source }),
        }
    }

    fn of_image(image: &MachOImage) -> Self {
        let has = |name: &str| image.section("__TEXT", name).is_some_and(|section| section.size > 0);
        Self {
            architecture: image.architecture(),
            authenticates_pointers: image.authenticates_pointers(),
            uuid: image.uuid(),
            debug_id: id_of(image),
            is_debug_file: image.kind() == FileKind::DebugSymbols,
            debug_info: image.has_debug_info(),
            object_files: DebugMap::read(image).map_or(0, |map| map.len()),
            symbol_table: symbols::table(image, &[]).is_some(),
            exports: symbols::exported(image).len(),
            function_starts: image.function_starts().map_or(0, |starts| starts.len()),
            unwind_information: has("__unwind_info") || has("__eh_frame"),
        }
    }
}
