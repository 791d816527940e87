//! The pages of a column for the library, which decodes their values. What a page states is checked first, because
//! the library allocates by it.

use ::parquet::basic::{Compression, Encoding, Type};
use ::parquet::column::page::{Page, PageMetadata, PageReader};
use ::parquet::errors::{ParquetError, Result};
use ::parquet::file::metadata::ColumnChunkMetaData;
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::page_header::{self, PageHeader, PageKind};
use crate::zstd;

/// The decompressed bytes of a page. Writers make pages of a megabyte, and longer ones only for long values.
const MAX_PAGE_BYTES: u32 = 64 << 20;

/// The entries of a list: the frames of a stack, or the labels of a process.
pub(super) const MAX_ENTRIES: u64 = 1 << 16;

/// The values of all columns for each byte of the file, and some for small files: pages of equal values are small. A
/// thread that waits for hours with one stack of a hundred frames has a hundred values for each byte.
const VALUES_PER_BYTE: u64 = 128;
const MORE_VALUES: u64 = 1 << 25;

/// The values that may still be read of a file.
#[derive(Clone, Debug)]
pub(super) struct ValueBudget(Arc<AtomicU64>);

impl ValueBudget {
    /// The budget of a file with this length.
    pub(super) fn new(length: usize) -> Self {
        let budget = (length as u64).saturating_mul(VALUES_PER_BYTE).saturating_add(MORE_VALUES);
        Self(Arc::new(AtomicU64::new(budget)))
    }

    fn take(&self, count: u64) -> Result<()> {
        let update = |left: u64| left.checked_sub(count);
        match self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, update) {
            Ok(_) => Ok(()),
            Err(_) => Err(refused("its values are out of all proportion to its length")),
        }
    }
}

/// The error for a file that is refused.
pub(super) fn refused(problem: &str) -> ParquetError {
    ParquetError::General(problem.to_owned())
}

/// The rest of a column's pages.
pub(super) struct Pages {
    rest: Bytes,
    compression: Compression,
    kind: Type,
    is_list: bool,
    has_dictionary: bool,
    /// The entries of the current list so far.
    entries: u64,
    budget: ValueBudget,
}

impl Pages {
    /// The pages of a column of the file.
    pub(super) fn new(file: &Bytes, column: &ColumnChunkMetaData, budget: &ValueBudget) -> Result<Self> {
        let first =
            column.dictionary_page_offset().filter(|offset| *offset > 0).unwrap_or(column.data_page_offset());
        let range = || {
            let start = usize::try_from(first).ok()?;
            let end = start.checked_add(usize::try_from(column.compressed_size()).ok()?)?;
            (end <= file.len()).then(|| file.slice(start..end))
        };
        let compression = column.compression();
        if !matches!(compression, Compression::ZSTD(_) | Compression::UNCOMPRESSED) {
            return Err(refused("its columns are compressed in another way than with zstd"));
        }
        Ok(Self {
            rest: range().ok_or_else(|| refused("a column is beyond its end"))?,
            compression,
            kind: column.column_type(),
            is_list: column.column_descr().max_rep_level() > 0,
            has_dictionary: false,
            entries: 0,
            budget: budget.clone(),
        })
    }

