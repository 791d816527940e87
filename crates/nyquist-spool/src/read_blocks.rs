//! Reads the records of a segment, also of one that is cut off or damaged.

use crate::blocks::{BLOCK, FRAGMENT_HEADER, MAX_RECORD, Part, checksum};
use crate::header::{Header, HeaderError};
use std::io::{self, Read};

/// What reading a segment has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadSegment {
    /// Its header.
    pub header: Header,
    /// The bytes that were skipped because they are damaged, or belong to a record that is. A record at the end that
    /// was not written in full is among them.
    pub skipped: u64,
}

/// Passes the records of a segment to `take`, together with the number of bytes that were skipped so far.
///
/// # Errors
/// The outer error is one of reading the file, the inner one says why it is not a segment.
pub fn read_segment(
    mut file: impl Read,
    mut take: impl FnMut(&[u8], u64),
) -> io::Result<Result<ReadSegment, HeaderError>> {
    let mut block = vec![0; BLOCK];
    let mut len = fill(&mut file, &mut block)?;
    let header = match Header::read(&block[..len]) {
        Ok(header) => header,
        Err(error) => return Ok(Err(error)),
    };
    let mut assembly = Assembly::default();
    let mut start = Header::SIZE;
    while len > 0 {
        assembly.read_block(&block[start..len], &mut take);
        len = fill(&mut file, &mut block)?;
        start = 0;
    }
    assembly.drop_begun();
    Ok(Ok(ReadSegment { header, skipped: assembly.skipped }))
}

/// Reads a block, or what there is of the last one.
fn fill(file: &mut impl Read, block: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < block.len() {
        match file.read(&mut block[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// A fragment at the beginning of some bytes.
enum Found<'a> {
    Fragment(Part, &'a [u8]),
    /// Zeros up to the end of the block.
    Rest,
    Damage,
}

/// Puts the fragments of a record together.
#[derive(Default)]
struct Assembly {
    /// The beginning of a record, if its end has not been read yet.
    begun: Option<Vec<u8>>,
    skipped: u64,
}

impl Assembly {
    fn read_block(&mut self, mut rest: &[u8], take: &mut impl FnMut(&[u8], u64)) {
        while !rest.is_empty() {
            match fragment(rest) {
                Found::Fragment(part, payload) => {
                    self.add(part, payload, take);
                    rest = &rest[FRAGMENT_HEADER + payload.len()..];
                }
                Found::Rest => return,
                // The length may be wrong, so nothing else of the block can be found.
                Found::Damage => {
                    self.drop_begun();
                    self.skipped += rest.len() as u64;
                    return;
                }
            }
        }
    }

    fn add(&mut self, part: Part, payload: &[u8], take: &mut impl FnMut(&[u8], u64)) {
        match (part, &mut self.begun) {
            (Part::Whole, _) => {
                self.drop_begun();
                take(payload, self.skipped);
            }
            (Part::First, _) => {
                self.drop_begun();
                self.begun = Some(payload.to_vec());
            }
            (Part::Middle | Part::Last, Some(begun)) if begun.len() + payload.len() <= MAX_RECORD => {
                begun.extend_from_slice(payload);
                if part == Part::Last
                    && let Some(record) = self.begun.take()
                {
                    take(&record, self.skipped);
                }
            }
            (Part::Middle | Part::Last, _) => {
                self.drop_begun();
                self.skipped += payload.len() as u64;
            }
        }
    }

    /// Drops a record whose end is missing.
    fn drop_begun(&mut self) {
        self.skipped += self.begun.take().map_or(0, |begun| begun.len() as u64);
    }
}

fn fragment(bytes: &[u8]) -> Found<'_> {
    let Some((header, rest)) = bytes.split_first_chunk::<FRAGMENT_HEADER>() else {
        return if bytes.iter().all(|byte| *byte == 0) { Found::Rest } else { Found::Damage };
    };
    let [sum @ .., low, high, part] = *header;
    let payload = rest.get(..usize::from(u16::from_le_bytes([low, high])));
    match (Part::of(part), payload) {
        (Some(part), Some(payload))
            if u32::from_le_bytes(sum) == checksum([low, high, part as u8], payload) =>
        {
            Found::Fragment(part, payload)
        }
        // A file system may leave zeros where nothing was written yet.
        _ if bytes.iter().all(|byte| *byte == 0) => Found::Rest,
        _ => Found::Damage,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::SegmentWriter;

    /// Records of many sizes, some of which end at the end of a block or need several.
    fn records() -> Vec<Vec<u8>> {
        let sizes = [1, 0, 100, BLOCK - 200, 5, 3 * BLOCK, BLOCK - FRAGMENT_HEADER, 20, 0, 7];
        sizes.iter().enumerate().map(|(number, size)| vec![number as u8 + 1; *size]).collect()
    }

    fn segment() -> (Vec<u8>, Vec<usize>) {
        let mut file = Vec::new();
        let mut writer = SegmentWriter::begin(&mut file, Header::default()).unwrap();
        let mut ends = Vec::new();
        for record in records() {
            writer.append([record.as_slice()]).unwrap();
            ends.push(writer.size() as usize);
        }
        (file, ends)
    }

    fn read(file: &[u8]) -> (Vec<Vec<u8>>, u64) {
        let mut found = Vec::new();
        let read = read_segment(file, |record, _| found.push(record.to_vec())).unwrap().unwrap();
        (found, read.skipped)
    }

    #[test]
    fn all_before_a_cut_is_read() {
        let (file, ends) = segment();
        assert_eq!(file.len(), *ends.last().unwrap());
        let is_near = |cut: usize, place: usize| cut.abs_diff(place) < 10;
        let is_border = |cut: &usize| {
            let in_block = cut % BLOCK;
            in_block < 10 || BLOCK - in_block < 10 || ends.iter().any(|end| is_near(*cut, *end))
        };
        for cut in (Header::SIZE..=file.len()).filter(|cut| cut % 997 == 0 || is_border(cut)) {
            let whole = ends.iter().filter(|end| **end <= cut).count();
            let (found, _) = read(&file[..cut]);
            assert_eq!(found, records()[..whole], "cut at {cut}");
        }
        assert_eq!(read(&file).1, 0);
    }

    #[test]
    fn reading_resumes_behind_damage() {
        let (file, _) = segment();
        for at in (Header::SIZE..file.len()).step_by(997) {
            let mut damaged = file.clone();
            damaged[at] ^= 0x10;
            let (found, skipped) = read(&damaged);
            assert!(found.len() < records().len() && skipped > 0, "damaged at {at}");
            assert!(found.iter().all(|record| records().contains(record)));
            // Damage in the first block does not reach those behind the long record.
            if at < BLOCK {
                assert_eq!(found.last(), records().last());
            }
        }
    }

    #[test]
    fn zeros_are_no_records() {
        let (file, ends) = segment();
        let mut torn = file.clone();
        torn[ends[2]..].fill(0);
        assert_eq!(read(&torn).0, records()[..3]);
    }
}
