//! Split DWARF: units whose entries were left in `.dwo` files, or packed into one `.dwp` file (DWARF 5, 7.3).

use super::file::DwarfFile;
use super::sections::Contributions;
use super::unit::Unit;
use crate::find::{open_seen, seen_from};
use crate::section_contents::SharedSource;
use gimli::{DebugCuIndex, EndianSlice, IndexSectionId, RunTimeEndian};
use nyquist_object::{Elf, FileSource};
use nyquist_resources::Budget;
use nyquist_system::{OpenRoot, OsStrExt as _};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The most units of a program that are looked for in a package to check whether the package belongs to it.
const MAX_LOOKED_FOR: usize = 1 << 12;

/// Where single `.dwo` files may be.
#[derive(Clone, Debug, Default)]
pub(crate) struct SplitPlaces {
    /// Folders to search for the file names that skeleton units state.
    pub(crate) folders: Vec<PathBuf>,
    /// Roots in which the paths of skeleton units are looked for first.
    pub(crate) roots: Vec<OpenRoot>,
}

/// Where the split units of a module may be.
#[derive(Debug, Default)]
pub(crate) struct SplitFiles {
    package: Option<DwpFile>,
    places: SplitPlaces,
    /// Whether a `.dwo` file was looked for.
    reads_single_files: AtomicBool,
}

/// A `.dwp` file.
#[derive(Debug)]
struct DwpFile {
    file: Arc<DwarfFile>,
    /// `.debug_cu_index`, which maps a unit's id to its parts of the other sections.
    index: Vec<u8>,
}

/// A split unit, and the file that it was found in.
#[derive(Debug)]
pub(crate) struct SplitUnit {
    pub(crate) file: Arc<DwarfFile>,
    pub(crate) unit: Unit,
}

impl SplitFiles {
    pub(crate) fn new(package: Option<&Elf<SharedSource>>, places: SplitPlaces) -> Self {
        Self { package: package.and_then(DwpFile::open), places, ..Self::default() }
    }

    /// Whether a `.dwo` file was looked for.
    pub(crate) fn reads_single_files(&self) -> bool {
        self.reads_single_files.load(Ordering::Relaxed)
    }

    /// The split unit of `skeleton`, which is in the file `main`. A unit with another id is not used.
    pub(crate) fn find(&self, main: &DwarfFile, skeleton: &Unit) -> Option<SplitUnit> {
        let name = skeleton.root_string(&main.sections, None, skeleton.dwo_name?)?;
        let id = skeleton.dwo_id?;
        let packed = self.package.as_ref().and_then(|package| package.find(id));
        let mut split = packed.or_else(|| self.find_file(main, skeleton, &name, id))?;
        split.unit.bases.addr = skeleton.bases.addr;
        split.unit.ranges_base = skeleton.ranges_base;
        split.unit.low_pc = skeleton.low_pc;
        Some(split)
    }

    fn find_file(&self, main: &DwarfFile, skeleton: &Unit, name: &[u8], id: u64) -> Option<SplitUnit> {
        self.reads_single_files.store(true, Ordering::Relaxed);
        let provided = Path::new(OsStr::from_bytes(name));
        let comp_dir = skeleton.comp_dir.and_then(|dir| skeleton.root_string(&main.sections, None, dir));
        let compiled = comp_dir.map(|dir| Path::new(OsStr::from_bytes(&dir)).join(provided));
        let SplitPlaces { folders, roots } = &self.places;
        let compiled = compiled.iter().flat_map(|path| seen_from(roots, path));
        let beside = folders.iter().map(|folder| folder.join(provided));
        let base = provided.file_name().into_iter();
        let flat = base.flat_map(|base| folders.iter().map(move |folder| folder.join(base)));
        compiled.chain(beside).chain(flat).find_map(|path| open_split(roots, &path, id, main.budget()))
    }
}

/// Whether a package has any of the units that were split off from a program. `None` if it is no package. If
/// a program has very many units, only the first ones are looked for.
pub(crate) fn holds_units_of(package: &Elf<SharedSource>, program: &Elf<SharedSource>) -> Option<bool> {
    let package = DwpFile::open(package)?;
    let Some(program) = DwarfFile::open(program, None) else { return Some(false) };
    let units = program.units().iter().filter(|unit| !unit.is_type);
    let ids = units.filter_map(|unit| Unit::read(&program.sections, unit.offset)?.dwo_id);
    Some(ids.take(MAX_LOOKED_FOR).any(|id| package.find(id).is_some()))
}

/// Opens a `.dwo` file if it contains the unit with this id.
fn open_split(roots: &[OpenRoot], path: &Path, id: u64, budget: Option<&Budget>) -> Option<SplitUnit> {
    let source = FileSource::within(open_seen(roots, path).ok()?, budget.cloned());
    let file = Arc::new(DwarfFile::open_split(&Elf::open(Arc::new(source) as SharedSource).ok()?)?);
    let units = file.units().iter().filter(|unit| !unit.is_type);
    let mut units = units.filter_map(|unit| Unit::read(&file.sections, unit.offset));
    let unit = units.find(|unit| unit.dwo_id == Some(id))?;
    Some(SplitUnit { file: file.clone(), unit })
}

impl DwpFile {
    fn open(elf: &Elf<SharedSource>) -> Option<Self> {
        let index = elf.section_data(".debug_cu_index").ok()??;
        Some(Self { file: Arc::new(DwarfFile::open_split(elf)?), index })
    }

    fn find(&self, id: u64) -> Option<SplitUnit> {
        let endian =
            if self.file.sections.little_endian { RunTimeEndian::Little } else { RunTimeEndian::Big };
        let index = DebugCuIndex::from(EndianSlice::new(&self.index, endian)).index().ok()?;
        let mut offset = None;
        let mut parts = Contributions::default();
        for part in index.sections(index.find(id)?).ok()? {
            let start = u64::from(part.offset);
            match part.section {
                IndexSectionId::DebugInfo => offset = Some(start),
                IndexSectionId::DebugAbbrev => parts.abbrev = start,
                IndexSectionId::DebugStrOffsets => parts.str_offsets = start,
                IndexSectionId::DebugRngLists => parts.rnglists = start,
                _ => {}
            }
        }
        let unit = Unit::read_part(&self.file.sections, offset?, parts)?;
        (unit.dwo_id == Some(id)).then(|| SplitUnit { file: self.file.clone(), unit })
    }
}
