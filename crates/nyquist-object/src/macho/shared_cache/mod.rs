//! The dyld shared cache: one file, or several, into which macOS has linked its libraries. They are in no
//! other file (Apple's `dyld_cache_format.h`).
//!
//! A library's segments are apart from each other, and its names are in tables that all libraries share.
//! Names that no other library needs are in a separate file. [`SharedCache::extract`] makes a Mach-O file
//! from one library again.

mod extract;
mod space;

pub use extract::ExtractedLibrary;

use crate::fields::{u32_at, u64_at};
use crate::{ByteSource, FileOffset, MachUuid, ObjectError, Svma};
use space::{CacheMapping, CacheSpace};

/// The start of a cache; the architecture follows.
pub const MAGIC: &[u8; 7] = b"dyld_v1";

/// The maximum size of each table; real caches have a few thousand libraries and a hundred files.
const MAX_ENTRIES: u32 = 1 << 16;

/// The maximum length of a path.
const MAX_PATH: u64 = 4 << 10;

/// The offsets of fields in the header.
const MAPPINGS: u64 = 16;
const LOCAL_SYMBOLS: u64 = 72;
const UUID: u64 = 88;
const IMAGES_TEXT: u64 = 136;
const SUB_CACHES: u64 = 392;
const SYMBOLS_UUID: u64 = 400;
const SUB_TYPE: u64 = 456;
/// The minimum size of the header. It is longer in new caches; fields at or after the first mapping do not
/// exist.
const MIN_HEADER_SIZE: u64 = 0x90;

/// A library in a cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachedImage {
    /// Its UUID.
    pub uuid: MachUuid,
    /// Its header's address if the cache is loaded at its stated address.
    pub address: Svma,
    /// Its path, such as `/usr/lib/libSystem.B.dylib`.
    pub path: String,
}

/// A cache. Opening it reads only the headers of its files and the list of libraries.
#[derive(Debug)]
pub struct SharedCache<S> {
    space: CacheSpace<S>,
    images: Vec<CachedImage>,
    symbols: Option<LocalSymbols<S>>,
}

/// Another file of a cache.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SubCache {
    uuid: MachUuid,
    /// The part of its name after the name of the cache, such as `.1` or `.25.dylddata`.
    suffix: String,
}

/// The symbols that no other library needs.
#[derive(Debug)]
struct LocalSymbols<S> {
    source: S,
    start: u64,
    /// Whether libraries are found by their address in memory, as in caches of several files.
    by_address: bool,
}

impl<S: ByteSource> SharedCache<S> {
    /// The libraries of a cache, from its first file alone.
    ///
    /// # Errors
    /// If the file is not a cache, or is shorter than it claims.
    pub fn images_of(main: &S) -> Result<Vec<CachedImage>, ObjectError> {
        let header = CacheHeader::read(main)?;
        let count = u32::try_from(header.u64(main, IMAGES_TEXT + 8)?).unwrap_or(u32::MAX);
        let list = table(main, header.u64(main, IMAGES_TEXT)?, count, 32)?;
        let image = |entry: &[u8; 32]| {
            let uuid = MachUuid(*entry.first_chunk()?);
            let (address, path) = (Svma(u64_at(entry, 16)), u32_at(entry, 28));
            Some(CachedImage { uuid, address, path: string(main, path.into())? })
        };
        Ok(list.as_chunks().0.iter().filter_map(image).collect())
    }

    /// Opens a cache. `other` opens the file whose name is that of the first one with a suffix, such as `.1`.
    /// Files that are missing, or belong to another cache, are left out, and so are their contents.
    ///
    /// # Errors
    /// If the file is not a cache, or is shorter than it claims.
    pub fn open(main: S, mut other: impl FnMut(&str) -> Option<S>) -> Result<Self, ObjectError> {
        let header = CacheHeader::read(&main)?;
        let images = Self::images_of(&main)?;
        let symbols_uuid = header.uuid(&main, SYMBOLS_UUID).filter(|uuid| uuid.0 != [0; 16]);
        let of_id = |source: &S, uuid: MachUuid| {
            CacheHeader::read(source).ok().and_then(|header| header.uuid(source, UUID)) == Some(uuid)
        };
        let symbols = match symbols_uuid {
            Some(uuid) => other(".symbols").filter(|file| of_id(file, uuid)),
            None => None,
        };
        let symbols = symbols.and_then(|file| LocalSymbols::of(file).ok().flatten());
        let sub_caches = header.sub_caches(&main)?;
        let mut space = CacheSpace::default();
        space.add(mappings(&main)?, main);
        for SubCache { uuid, suffix } in sub_caches {
            let Some(file) = other(&suffix).filter(|file| of_id(file, uuid)) else { continue };
            space.add(mappings(&file).unwrap_or_default(), file);
        }
        Ok(Self { space, images, symbols })
    }