    fn next_page(&mut self) -> Result<Option<Page>> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let (header, after) =
            page_header::read(&self.rest).ok_or_else(|| refused("the header of a page is damaged"))?;
        let start = self.rest.len() - after.len();
        let end = start.saturating_add(header.compressed as usize);
        if end > self.rest.len() || header.uncompressed > MAX_PAGE_BYTES {
            return Err(refused("a page is longer than its column"));
        }
        let body = self.rest.slice(start..end);
        self.rest = self.rest.slice(end..);
        self.budget.take(header.values.into())?;
        let body = self.unpack(&header, body)?;
        match header.kind {
            PageKind::Data => self.data(&header, body).map(Some),
            PageKind::Dictionary => self.dictionary(&header, body).map(Some),
            PageKind::Other => Err(refused("it has pages of another version than 1")),
        }
    }

    fn unpack(&self, header: &PageHeader, body: Bytes) -> Result<Bytes> {
        let requested = header.uncompressed as usize;
        let body = match self.compression {
            Compression::ZSTD(_) => {
                Bytes::from(zstd::decompress_start(&body, u64::from(header.uncompressed) + 1))
            }
            _ => body,
        };
        if body.len() == requested {
            Ok(body)
        } else {
            Err(refused("a page has another length than it states"))
        }
    }

    /// A dictionary is a table of plain values, each of which has a least length.
    fn dictionary(&mut self, header: &PageHeader, buf: Bytes) -> Result<Page> {
        let least = if self.kind == Type::INT32 { 4 } else { 8 };
        if std::mem::replace(&mut self.has_dictionary, true) {
            return Err(refused("a column has two dictionaries"));
        }
        let has_all = match self.kind {
            Type::BYTE_ARRAY => texts(&buf) == Some(u64::from(header.values)),
            _ => header.values as usize <= buf.len() / least,
        };
        if !has_all {
            return Err(refused("a dictionary has more values than bytes"));
        }
        Ok(Page::DictionaryPage {
            buf,
            num_values: header.values,
            encoding: Encoding::PLAIN,
            is_sorted: false,
        })
    }

    fn data(&mut self, header: &PageHeader, buf: Bytes) -> Result<Page> {
        let encoding = match header.encoding {
            0 => Encoding::PLAIN,
            2 | 8 if self.has_dictionary => Encoding::RLE_DICTIONARY,
            _ => return Err(refused("its values have an encoding that is not read here")),
        };
        let (defined, plain) = if self.is_list {
            self.check_lists(&buf, header.values)?
        } else {
            (u64::from(header.values), &buf[..])
        };
        let is_plain_text = encoding == Encoding::PLAIN && self.kind == Type::BYTE_ARRAY;
        if is_plain_text && texts(plain).is_none_or(|count| count < defined) {
            return Err(refused("a page has fewer values than it states"));
        }
        Ok(Page::DataPage {
            buf,
            num_values: header.values,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        })
    }

    /// The number of values of a page with lists, and the bytes of the values. Fails if a list has too many entries.
    /// The page begins with the repetition levels, which are 0 where a list begins, and the definition levels, which
    /// are 0 for a list without entries.
    fn check_lists<'p>(&mut self, page: &'p [u8], values: u32) -> Result<(u64, &'p [u8])> {
        let (mut entries, mut most, mut defined) = (self.entries, 0, 0);
        let levels = |page, on_run: &mut dyn FnMut(bool, u64)| {
            levels(page, values.into(), on_run).ok_or_else(|| refused("the lists of a page are damaged"))
        };
        let rest = levels(page, &mut |is_set, count| {
            entries = if is_set { entries.saturating_add(count) } else { 0 };
            most = most.max(entries);
        })?;
        let rest = levels(rest, &mut |is_set, count| defined += if is_set { count } else { 0 })?;
        self.entries = entries;
        if most > MAX_ENTRIES { Err(refused("a list is longer than any stack")) } else { Ok((defined, rest)) }
    }
}

/// The number of texts, each with its length before it. `None` if one is longer than the bytes that are there.
fn texts(mut bytes: &[u8]) -> Option<u64> {
    let mut count = 0;
    while !bytes.is_empty() {
        let (length, rest) = bytes.split_first_chunk()?;
        bytes = rest.get(u32::from_le_bytes(*length) as usize..)?;
        count += 1;
    }
    Some(count)
}

/// Passes on the levels of a page, each 0 or 1, as runs, and returns the bytes after them. They are runs, or groups of
/// 8 bits. `None` if they are damaged.
fn levels<'p>(page: &'p [u8], values: u64, on_run: &mut dyn FnMut(bool, u64)) -> Option<&'p [u8]> {
    let (length, rest) = page.split_first_chunk()?;
    let (mut levels, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    let mut left = values;
    while left > 0 {
        let (run, after) = varint(levels)?;
        let count = run >> 1;
        if run & 1 == 0 {
            let (&level, after) = after.split_first()?;
            on_run(level != 0, count.min(left));
            (levels, left) = (after, left.saturating_sub(count.max(1)));
        } else {
            let (groups, after) = after.split_at_checked(usize::try_from(count).ok()?)?;
            let bits = groups.iter().flat_map(|byte| (0..8).map(move |bit| byte >> bit & 1));
            bits.take(usize::try_from(left).ok()?).for_each(|bit| on_run(bit != 0, 1));
            (levels, left) = (after, left.saturating_sub(count.saturating_mul(8).max(1)));
        }
    }
    Some(rest)
}

/// A number of 7 bits a byte, and the bytes after it.
fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let length = bytes.iter().take(10).position(|byte| *byte < 0x80)? + 1;
    let (number, rest) = bytes.split_at(length);
    let sum = number.iter().rev().fold(0_u64, |sum, byte| sum << 7 | u64::from(byte & 0x7f));
    Some((sum, rest))
}

impl Iterator for Pages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Result<Page>> {
        self.next_page().transpose()
    }
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        self.next_page()
    }

    /// Where the next page begins is known only at the end of the column.
    fn at_record_boundary(&mut self) -> Result<bool> {
        Ok(self.rest.is_empty())
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        Err(refused("pages are read in order"))
    }

    fn skip_next_page(&mut self) -> Result<()> {
        Err(refused("pages are read in order"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A megabyte of pages of equal values would otherwise be read for minutes.
    #[test]
    fn values_are_in_proportion_to_the_file() {
        let budget = ValueBudget::new(1_000_000);
        assert!((0..16).all(|_| budget.take(10_000_000).is_ok()));
        assert_eq!(
            budget.take(10_000_000).unwrap_err().to_string(),
            "Parquet error: its values are out of all proportion to its length"
        );
        assert!(ValueBudget::new(0).take(30_000_000).is_ok(), "a small file may have many");
    }
}
