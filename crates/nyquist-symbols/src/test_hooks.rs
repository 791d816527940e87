//! For tests: files of the cache with any contents and right checksums, as a faulty writer could make them, and
//! the readers of such files.

use crate::{AddressInfo, KernelSymbols, cache, kernel, symbol_table};
use nyquist_object::RelativeAddress;
use std::ops::Range;
use std::sync::Arc;

/// A block of answers with this payload, valid or not, whose checksum [`read_answers`] accepts. `None` if it is
/// longer than a block can be.
pub fn sealed_block(payload: &[u8], seed: u64) -> Option<Vec<u8>> {
    cache::sealed_block(payload, seed)
}

/// All answers in the bytes of a cache file whose blocks have `seed`, each with its first address. Damaged
/// ones are left out. O(bytes).
pub fn read_answers(bytes: Vec<u8>, seed: u64) -> Vec<(RelativeAddress, AddressInfo)> {
    cache::read_answers(bytes, seed)
}

/// A file of inflated sections up to them, with this list, valid or not, whose checksum [`read_inflated`]
/// accepts.
pub fn sealed_list(list: &[u8], seed: u64) -> Vec<u8> {
    cache::sealed_list(list, seed)
}

/// The sections in the bytes of a cache file whose list's checksum was made with `seed`, by their names.
/// Empty if the list is damaged. O(sections).
pub fn read_inflated(bytes: &[u8], seed: u64) -> Vec<(String, Range<u64>)> {
    cache::read_inflated(bytes, seed)
}

/// A file of the kernel's functions with this head and these blocks, valid or not, with checksums that
/// [`read_kernel`] accepts.
pub fn sealed_kernel(head: &[u8], blocks: &[Vec<u8>]) -> Vec<u8> {
    kernel::sealed_kernel(head, blocks)
}

/// The kernel's functions in the bytes of a cache file, as if each module were at address zero. `None` if it
/// is another file or its head is damaged. Functions in damaged blocks are not found.
pub fn read_kernel(bytes: Vec<u8>) -> Option<KernelSymbols> {
    kernel::read_kernel(bytes)
}

/// A file of a symbol table's rows with this head and these blocks, valid or not, with checksums that
/// [`read_table`] accepts.
pub fn sealed_table(head: &[u8], blocks: impl Iterator<Item = Vec<u8>>, seed: u64) -> Vec<u8> {
    symbol_table::sealed_table(head, blocks, seed)
}

/// The names of the functions around addresses. `seed` is that of the head's checksum in the cached function
/// table, and its names are in the strings. `None` if its head is damaged. Functions in a damaged block have
/// no name.
pub fn read_table(
    file: Vec<u8>,
    seed: u64,
    strings: Vec<u8>,
    addresses: &[u64],
) -> Option<Vec<Option<Arc<str>>>> {
    symbol_table::read_table(file, seed, strings, addresses)
}
