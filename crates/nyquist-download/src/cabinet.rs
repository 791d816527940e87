//! Cabinets, in which symbol stores keep compressed files (`.pd_`, `.dl_`, `.ex_`). Each contains one
//! file. Uncompressed data, MSZIP and LZX are supported. Quantum is not, because no symbol store uses it
//! ("Microsoft Cabinet Format" and "MSZIP Data Compression Format", learn.microsoft.com, `[MS-CAB]` and
//! `[MS-MCI]`).

use flate2::{Decompress, FlushDecompress, Status};
use lzxd::{Lzxd, WindowSize};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};

/// The maximum expanded size of a block, and the maximum distance of MSZIP references.
const BLOCK: usize = 32 << 10;

/// Flags of the header: the file begins or ends in another cabinet, or the parts have reserved space.
const HAS_PREVIOUS: u16 = 1;
const HAS_NEXT: u16 = 2;
const HAS_RESERVED: u16 = 4;

/// The reason why a cabinet cannot be expanded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CabinetError {
    #[error("not a cabinet file")]
    NotACabinet,
    #[error("the cabinet is damaged: {0}")]
    Damaged(&'static str),
    #[error("cabinets of this kind are not read: {0}")]
    Unsupported(&'static str),
    #[error("the file is larger than {0} bytes")]
    TooLarge(u64),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Writes the first file of a cabinet to `target`, if it has at most `max_bytes`. Needs at most about 2
/// MiB of memory.
pub(crate) fn expand(cabinet: &File, target: &File, max_bytes: u64) -> Result<(), CabinetError> {
    let mut cabinet = BufReader::with_capacity(64 << 10, cabinet);
    let mut target = BufWriter::with_capacity(64 << 10, target);
    let plan = FilePosition::read(&mut cabinet)?;
    if plan.size > max_bytes {
        return Err(CabinetError::TooLarge(max_bytes));
    }
    let mut decoder = FolderDecoder::new(plan.compression)?;
    cabinet.seek(SeekFrom::Start(plan.data))?;
    let (mut skip, mut left) = (plan.start, plan.size);
    for _ in 0..plan.blocks {
        if left == 0 {
            break;
        }
        let block = DataBlock::read(&mut cabinet, plan.reserved_in_blocks)?;
        let bytes = decoder.expand(&block)?;
        let from = usize::try_from(skip).unwrap_or(usize::MAX).min(bytes.len());
        let bytes = bytes.get(from..).unwrap_or_default();
        skip -= from as u64;
        let bytes =
            bytes.get(..usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len())).unwrap_or(bytes);
        target.write_all(bytes)?;
        left -= bytes.len() as u64;
    }
    target.flush()?;
    if left == 0 { Ok(()) } else { Err(CabinetError::Damaged("it ends before its file does")) }
}

/// The position of the first file.
struct FilePosition {
    size: u64,
    /// The number of bytes of other files before it.
    start: u64,
    data: u64,
    blocks: u16,
    compression: u16,
    reserved_in_blocks: u8,
}

fn number<const N: usize>(reader: &mut impl Read) -> Result<[u8; N], CabinetError> {
    let mut bytes = [0; N];
    reader.read_exact(&mut bytes).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => CabinetError::Damaged("it is cut"),
        _ => CabinetError::Io(error),
    })?;
    Ok(bytes)
}

fn u32(reader: &mut impl Read) -> Result<u32, CabinetError> {
    number(reader).map(u32::from_le_bytes)
}

fn u16(reader: &mut impl Read) -> Result<u16, CabinetError> {
    number(reader).map(u16::from_le_bytes)
}

impl FilePosition {
    fn read(cabinet: &mut (impl Read + Seek)) -> Result<Self, CabinetError> {
        let start: [u8; 16] = number(cabinet).map_err(|_| CabinetError::NotACabinet)?;
        if !start.starts_with(b"MSCF") {
            return Err(CabinetError::NotACabinet);
        }
        let files_at = u32(cabinet)?;
        let _: [u8; 6] = number(cabinet)?;
        let (folders, files, flags) = (u16(cabinet)?, u16(cabinet)?, u16(cabinet)?);
        let _set_and_number = u32(cabinet)?;
        let (mut in_header, mut in_folders, mut in_blocks) = (0, 0, 0);
        if flags & HAS_RESERVED != 0 {
            in_header = u16(cabinet)?;
            [in_folders, in_blocks] = number(cabinet)?;
        }
        if flags & (HAS_PREVIOUS | HAS_NEXT) != 0 {
            return Err(CabinetError::Unsupported("one of several"));
        }
        let folders_at = cabinet.stream_position()? + u64::from(in_header);
        cabinet.seek(SeekFrom::Start(files_at.into()))?;
        let (size, start, folder) = (u32(cabinet)?, u32(cabinet)?, u16(cabinet)?);
        if files == 0 || folder >= folders {
            return Err(CabinetError::Damaged("it has no file"));
        }
        let folder_at = folders_at + u64::from(folder) * (8 + u64::from(in_folders));
        cabinet.seek(SeekFrom::Start(folder_at))?;
        let (data, blocks, compression) = (u32(cabinet)?, u16(cabinet)?, u16(cabinet)?);
        let (size, start, data) = (size.into(), start.into(), data.into());
        Ok(Self { size, start, data, blocks, compression, reserved_in_blocks: in_blocks })
    }
}

