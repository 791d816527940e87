//! A file of debug info: its sections, its units, and cached data of units that others refer to.

use super::function_name::FunctionName;
use super::nesting::Nesting;
use super::sections::DwarfSections;
use super::shared_map::SharedMap;
use super::unit::{Unit, UnitHeader};
use crate::AnswerCache;
use crate::section_contents::{SectionContents, SectionWindow, SharedSource};
use nyquist_object::{ByteSource as _, Elf, MachO, ObjectError, Pe};
use nyquist_resources::{Budget, Charge};
use std::sync::{Arc, OnceLock};

/// The most units that are accepted, which is more than any real file has.
const MAX_UNITS: usize = 1 << 22;

/// A file of debug info.
#[derive(Debug, Default)]
pub(crate) struct DwarfFile {
    pub(crate) sections: DwarfSections,
    units: OnceLock<Vec<UnitHeader>>,
    /// Units that others refer to, by their offset.
    pub(super) origin_units: SharedMap<Option<Arc<Unit>>>,
    /// The names of functions that other units refer to, by their entry in `.debug_info`.
    pub(super) origins: SharedMap<Option<FunctionName>>,
    /// The nesting of the entries of units that others refer to, by the unit's offset.
    pub(super) origin_nestings: SharedMap<Option<Arc<Nesting>>>,
    /// The share of the lists of units and ranges in the memory budget.
    charge: Option<Charge>,
}

impl DwarfFile {
    /// Opens the sections of a binary, a debug file or a supplementary file. `None` without `.debug_info`. A
    /// damaged section is treated as empty. Inflated sections are read from the cache, or stored in it.
    pub(crate) fn open(elf: &Elf<SharedSource>, cache: Option<&AnswerCache>) -> Option<Self> {
        let Some(inflated) = cache.and_then(|cache| cache.inflated(elf)) else {
            return Self::open_with(elf, "", |_| None);
        };
        let file = Self::open_with(elf, "", |name| inflated.section(name))?;
        inflated.keep(&file.sections.inflated());
        Some(file)
    }

    /// Opens the sections of a split file or a package, whose names end in `.dwo`.
    pub(crate) fn open_split(elf: &Elf<SharedSource>) -> Option<Self> {
        Self::open_with(elf, ".dwo", |_| None)
    }

    /// Opens the sections whose names end in `suffix`. Sections that `known` has are not opened again.
    fn open_with(
        elf: &Elf<SharedSource>,
        suffix: &str,
        known: impl Fn(&str) -> Option<SectionContents>,
    ) -> Option<Self> {
        let open = |name: &str| -> Result<SectionContents, ObjectError> {
            known(name).map_or_else(|| SectionContents::open(elf, &format!(".debug_{name}{suffix}")), Ok)
        };
        let info = open("info").ok().filter(|info| info.len() > 0)?;
        let charge = elf.source().budget().map(Budget::charge);
        let sections = DwarfSections::new(elf.is_little_endian(), !suffix.is_empty(), info, |name| {
            open(name).unwrap_or_default()
        });
        Some(Self::with(sections, charge))
    }

    /// Opens the sections of a PE image.
    pub(crate) fn open_pe(pe: &Pe<SharedSource>) -> Option<Self> {
        let open = |name: &str| SectionContents::open_pe(pe, &format!(".debug_{name}"));
        let info = open("info").filter(|info| info.len() > 0)?;
        let charge = pe.source().budget().map(Budget::charge);
        let sections = DwarfSections::new(true, false, info, |name| open(name).unwrap_or_default());
        Some(Self::with(sections, charge))
    }

    /// Opens the sections of a Mach-O file: an image, the file in a `.dSYM`, or an object file.
    pub(crate) fn open_macho(file: &MachO<SharedSource>) -> Option<Self> {
        let open = |name: &str| SectionContents::open_macho(file, name);
        let info = open("info").filter(|info| info.len() > 0)?;
        let charge = file.source().budget().map(Budget::charge);
        let sections = DwarfSections::new(true, false, info, |name| open(name).unwrap_or_default());
        Some(Self::with(sections, charge))
    }

    fn with(sections: DwarfSections, charge: Option<Charge>) -> Self {
        Self { sections, charge, ..Self::default() }
    }

    /// The memory for what is read of the file.
    pub(super) fn budget(&self) -> Option<&Budget> {
        self.charge.as_ref().map(Charge::budget)
    }

    /// The headers of all units, by offset. Reads them at the first call, with one small read for each unit
    /// or for a few units.
    pub(crate) fn units(&self) -> &[UnitHeader] {
        self.units.get_or_init(|| self.read_units(|_, _| {}))
    }

    /// Calls `visit` with the headers of all units, by offset, and with the bytes that were read around each.
    pub(crate) fn visit_units(&self, visit: impl FnMut(&UnitHeader, &mut SectionWindow<'_>)) {
        let units = self.read_units(visit);
        // Another thread may have been faster.
        let _ = self.units.set(units);
    }

    fn read_units(&self, mut visit: impl FnMut(&UnitHeader, &mut SectionWindow<'_>)) -> Vec<UnitHeader> {
        let (mut units, mut buffer) = (Vec::new(), Vec::new());
        let mut heads = UnitHeader::window(&mut buffer);
        let mut offset = 0;
        while units.len() < MAX_UNITS
            && self.has_room_for(&units)
            && offset < self.sections.info.len()
            && let Some(header) = UnitHeader::read(&self.sections, offset, &mut heads)
            && header.end > offset
        {
            visit(&header, &mut heads);
            offset = header.end;
            units.push(header);
        }
        units
    }

    /// Whether one more item may be added to a list that is kept with the file. Memory is charged for many
    /// items at once.
    pub(super) fn has_room_for<T>(&self, list: &[T]) -> bool {
        const AT_ONCE: usize = 1024;
        let is_due = list.len().is_multiple_of(AT_ONCE);
        let take = |charge: &Charge| charge.take((AT_ONCE * size_of::<T>()) as u64);
        !is_due || self.charge.as_ref().is_none_or(take)
    }

    /// The unit that holds the entry at `offset` of `.debug_info`.
    pub(crate) fn unit_around(&self, offset: u64) -> Option<&UnitHeader> {
        let units = self.units();
        let after = units.partition_point(|unit| unit.offset <= offset);
        units.get(after.checked_sub(1)?).filter(|unit| offset < unit.end)
    }
}
