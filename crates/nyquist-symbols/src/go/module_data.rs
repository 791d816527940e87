//! The runtime's data about the program as a whole (`moduledata`). A stripped file has no symbol for it, so
//! it is found by its pointers to the function tables.

use super::memory::FileMemory;
use nyquist_object::go::{TableHeader, Version};

/// The parts of the module data that are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ModuleData {
    /// Where the code begins.
    pub(super) text: u64,
    /// The base of the positions of functions' additional data. Before Go 1.18 the positions are pointers.
    pub(super) function_data: Option<u64>,
}

/// Offsets in the module data, in words (`runtime/symtab.go`, `moduledata`).
const TEXT: u64 = 22;
const FUNCTION_DATA_1_18: u64 = 38;
const FUNCTION_DATA_1_20: u64 = 40;

impl ModuleData {
    /// Searches for the data that belongs to the tables at `address`.
    pub(super) fn find(memory: &FileMemory, address: u64, header: &TableHeader) -> Option<Self> {
        if header.version == Version::Two {
            return None;
        }
        memory.pointers_to(address).find_map(|at| Self::read(memory, at, address, header))
    }

    /// Reads the data at `at`, if it is module data, which begins with pointers to the tables' parts.
    fn read(memory: &FileMemory, at: u64, address: u64, header: &TableHeader) -> Option<Self> {
        let word = |number: u64| memory.word(at.checked_add(number * u64::from(header.pointer_size))?);
        let parts =
            [(1, header.names), (4, header.units), (7, header.files), (10, header.values), (13, header.list)];
        let points_to = |(number, part)| word(number) == address.checked_add(part);
        if !parts.into_iter().all(points_to) {
            return None;
        }
        let function_data = match header.version {
            Version::Eighteen => word(FUNCTION_DATA_1_18),
            Version::Twenty => word(FUNCTION_DATA_1_20),
            Version::Two | Version::Sixteen => None,
        };
        Some(Self { text: word(TEXT)?, function_data: function_data.filter(|&data| data != 0) })
    }
}
