//! The tables of a module in parts, each of which is compiled when its code is first needed. A recording of a
//! large program only needs some of its functions. Running the instructions of call frame information is half
//! of the time of compiling all of it.

use std::slice;
use std::sync::{Mutex, OnceLock, PoisonError};

use nyquist_object::{Architecture, RelativeAddress};

use crate::Damage;
use crate::aarch64::Aarch64;
use crate::call_frame_info::CallFrameInfo;
use crate::code::AllCode;
use crate::compile::FdeCompiler;
use crate::rule::Rule;
use crate::rule_table::RuleTable;
use crate::x86_64::X86_64;

/// The bytes of code in a part, as a power of two.
const PART_BITS: u32 = 15;

/// The tables of a module that has only call frame information.
#[derive(Debug)]
pub(crate) struct TableParts {
    architecture: Architecture,
    /// As stated in the file.
    image_base: u64,
    /// The number of the first part, counted from the image base.
    first: u32,
    by_address: Vec<TablePart>,
    /// The damage that was found so far.
    damage: Mutex<Damage>,
}

/// The pieces that begin in a range of code. Each piece is in only one part, so that no FDE is evaluated
/// twice, however large it is.
#[derive(Debug)]
struct TablePart {
    /// Where the first piece begins. Without pieces, this is the highest address. Code before it belongs to
    /// the last piece of an earlier part.
    start: u32,
    /// The last part before this one that has pieces. If there is none, this part.
    before: u32,
    table: OnceLock<Box<RuleTable>>,
}

impl TableParts {
    /// The parts of pieces that begin at these addresses, which ascend. If a piece continues after another
    /// piece within it, the rest is found if it is in the part where one of them begins.
    pub(crate) fn new(
        architecture: Architecture,
        image_base: u64,
        starts: impl Iterator<Item = u32>,
    ) -> Self {
        let (mut first, mut parts) = (None, Vec::new());
        for start in starts {
            let number = start >> PART_BITS;
            let place = (number - *first.get_or_insert(number)) as usize;
            if place < parts.len() {
                continue;
            }
            let before = parts.len().saturating_sub(1) as u32;
            parts.resize_with(place, || TablePart { start: u32::MAX, before, table: OnceLock::new() });
            parts.push(TablePart { start, before, table: OnceLock::new() });
        }
        let first = first.unwrap_or_default();
        Self { architecture, image_base, first, by_address: parts, damage: Mutex::default() }
    }

    /// The rule for the code at the address.
    pub(crate) fn rule(&self, address: RelativeAddress, frames: &CallFrameInfo) -> Rule {
        self.number(address).map_or(Rule::UNCOVERED, |number| self.table(number, frames).rule(address))
    }

    /// The part that has the last piece that begins at or before an address.
    fn number(&self, address: RelativeAddress) -> Option<usize> {
        let number = (address.0 >> PART_BITS).checked_sub(self.first)? as usize;
        let number = number.min(self.by_address.len().checked_sub(1)?);
        let part = &self.by_address[number];
        Some(if address.0 < part.start { part.before as usize } else { number })
    }

    /// All tables, by address. Compiles those that were not needed yet.
    pub(crate) fn all<'a>(&'a self, frames: &'a CallFrameInfo) -> impl Iterator<Item = &'a RuleTable> {
        let numbers = (0..self.by_address.len()).filter(|&number| self.by_address[number].start != u32::MAX);
        numbers.map(move |number| self.table(number, frames))
    }

    /// The damage of the parts that were compiled so far.
    pub(crate) fn damage(&self) -> Damage {
        self.damage.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many bytes of memory the compiled tables take.
    pub(crate) fn size(&self) -> usize {
        let tables = self.by_address.iter().filter_map(|part| part.table.get());
        size_of_val(&*self.by_address)
            + tables.map(|table| size_of_val(&**table) + table.size()).sum::<usize>()
    }

    fn table(&self, number: usize, frames: &CallFrameInfo) -> &RuleTable {
        self.by_address[number].table.get_or_init(|| Box::new(self.compiled(number, frames)))
    }

    #[cold]
    fn compiled(&self, number: usize, frames: &CallFrameInfo) -> RuleTable {
        let number = self.first + number as u32;
        let first = number << PART_BITS;
        let starts = first..=first | ((1 << PART_BITS) - 1);
        let mut damage = Damage::default();
        let table = frames.beginning_in(starts, &mut damage, |pieces, sections, damage| {
            let mut compiler = FdeCompiler { image_base: self.image_base, code: &[], damage };
            let nothing_else = (&[][..], &AllCode::default());
            match self.architecture {
                Architecture::Aarch64 => compiler.table::<Aarch64>(pieces, sections, nothing_else),
                _ => compiler.table::<X86_64>(pieces, sections, nothing_else),
            }
        });
        self.damage.lock().unwrap_or_else(PoisonError::into_inner).merge(damage);
        table
    }
}

/// The rules of a module.
#[derive(Debug)]
pub(crate) enum Tables {
    /// Compiled together.
    Whole(RuleTable),
    /// Compiled when walks need them.
    Parts(TableParts),
}

impl Default for Tables {
    fn default() -> Self {
        Self::Whole(RuleTable::default())
    }
}

impl Tables {
    /// The rule for the code at the address.
    pub(crate) fn rule(&self, address: RelativeAddress, frames: &CallFrameInfo) -> Rule {
        match self {
            Self::Whole(table) => table.rule(address),
            Self::Parts(parts) => parts.rule(address, frames),
        }
    }

    /// All of them, by address.
    pub(crate) fn all<'a>(
        &'a self,
        frames: &'a CallFrameInfo,
    ) -> Box<dyn Iterator<Item = &'a RuleTable> + 'a> {
        match self {
            Self::Whole(table) => Box::new(slice::from_ref(table).iter()),
            Self::Parts(parts) => Box::new(parts.all(frames)),
        }
    }

    /// The damage that was found while parts were compiled.
    pub(crate) fn damage(&self) -> Damage {
        match self {
            Self::Whole(_) => Damage::default(),
            Self::Parts(parts) => parts.damage(),
        }
    }

    /// How many bytes of memory they take.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Whole(table) => table.size(),
            Self::Parts(parts) => parts.size(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_in_the_part_of_the_piece_before() {
        const PART: u32 = 1 << PART_BITS;
        let check = |starts: &[u32], address: u32, expected: Option<u32>| {
            let parts = TableParts::new(Architecture::X86_64, 0, starts.iter().copied());
            let found = parts.number(RelativeAddress(address)).map(|number| {
                *starts.iter().rfind(|&start| start >> PART_BITS == parts.first + number as u32).unwrap()
            });
            assert_eq!(found, expected, "{starts:x?} at {address:#x}");
        };
        check(&[], 0, None);
        let starts = [2 * PART + 5, 2 * PART + 9, 3 * PART + 7, 9 * PART];
        for (address, expected) in [
            (0, None),
            (2 * PART + 5, Some(1)),
            (3 * PART + 6, Some(1)),
            (3 * PART + 7, Some(2)),
            (5 * PART, Some(2)),
            (9 * PART - 1, Some(2)),
            (9 * PART, Some(3)),
            (u32::MAX, Some(3)),
        ] {
            check(&starts, address, expected.map(|piece: usize| starts[piece]));
        }
        // No piece is before the first one, but its table is still used for such an address.
        check(&starts, 2 * PART, Some(starts[1]));
    }
}