/// A block of a folder's data (`CFDATA`).
struct DataBlock {
    packed: Vec<u8>,
    /// Its expanded size in bytes.
    size: u16,
}

impl DataBlock {
    fn read(cabinet: &mut impl Read, reserved: u8) -> Result<Self, CabinetError> {
        let declared = u32(cabinet)?;
        let mut header = vec![0; 4 + usize::from(reserved)];
        let cut = |_| CabinetError::Damaged("it is cut");
        cabinet.read_exact(&mut header).map_err(cut)?;
        let mut fields = &*header;
        let (packed_size, size) = (u16(&mut fields)?, u16(&mut fields)?);
        let mut packed = vec![0; packed_size.into()];
        cabinet.read_exact(&mut packed).map_err(cut)?;
        if declared != 0 && declared != checksum(&header, checksum(&packed, 0)) {
            return Err(CabinetError::Damaged("a checksum is wrong"));
        }
        Ok(Self { packed, size })
    }
}

/// The exclusive or of all words; the remaining bytes are in reverse order (`[MS-CAB]`, 3.1).
fn checksum(bytes: &[u8], seed: u32) -> u32 {
    let (words, rest) = bytes.as_chunks::<4>();
    let sum = words.iter().fold(seed, |sum, word| sum ^ u32::from_le_bytes(*word));
    sum ^ rest.iter().fold(0, |rest, byte| rest << 8 | u32::from(*byte))
}

/// The decoder for a folder's blocks, in sequence.
enum FolderDecoder {
    Stored,
    /// With the bytes of the previous block, which the next one refers to.
    MsZip(Box<Decompress>, Vec<u8>),
    Lzx(Box<Lzxd>),
}

impl FolderDecoder {
    fn new(compression: u16) -> Result<Self, CabinetError> {
        const SIZES: [WindowSize; 7] = [
            WindowSize::KB32,
            WindowSize::KB64,
            WindowSize::KB128,
            WindowSize::KB256,
            WindowSize::KB512,
            WindowSize::MB1,
            WindowSize::MB2,
        ];
        match compression & 0xf {
            0 => Ok(Self::Stored),
            1 => Ok(Self::MsZip(Box::new(Decompress::new(false)), Vec::new())),
            3 => {
                let size =
                    usize::from(compression >> 8 & 0x1f).checked_sub(15).and_then(|size| SIZES.get(size));
                let size = size.ok_or(CabinetError::Damaged("a window of LZX that there is not"))?;
                Ok(Self::Lzx(Box::new(Lzxd::new(*size))))
            }
            2 => Err(CabinetError::Unsupported("Quantum")),
            _ => Err(CabinetError::Unsupported("an unknown compression")),
        }
    }

    fn expand<'a>(&'a mut self, block: &'a DataBlock) -> Result<&'a [u8], CabinetError> {
        let size = usize::from(block.size);
        if size > BLOCK {
            return Err(CabinetError::Damaged("a block is too large"));
        }
        let bytes = match self {
            Self::Stored => &*block.packed,
            Self::MsZip(inflate, before) => {
                *before = inflated(inflate, &block.packed, size, before)?;
                before
            }
            Self::Lzx(decoder) => decoder
                .decompress_next(&block.packed, size)
                .map_err(|_| CabinetError::Damaged("LZX that makes no sense"))?,
        };
        if bytes.len() == size { Ok(bytes) } else { Err(CabinetError::Damaged("a block has another size")) }
    }
}

