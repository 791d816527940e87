//! The functions of a module by its symbol tables, and answers that combine these and the debug info.

use super::ModuleSymbols;
use crate::cache::Extent;
use crate::debug_answer::DebugAnswer;
use crate::debug_info::DebugInfo;
use crate::macho::MachoFiles;
use crate::mini_debug_info::mini_debug_info;
use crate::symbol_table::{SymbolTable, TableSymbol};
use crate::windows::image_symbols;
use crate::{AddressInfo, Origin, Reason, SourceFrame, Symbol};
use nyquist_object::{RelativeAddress, Svma};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

/// A module's symbol tables, as far as they are read.
pub(crate) struct ModuleFunctions<'a> {
    module: &'a ModuleSymbols,
    tables: &'a [SymbolTable],
}

/// The place of a function: the number of its table, with fallbacks after the others, and its index in the
/// table.
pub(crate) type FunctionPosition = (usize, usize);

impl ModuleSymbols {
    /// All functions.
    pub(crate) fn functions(&self) -> ModuleFunctions<'_> {
        ModuleFunctions { module: self, tables: self.tables.get_or_init(|| self.read_tables()) }
    }

    /// All names of the function that begins at an address.
    pub fn names_at(&self, start: RelativeAddress) -> BTreeSet<String> {
        let start = self.svma(start);
        self.functions().tables.iter().flat_map(|table| table.names_at(start)).collect()
    }

    fn read_tables(&self) -> Vec<SymbolTable> {
        if let Some(tables) = self.other_tables() {
            return tables;
        }
        let cached = self.cached.as_ref();
        let read = |name, origin| {
            self.files.iter().find_map(move |elf| SymbolTable::read(elf, name, origin, cached))
        };
        if let Some(symbols) = read(".symtab", Origin::SymbolTable) {
            return vec![symbols];
        }
        let mini = self.files.iter().find_map(mini_debug_info);
        let mini = mini.and_then(|elf| SymbolTable::read(&elf, ".symtab", Origin::MiniDebugInfo, None));
        mini.into_iter().chain(read(".dynsym", Origin::DynamicSymbols)).collect()
    }

    /// The tables of a module of Windows or macOS: the public symbols of its debug info, and then the names
    /// in the image itself.
    fn other_tables(&self) -> Option<Vec<SymbolTable>> {
        let publics = match self.opened_debug_info() {
            Some(DebugInfo::Pdb(pdb)) => Some(pdb.named_ranges()),
            Some(DebugInfo::Breakpad(breakpad)) => Some(breakpad.named_ranges()),
            _ => None,
        };
        if publics.is_none() && self.pe.is_none() && self.macho.is_none() {
            return None;
        }
        let publics = publics.and_then(|ranges| SymbolTable::of_ranges(ranges, Origin::PublicSymbols));
        let of_image = self.pe.as_ref().map(image_symbols::tables).unwrap_or_default();
        let of_macho = self.macho.as_ref().map(MachoFiles::tables).unwrap_or_default();
        // The symbol table of a Mach-O file has the names of all functions, including private ones.
        Some(of_macho.into_iter().chain(publics).chain(of_image).collect())
    }
}

