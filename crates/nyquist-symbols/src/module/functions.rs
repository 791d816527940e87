//! The functions of a module by its symbol tables, and answers that combine these and the debug info.

use super::ModuleSymbols;
use crate::cache::Extent;
use crate::debug_answer::DebugAnswer;
use crate::debug_info::DebugInfo;
use crate::symbol_table::{SymbolTable, TableSymbol};
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
        ModuleFunctions {
            module: self,
            tables: self.tables.get_or_init(|| self.image.tables(self.cached.as_ref())),
        }
    }

    /// All names of the function that begins at an address.
    pub fn names_at(&self, start: RelativeAddress) -> BTreeSet<String> {
        let start = self.svma(start);
        self.functions().tables.iter().flat_map(|table| table.names_at(start)).collect()
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
        module.fallbacks.get_or_init(|| module.image.fallbacks(self.tables, module.cached.as_ref()))
    }

    /// Combines the results of the symbol tables and of the debug info.
    pub(crate) fn address_info(
        &self,
        function: Option<TableSymbol>,
        found: Option<DebugAnswer>,
    ) -> AddressInfo {
        let found = found.filter(|found| !found.frames.is_empty());
        let origin = match (&found, &function) {
            (Some(_), _) => self.module.debug_info().map_or(Origin::DebugInfo, DebugInfo::origin),
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
        if self.tables.is_empty() && self.module.debug_info().is_none() {
            Reason::NoSymbols
        } else {
            Reason::NotCovered
        }
    }
}