/// A block of MSZIP: a deflate stream after `CK`, which may refer to the previous block.
fn inflated(
    inflate: &mut Decompress,
    packed: &[u8],
    size: usize,
    before: &[u8],
) -> Result<Vec<u8>, CabinetError> {
    let damaged = CabinetError::Damaged("MSZIP that makes no sense");
    let Some(stream) = packed.strip_prefix(b"CK") else { return Err(damaged) };
    inflate.reset(false);
    if !before.is_empty() && inflate.set_dictionary(before).is_err() {
        return Err(damaged);
    }
    let mut bytes = Vec::with_capacity(size);
    match inflate.decompress_vec(stream, &mut bytes, FlushDecompress::Finish) {
        Ok(Status::StreamEnd) => Ok(bytes),
        _ => Err(damaged),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use flate2::{Compress, Compression, FlushCompress};
    use std::sync::atomic::{AtomicU32, Ordering};

    /// A cabinet of one file, `name`, with these blocks: compressed, and their expanded sizes.
    fn cabinet(compression: u16, blocks: &[(Vec<u8>, usize)]) -> Vec<u8> {
        let words =
            |numbers: &[u16]| numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<_>>();
        let long = |number: usize| (number as u32).to_le_bytes();
        let data_at = 36 + 8 + 16 + 5;
        let size: usize = blocks.iter().map(|(_, size)| size).sum();
        let mut bytes = [&b"MSCF"[..], &[0; 12], &long(36 + 8), &[0, 0, 0, 0, 3, 1]].concat();
        bytes.extend(words(&[1, 1, 0, 7, 0]));
        bytes.extend([&long(data_at)[..], &words(&[blocks.len() as u16, compression])].concat());
        bytes.extend([&long(size)[..], &long(0), &words(&[0, 0, 0, 0]), b"name\0"].concat());
        for (packed, size) in blocks {
            let header = words(&[packed.len() as u16, *size as u16]);
            bytes.extend(checksum(&header, checksum(packed, 0)).to_le_bytes());
            bytes.extend([&header[..], packed].concat());
        }
        bytes
    }

    /// A cabinet of an uncompressed file.
    pub(crate) fn stored(contents: &[u8]) -> Vec<u8> {
        let blocks: Vec<_> = contents.chunks(BLOCK).map(|block| (block.to_vec(), block.len())).collect();
        cabinet(0, &blocks)
    }

    /// A cabinet of a file compressed with MSZIP.
    pub(crate) fn mszip(contents: &[u8]) -> Vec<u8> {
        let mut before: &[u8] = &[];
        let blocks = contents.chunks(BLOCK).map(|block| {
            let mut deflate = Compress::new(Compression::best(), false);
            if !before.is_empty() {
                deflate.set_dictionary(before).unwrap();
            }
            let mut packed = Vec::with_capacity(2 * BLOCK);
            deflate.compress_vec(block, &mut packed, FlushCompress::Finish).unwrap();
            before = block;
            ([&b"CK"[..], &packed].concat(), block.len())
        });
        cabinet(1, &blocks.collect::<Vec<_>>())
    }

    /// A cabinet of a small file, in an uncompressed block of LZX (`[MS-PATCH]`, 2.6). It has a bit for the
    /// absence of translation, three for the kind, and 24 for the size, in words with the highest bit first.
    /// Then come the last three offsets and the bytes.
    fn lzx(contents: &[u8]) -> Vec<u8> {
        let bits = 3_u32 << 28 | (contents.len() as u32) << 4;
        let words = [(bits >> 16) as u16, bits as u16].map(u16::to_le_bytes).concat();
        let packed = [&words[..], &[1_u32; 3].map(u32::to_le_bytes).concat(), contents].concat();
        cabinet(3 | 15 << 8, &[(packed, contents.len())])
    }

    fn expanded(cabinet: &[u8], max_bytes: u64) -> Result<Vec<u8>, String> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let file = |name: &str| {
            let name = format!("nyquist-cabinet-{name}-{number}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
            std::fs::remove_file(path).unwrap();
            file
        };
        let (mut packed, mut target) = (file("packed"), file("target"));
        packed.write_all(cabinet).unwrap();
        packed.rewind().unwrap();
        expand(&packed, &target, max_bytes).map_err(|error| error.to_string())?;
        let mut bytes = Vec::new();
        target.rewind().unwrap();
        target.read_to_end(&mut bytes).unwrap();
        Ok(bytes)
    }

    /// A file that repeats itself across blocks.
    fn contents() -> Vec<u8> {
        (0..50_000_u32).flat_map(|number| (number % 9_000).to_le_bytes()).take(100_001).collect()
    }

    #[test]
    fn all_three_kinds_are_expanded() {
        let contents = contents();
        let packed = mszip(&contents);
        assert!(packed.len() < contents.len() / 2, "blocks refer to those before them: {}", packed.len());
        assert_eq!(expanded(&packed, 1 << 20).unwrap(), contents);
        assert_eq!(expanded(&stored(&contents), 1 << 20).unwrap(), contents);
        assert_eq!(expanded(&lzx(b"right, by LZX!"), 1 << 20).unwrap(), b"right, by LZX!");
    }

    #[test]
    fn large_unknown_or_damaged_cabinets_are_errors() {
        let contents = contents();
        assert_eq!(
            expanded(&stored(&contents), 100_000).unwrap_err(),
            "the file is larger than 100000 bytes"
        );
        assert_eq!(expanded(b"no cabinet, but long enough", 1).unwrap_err(), "not a cabinet file");
        let quantum = expanded(&cabinet(2, &[(vec![1], 1)]), 10).unwrap_err();
        assert_eq!(quantum, "cabinets of this kind are not read: Quantum");
        for packed in [mszip(&contents[..5000]), stored(b"right"), lzx(b"right, by LZX!")] {
            for len in (0..packed.len()).rev() {
                assert!(expanded(&packed[..len], 1 << 20).is_err(), "{len}");
            }
            for at in 0..packed.len().min(200) {
                for flip in [0x01, 0x10, 0xff] {
                    let mut damaged = packed.clone();
                    damaged[at] ^= flip;
                    let _ = expanded(&damaged, 1 << 20);
                    // Without the checksum, the decoder itself must detect the damage.
                    damaged[36 + 8 + 16 + 5..][..4].fill(0);
                    let _ = expanded(&damaged, 1 << 20);
                }
            }
        }
    }
}
