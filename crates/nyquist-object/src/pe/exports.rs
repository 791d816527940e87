//! The export table: the functions and data that other images can link to.

use super::{DataDirectory, Pe};
use crate::fields::HeaderFields;
use crate::{ByteSource, ObjectError, RelativeAddress};

/// The size of the export directory table ("Export Directory Table").
const TABLE: u32 = 40;

/// The maximum length of a name; Microsoft's compiler cuts names at 4096 bytes.
const MAX_NAME: u32 = 4 << 10;

/// The maximum number of exports, because ordinals have 16 bits.
const MAX_EXPORTS: u32 = 1 << 16;

/// An export of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// The address of the code or data.
    pub address: RelativeAddress,
    /// Its ordinal number, by which it can be linked to.
    pub ordinal: u32,
    /// Its name, if it has one. An export with several names is included several times.
    pub name: Option<Vec<u8>>,
}

/// A part of the image in memory, from which most of the table is read.
struct Window {
    start: RelativeAddress,
    bytes: Vec<u8>,
}

impl Window {
    fn get(&self, address: RelativeAddress) -> Option<&[u8]> {
        self.bytes.get(address.offset_from(self.start)? as usize..)
    }

    fn contains(&self, address: RelativeAddress) -> bool {
        address.offset_from(self.start).is_some_and(|offset| (offset as usize) < self.bytes.len())
    }
}

impl<S: ByteSource> Pe<S> {
    /// The exports of the image. Those with names come first, in the order of the table. Names that are
    /// forwarded to another image are left out.
    pub fn exports(&self) -> Result<Vec<Export>, ObjectError> {
        let Some((address, size)) = self.directory(DataDirectory::Exports) else { return Ok(Vec::new()) };
        // The size includes the names; if a linker states less, this still works.
        let room = self.file_range(address).map_or(0, |(_, room)| room);
        let window = Window { start: address, bytes: self.read_at(address, size.max(TABLE).min(room))? };
        let malformed = || ObjectError::malformed("export table", "it is cut off");
        let table = self.export_table(&window).ok_or_else(malformed)?;
        Ok(table.exports(self, &window))
    }

    fn export_table(&self, window: &Window) -> Option<ExportArrays> {
        let fields = HeaderFields(&window.bytes);
        let (count, names) = (fields.u32(20)?.min(MAX_EXPORTS), fields.u32(24)?.min(MAX_EXPORTS));
        Some(ExportArrays {
            first_ordinal: fields.u32(16)?,
            addresses: self.export_words(window, fields.u32(28)?, count, 4)?,
            names: self.export_words(window, fields.u32(32)?, names, 4)?,
            indexes: self.export_words(window, fields.u32(36)?, names, 2)?,
        })
    }

    /// An array of `count` elements of `size` bytes.
    fn export_words(&self, window: &Window, address: u32, count: u32, size: u32) -> Option<Vec<u8>> {
        let len = count.checked_mul(size)?;
        let address = RelativeAddress(address);
        match window.get(address).and_then(|bytes| bytes.get(..len as usize)) {
            Some(bytes) => Some(bytes.to_vec()),
            None if len == 0 => Some(Vec::new()),
            None => self.read_at(address, len).ok(),
        }
    }

    fn export_name(&self, window: &Window, address: RelativeAddress) -> Option<Vec<u8>> {
        let inside = window.get(address).and_then(|bytes| {
            let bytes = bytes.get(..bytes.len().min(MAX_NAME as usize))?;
            bytes.get(..bytes.iter().position(|&byte| byte == 0)?)
        });
        inside.map(<[u8]>::to_vec).or_else(|| self.string_at(address, MAX_NAME))
    }
}

/// The arrays of the export table.
struct ExportArrays {
    first_ordinal: u32,
    addresses: Vec<u8>,
    names: Vec<u8>,
    indexes: Vec<u8>,
}

impl ExportArrays {
    fn exports<S: ByteSource>(&self, pe: &Pe<S>, window: &Window) -> Vec<Export> {
        let count = self.addresses.len() / 4;
        let mut named = vec![false; count];
        let mut exports = Vec::new();
        // Names do not overlap, so all of them together are no longer than the file.
        let mut budget = pe.source.len();
        for (name, index) in self.names.chunks_exact(4).zip(self.indexes.chunks_exact(2)) {
            let Some((name, index)) = HeaderFields(name).u32(0).zip(HeaderFields(index).u16(0)) else {
                continue;
            };
            let Some(address) = self.address(usize::from(index), window) else { continue };
            let Some(name) = pe.export_name(window, RelativeAddress(name)) else { continue };
            let Some(rest) = budget.checked_sub(name.len() as u64 + 1) else { break };
            budget = rest;
            named[usize::from(index)] = true;
            exports.push(Export { address, ordinal: self.ordinal(index.into()), name: Some(name) });
        }
        let nameless = (0..count).filter(|&index| !named[index]).filter_map(|index| {
            let address = self.address(index, window)?;
            Some(Export { address, ordinal: self.ordinal(index as u32), name: None })
        });
        exports.extend(nameless);
        exports
    }

    fn ordinal(&self, index: u32) -> u32 {
        self.first_ordinal.wrapping_add(index)
    }

    /// The address of an export; `None` if nothing is exported, or if the export is in another image. The
    /// latter is a string within the table ("Export Address Table").
    fn address(&self, index: usize, window: &Window) -> Option<RelativeAddress> {
        let address = RelativeAddress(HeaderFields(self.addresses.get(4 * index..)?).u32(0)?);
        (address.0 != 0 && !window.contains(address)).then_some(address)
    }
}