impl<'a> ModuleFunctions<'a> {
    /// The module of the functions.
    pub(crate) fn module(&self) -> &'a ModuleSymbols {
        self.module
    }

    /// The place of the function around an address.
    pub(crate) fn find(&self, address: Svma) -> Option<FunctionPosition> {
        let find = |tables: &[SymbolTable]| {
            let mut found =
                tables.iter().enumerate().filter_map(|(table, of)| Some((table, of.find(address)?)));
            found.next()
        };
        let fallback = || find(self.fallbacks()).map(|(table, index)| (self.tables.len() + table, index));
        find(self.tables).or_else(fallback)
    }

    /// The function at a place that was found.
    pub(crate) fn at(&self, (table, index): FunctionPosition) -> Option<TableSymbol> {
        let tables = self.tables;
        let table = match table.checked_sub(tables.len()) {
            None => tables.get(table)?,
            Some(fallback) => self.fallbacks().get(fallback)?,
        };
        table.function(index)
    }

    /// The addresses around one that are in the same function, if it is in the first table that is used.
    pub(crate) fn extent(&self, address: RelativeAddress) -> Option<Extent> {
        let svma = self.module.svma(address);
        let table = self.tables.first()?;
        let found = table.extent(table.find(svma)?, svma);
        let start = RelativeAddress::from_svma(found.start, self.module.image_base)?;
        Some(Extent { start, len: u32::try_from(found.end.offset_from(found.start)?).ok()? })
    }

    /// The function around an address.
    pub(crate) fn around(&self, address: Svma) -> Option<TableSymbol> {
        self.at(self.find(address)?)
    }

    fn fallbacks(&self) -> &[SymbolTable] {
        let module = self.module;
        module.fallbacks.get_or_init(|| {
            if let Some(pe) = &module.pe {
                return image_symbols::unnamed(pe).into_iter().collect();
            }
            if let Some(files) = &module.macho {
                return files.fallbacks();
            }
            let full = [Origin::SymbolTable, Origin::MiniDebugInfo];
            let is_stripped = !self.tables.iter().any(|table| full.contains(&table.origin));
            let binary = module.binary.and_then(|binary| module.files.get(binary));
            let plt = binary.and_then(SymbolTable::of_plt);
            let go = match module.opened_debug_info() {
                Some(DebugInfo::Go(tables)) => SymbolTable::of_go(tables),
                _ => None,
            };
            let unnamed = binary.filter(|_| is_stripped).and_then(SymbolTable::of_unwind_info);
            plt.into_iter().chain(go).chain(unnamed).collect()
        })
    }

    /// Combines the results of the symbol tables and of the debug info.
    pub(crate) fn address_info(
        &self,
        function: Option<TableSymbol>,
        found: Option<DebugAnswer>,
    ) -> AddressInfo {
        let found = found.filter(|found| !found.frames.is_empty());
        let origin = match (&found, &function) {
            (Some(_), _) => self.module.opened_debug_info().map_or(Origin::DebugInfo, DebugInfo::origin),
            (None, Some(function)) => function.origin,
            (None, None) => Origin::Unknown(self.reason()),
        };
        let mut found = found.unwrap_or_default();
        if found.frames.is_empty() && function.is_some() {
            found.frames.push(SourceFrame::default());
        }
        if let (Some(outermost), Some(function)) = (found.frames.last_mut(), &function) {
            // A mangled symbol has the whole path of a function, but a plain name in the debug info does not.
            let is_complete = found.is_complete || !function.was_mangled;
            if outermost.function.is_none() || !is_complete {
                outermost.function = Some(function.name.clone());
            }
        }
        // A stand-in for a name is worse than the debug info's name, and so is a symbol without a size.
        let weak = [Origin::UnwindInfo, Origin::PublicSymbols, Origin::Exports];
        let is_better = |function: &TableSymbol| !weak.contains(&function.origin) || found.function.is_none();
        let function = function.filter(is_better);
        let symbol = match function {
            Some(function) => self.symbol(&function.name, function.range),
            None => self.symbol_of(&found),
        };
        AddressInfo { symbol, frames: found.frames, origin }
    }

    /// The symbol according to the debug info, if no symbol table has one.
    fn symbol_of(&self, found: &DebugAnswer) -> Option<Symbol> {
        let name = found.frames.last()?.function.as_ref()?;
        self.symbol(name, found.function.clone()?)
    }

    fn symbol(&self, name: &Arc<str>, range: Range<Svma>) -> Option<Symbol> {
        let address = RelativeAddress::from_svma(range.start, self.module.image_base)?;
        let size = range.end.offset_from(range.start).and_then(|size| u32::try_from(size).ok());
        Some(Symbol { name: name.clone(), address, size })
    }

    fn reason(&self) -> Reason {
        if self.tables.is_empty() && self.module.opened_debug_info().is_none() {
            Reason::NoSymbols
        } else {
            Reason::NotCovered
        }
    }
}
