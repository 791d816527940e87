//! The head of a file of the kernel's functions.

use super::block_index::BlockIndex;
use crate::cache::block_file::{FileHead, Magic};
use nyquist_object::{ByteSource, Cursor};

/// The magic number of every file. The last byte is the version of the layout.
pub(super) const MAGIC: Magic = *b"\x00nyqker\x01";

/// The longest head that is written and accepted. That of 120,000 functions has 10 kB.
pub(super) const MAX_HEAD: u32 = 1 << 20;

/// The contents of the head.
pub(super) struct CacheHead<'a> {
    pub(super) identity: &'a str,
    pub(super) modules: Vec<CachedKernelModule<'a>>,
    pub(super) index: BlockIndex<'a>,
}

/// A module and its range. It has no name if it had no place.
pub(super) struct CachedKernelModule<'a> {
    pub(super) name: &'a str,
    pub(super) offsets: [u64; 2],
}

impl<'a> CacheHead<'a> {
    /// Parses the head of a file of `file_len` bytes, all of which belong to the head or to a block.
    pub(super) fn parse(file: &'a FileHead, file_len: u64) -> Option<Self> {
        let bytes = file.contents.as_slice();
        let mut cursor = Cursor::new(bytes, 0, true);
        let [identity_len, modules, functions] = [cursor.u32()?, cursor.u32()?, cursor.u32()?];
        let identity = text(bytes, &mut cursor, identity_len)?;
        let modules =
            (0..modules).map(|_| CachedKernelModule::parse(bytes, &mut cursor)).collect::<Option<_>>()?;
        let index = bytes.get(cursor.position()..)?;
        let blocks = file.end()..file_len;
        Some(Self { identity, modules, index: BlockIndex::new(index, functions as usize, blocks)? })
    }
}

impl<'a> CachedKernelModule<'a> {
    fn parse(bytes: &'a [u8], cursor: &mut Cursor<'a>) -> Option<Self> {
        let offsets = [cursor.u64()?, cursor.u64()?];
        let len = cursor.u16()?;
        Some(Self { name: text(bytes, cursor, len.into())?, offsets })
    }
}

/// The next `len` bytes, which are text.
fn text<'a>(bytes: &'a [u8], cursor: &mut Cursor<'a>, len: u32) -> Option<&'a str> {
    let start = cursor.position();
    cursor.skip(len.into())?;
    std::str::from_utf8(bytes.get(start..cursor.position())?).ok()
}

/// The number of cached functions, according to the head. `None` if it is another file, or if its head is
/// damaged.
pub(crate) fn count_functions(source: &impl ByteSource) -> Option<usize> {
    let head = FileHead::read(source, MAGIC, 0, MAX_HEAD)?;
    Some(CacheHead::parse(&head, source.len())?.index.functions())
}