    /// The libraries in the cache.
    pub fn images(&self) -> &[CachedImage] {
        &self.images
    }
}

impl<S: ByteSource> LocalSymbols<S> {
    /// The local symbols of a file, if it has any.
    fn of(source: S) -> Result<Option<Self>, ObjectError> {
        let header = CacheHeader::read(&source)?;
        let (start, size) = (header.u64(&source, LOCAL_SYMBOLS)?, header.u64(&source, LOCAL_SYMBOLS + 8)?);
        let by_address = header.size >= SYMBOLS_UUID;
        Ok((start != 0 && size != 0).then_some(Self { source, start, by_address }))
    }
}

/// The header of one of a cache's files.
#[derive(Clone, Copy, Debug)]
struct CacheHeader {
    /// Its size; the mappings follow it.
    size: u64,
}

impl CacheHeader {
    fn read<S: ByteSource>(source: &S) -> Result<Self, ObjectError> {
        let start = source.read_range(0, 24).map_err(|_| ObjectError::NotAnObject)?;
        if !start.starts_with(MAGIC) {
            return Err(ObjectError::NotAnObject);
        }
        let size = u64::from(u32_at(&start, MAPPINGS as usize));
        if size < MIN_HEADER_SIZE {
            return Err(ObjectError::Unsupported("a shared cache of this age".to_owned()));
        }
        Ok(Self { size })
    }

    /// A number of the header; 0 if the header is older than the field.
    fn u64<S: ByteSource>(self, source: &S, at: u64) -> Result<u64, ObjectError> {
        if at + 8 > self.size {
            return Ok(0);
        }
        let bytes = source.read_range(at, 8)?;
        Ok(bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes)))
    }

    fn uuid<S: ByteSource>(self, source: &S, at: u64) -> Option<MachUuid> {
        let bytes = source.read_range(at, 16).ok().filter(|_| at + 16 <= self.size)?;
        Some(MachUuid(*bytes.first_chunk()?))
    }

    /// The other files of the cache (`dyld_subcache_entry`); in older caches they are numbered.
    fn sub_caches<S: ByteSource>(self, source: &S) -> Result<Vec<SubCache>, ObjectError> {
        let counted = self.u64(source, SUB_CACHES)?;
        let (at, count) = (counted & 0xffff_ffff, (counted >> 32) as u32);
        let size = if self.size > SUB_TYPE { 56 } else { 24 };
        let table = table(source, at, count, size)?;
        let entries = table.chunks_exact(size as usize).zip(1..);
        let sub_cache = |(entry, number): (&[u8], u32)| {
            let suffix = match entry.get(24..56) {
                Some(name) => text_of(name)?,
                None => format!(".{number}"),
            };
            // It becomes part of a path.
            let is_plain = suffix.starts_with('.') && !suffix.contains('/');
            is_plain.then_some(SubCache { uuid: MachUuid(*entry.first_chunk()?), suffix })
        };
        Ok(entries.filter_map(sub_cache).collect())
    }
}

/// The mapped ranges of a file (`dyld_cache_mapping_info`).
fn mappings<S: ByteSource>(source: &S) -> Result<Vec<CacheMapping>, ObjectError> {
    let counted = source.read_range(MAPPINGS, 8)?;
    let table = table(source, u32_at(&counted, 0).into(), u32_at(&counted, 4), 32)?;
    let mapping = |entry: &[u8; 32]| CacheMapping {
        address: u64_at(entry, 0),
        size: u64_at(entry, 8),
        offset: FileOffset(u64_at(entry, 16)),
    };
    Ok(table.as_chunks().0.iter().map(mapping).collect())
}

/// The bytes of a table of `count` entries.
fn table<S: ByteSource>(source: &S, at: u64, count: u32, size: u64) -> Result<Vec<u8>, ObjectError> {
    if count > MAX_ENTRIES {
        return Err(ObjectError::malformed("shared cache", format!("{count} entries of a table")));
    }
    source.read_range(at, u64::from(count) * size)
}

fn text_of(bytes: &[u8]) -> Option<String> {
    let end = bytes.iter().position(|&byte| byte == 0)?;
    String::from_utf8(bytes.get(..end)?.to_vec()).ok()
}

/// A path in the file.
fn string<S: ByteSource>(source: &S, at: u64) -> Option<String> {
    let len = source.len().checked_sub(at)?.min(MAX_PATH);
    text_of(&source.read_range(at, len).ok()?)
}
