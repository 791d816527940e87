//! The symbols of one module: answers from its symbol tables and its debug info together.

mod answers;
#[cfg(feature = "disassembly")]
mod disassembly;
mod elf_files;
mod functions;
mod image;

use crate::cache::CachedAnswers;
use crate::debug_answer::DebugAnswer;
use crate::debug_info::DebugInfo;
use crate::dwarf::Scratch;
use crate::provided::ProvidedModule;
use crate::section_contents::SharedSource;
use crate::source_files::special_source_path;
use crate::symbol_table::SymbolTable;
use crate::{AnswerCache, SymbolFiles, SymbolsError};
pub(crate) use functions::{FunctionPosition, ModuleFunctions};
use image::Image;
use nyquist_object::{RelativeAddress, Svma};
use nyquist_resources::{Budget, Charge};
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// The symbols and debug info of one module. Threads can share it.
#[derive(Default)]
pub struct ModuleSymbols {
    image_base: Svma,
    image: Image,
    tables: OnceLock<Vec<SymbolTable>>,
    /// The linkage table, and the functions from the unwind information of a stripped file. They are used
    /// last, and only read if an address is in no other table.
    fallbacks: OnceLock<Vec<SymbolTable>>,
    /// The cached answers.
    cached: Option<CachedAnswers>,
    /// The answers that came with the profile.
    provided: Option<Arc<ProvidedModule>>,
    /// The memory for answers.
    budget: Option<Budget>,
}

impl ModuleSymbols {
    /// Reads the headers of the files that were found. A damaged part is left out, and the answers then come
    /// from the next-best source.
    pub fn open(found: &SymbolFiles) -> Result<Self, SymbolsError> {
        Self::open_with(found, None)
    }

    pub(crate) fn open_with(
        found: &SymbolFiles,
        cache: Option<&Arc<AnswerCache>>,
    ) -> Result<Self, SymbolsError> {
        let image = match Image::open(found) {
            Err(_) if found.provided.is_some() => Image::default(),
            image => image?,
        };
        let cached = cache.and_then(|cache| cache.open(found));
        let budget = found.budget().cloned();
        Ok(Self { cached, provided: found.provided.clone(), budget, ..Self::of(image) })
    }

    /// Reads an object, a PDB or a Breakpad symbol file in memory, such as the vDSO's image.
    pub fn from_image(image: Vec<u8>) -> Result<Self, SymbolsError> {
        Image::of_bytes(Arc::new(image) as SharedSource).map(Self::of)
    }

    /// The same module, whose answers are charged to this budget.
    pub(crate) fn within(self, budget: Option<Budget>) -> Self {
        Self { budget, ..self }
    }

    fn of(image: Image) -> Self {
        Self { image_base: image.base(), image, ..Self::default() }
    }

    fn debug_info(&self) -> Option<&DebugInfo> {
        self.image.debug_info(self.cached.as_ref())
    }

    /// How the debug info of the code at `address` spells the source file `file`, as [`crate::SourceFrame::file`]
    /// does; `None` if it does not name the file. `file` may have this spelling, or be its special path.
    pub fn named_source(&self, file: &str, address: RelativeAddress) -> Option<String> {
        let svma = address.to_svma(self.image_base);
        let info = self.debug_info()?;
        let unit = info.unit_of(svma.0)?;
        let (special, mut spelled) = (special_source_path(file), None);
        info.names_source(unit, &mut |named| {
            let is_it = special_source_path(named) == special;
            spelled = is_it.then(|| named.to_owned());
            is_it
        });
        spelled
    }

    /// The file with the answers that came with the profile, if they are used, because there is no debug
    /// info.
    pub fn provided_in(&self) -> Option<&Path> {
        self.used_answers().map(ProvidedModule::file)
    }

    /// Whether the answers that came with the profile name the source file `file`, by its path or by its
    /// special path.
    pub fn states_source(&self, file: &str) -> bool {
        let special = special_source_path(file);
        let is_it = |named: &str| special_source_path(named) == special;
        self.used_answers().is_some_and(|provided| provided.names_source(is_it))
    }

    fn used_answers(&self) -> Option<&ProvidedModule> {
        self.provided.as_deref().filter(|_| !self.has_debug_info())
    }

    /// A charge for the answers of one look-up. `None` if their memory has no limit.
    pub(crate) fn charge(&self) -> Option<Arc<Charge>> {
        self.budget.as_ref().map(|budget| Arc::new(budget.charge()))
    }

    /// The base of relative addresses.
    #[cfg(feature = "kernel")]
    pub(crate) fn image_base(&self) -> Svma {
        self.image_base
    }

    pub(crate) fn has_debug_info(&self) -> bool {
        self.debug_info().is_some()
    }

    pub(crate) fn svma(&self, address: RelativeAddress) -> Svma {
        address.to_svma(self.image_base)
    }

    /// The unit of the debug info that contains an address.
    pub(crate) fn unit_of(&self, address: Svma) -> Option<u64> {
        self.debug_info()?.unit_of(address.0)
    }

    /// The answers of the debug info for sorted addresses of one unit.
    pub(crate) fn look_up(&self, unit: u64, requested: &[u64], scratch: &mut Scratch) -> Vec<DebugAnswer> {
        let found = self.debug_info().map(|info| info.look_up(unit, requested, scratch));
        found.unwrap_or_default()
    }
}

impl std::fmt::Debug for ModuleSymbols {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut f = f.debug_struct("ModuleSymbols");
        f.field("image_base", &self.image_base).field("debug_info", &self.image.opened_debug_info());
        f.finish_non_exhaustive()
    }
}
