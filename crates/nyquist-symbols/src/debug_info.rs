//! Debug info of any kind behind one interface.

use crate::Origin;
use crate::breakpad::Breakpad;
use crate::debug_answer::DebugAnswer;
use crate::dwarf::{Dwarf, Scratch};
use crate::file_kind::FileKind;
use crate::go::GoTables;
use crate::macho::objects::ObjectFiles;
use crate::pdb::Pdb;
use crate::symbol_table::SymbolTable;
use nyquist_object::Svma;

/// The debug info of one module. A *unit* is read once for all addresses in it. It is a unit of DWARF, an
/// object file of a PDB, or a function of a Breakpad file or of Go's tables. If debug info was left in object
/// files, it is an object file.
#[derive(Debug)]
pub(crate) enum DebugInfo {
    Dwarf(Box<Dwarf>),
    /// DWARF that was left in the object files.
    Objects(Box<ObjectFiles>),
    Pdb(Box<Pdb>),
    Breakpad(Box<Breakpad>),
    Go(Box<GoTables>),
}

impl DebugInfo {
    /// Opens a PDB or a Breakpad symbol file. `None` for any other file, or a damaged one.
    pub(crate) fn of_file(file: FileKind, image_base: Svma) -> Option<Self> {
        match file {
            FileKind::Pdb(source) => Some(Self::Pdb(Box::new(Pdb::open(source, image_base).ok()?))),
            FileKind::Breakpad(source) => {
                Some(Self::Breakpad(Box::new(Breakpad::open(&source, image_base).ok()?)))
            }
            FileKind::Pe(_) | FileKind::Other => None,
        }
    }

    /// The unit that an address is in.
    pub(crate) fn unit_of(&self, address: u64) -> Option<u64> {
        match self {
            Self::Dwarf(dwarf) => dwarf.unit_of(address),
            Self::Objects(objects) => objects.unit_of(address),
            Self::Pdb(pdb) => pdb.unit_of(address),
            Self::Breakpad(breakpad) => breakpad.unit_of(address),
            Self::Go(tables) => tables.unit_of(address),
        }
    }

    /// Answers for `requested`, which are sorted addresses of the unit, in their order.
    pub(crate) fn look_up(&self, unit: u64, requested: &[u64], scratch: &mut Scratch) -> Vec<DebugAnswer> {
        match self {
            Self::Dwarf(dwarf) => dwarf.look_up(unit, requested, scratch),
            Self::Objects(objects) => objects.look_up(unit, requested, scratch),
            Self::Pdb(pdb) => pdb.look_up(unit, requested, &mut scratch.allowance),
            Self::Breakpad(breakpad) => breakpad.look_up(unit, requested, &mut scratch.allowance),
            Self::Go(tables) => tables.look_up(unit, requested, &mut scratch.allowance),
        }
    }

    /// Whether the unit names the source file for which `is_it` returns true. Stops when it is found.
    pub(crate) fn names_source(&self, unit: u64, is_it: &mut dyn FnMut(&str) -> bool) -> bool {
        match self {
            Self::Dwarf(dwarf) => dwarf.names_source(unit, is_it),
            Self::Objects(objects) => objects.names_source(unit, is_it),
            Self::Pdb(pdb) => pdb.names_source(unit, is_it),
            Self::Breakpad(breakpad) => breakpad.names_source(is_it),
            Self::Go(tables) => tables.names_source(unit, is_it),
        }
    }

    /// The public symbols, which a PDB and a Breakpad file list apart from functions.
    pub(crate) fn public_symbols(&self) -> Option<SymbolTable> {
        let ranges = match self {
            Self::Pdb(pdb) => pdb.named_ranges(),
            Self::Breakpad(breakpad) => breakpad.named_ranges(),
            Self::Dwarf(_) | Self::Objects(_) | Self::Go(_) => return None,
        };
        SymbolTable::of_ranges(ranges, Origin::PublicSymbols)
    }

    /// The origin of its answers.
    pub(crate) fn origin(&self) -> Origin {
        match self {
            Self::Dwarf(_) | Self::Objects(_) | Self::Pdb(_) | Self::Breakpad(_) => Origin::DebugInfo,
            Self::Go(_) => Origin::GoTables,
        }
    }

    /// Whether answers come from single `.dwo` or object files, which may appear, change or disappear.
    pub(crate) fn reads_single_files(&self) -> bool {
        match self {
            Self::Dwarf(dwarf) => dwarf.reads_single_files(),
            Self::Objects(_) => true,
            Self::Pdb(_) | Self::Breakpad(_) | Self::Go(_) => false,
        }
    }
}
