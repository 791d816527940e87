//! The header of a segment: what the file is, of which version, and from which boot of the machine.

use thiserror::Error;

/// The number that identifies a boot of the machine.
pub type BootId = [u8; 16];

const MAGIC: [u8; 8] = *b"NYQSPOOL";

/// The flags of features that a reader has to know. The lowest bits are the version of the format.
const REQUIRED: u32 = 1;

/// The header of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The boot during which it was written. Addresses of the kernel and numbers of processes have no meaning in
    /// others.
    pub boot: BootId,
    /// How often the tables were made anew before it. The records of an earlier epoch do not belong to it.
    pub epoch: u32,
    /// Its number in its recording, from 0.
    pub number: u32,
}

/// Why a file is not read as a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// The file is empty, or was not written to the end of its header.
    #[error("the file ends before its first record")]
    Empty,
    /// It is some other file.
    #[error("the file is no spool of nyquist")]
    Other,
    /// It has features that this version does not know.
    #[error("the file was written by a newer version of nyquist (format {0:#x})")]
    Newer(u32),
    /// Its header is damaged.
    #[error("its header is damaged")]
    Damaged,
}

impl Header {
    /// The size in bytes.
    pub(crate) const SIZE: usize = 44;

    /// The bytes of the header. Flags of features that a reader may ignore come first. There are none yet.
    pub(crate) fn to_bytes(self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[12..16].copy_from_slice(&REQUIRED.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.boot);
        bytes[32..36].copy_from_slice(&self.epoch.to_le_bytes());
        bytes[36..40].copy_from_slice(&self.number.to_le_bytes());
        let sum = crc32c::crc32c(&bytes[..40]);
        bytes[40..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// The header at the beginning of a file.
    pub(crate) fn read(file: &[u8]) -> Result<Self, HeaderError> {
        let bytes: &[u8; Self::SIZE] = match file.first_chunk() {
            Some(bytes) => bytes,
            None if MAGIC.starts_with(&file[..file.len().min(8)]) => return Err(HeaderError::Empty),
            None => return Err(HeaderError::Other),
        };
        if bytes.iter().all(|byte| *byte == 0) {
            return Err(HeaderError::Empty);
        }
        if !bytes.starts_with(&MAGIC) {
            return Err(HeaderError::Other);
        }
        let number = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        // A later version may place its checksum elsewhere.
        if number(12) != REQUIRED {
            return Err(HeaderError::Newer(number(12)));
        }
        if number(40) != crc32c::crc32c(&bytes[..40]) {
            return Err(HeaderError::Damaged);
        }
        let mut boot = [0; 16];
        boot.copy_from_slice(&bytes[16..32]);
        Ok(Self { boot, epoch: number(32), number: number(36) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_it_was_written() {
        let header = Header { boot: [7; 16], epoch: 3, number: 9 };
        assert_eq!(Header::read(&header.to_bytes()), Ok(header));
    }

    #[test]
    fn files_that_are_no_segments_have_reasons() {
        let bytes = Header::default().to_bytes();
        let changed = |at: usize| {
            let mut bytes = bytes;
            bytes[at] ^= 2;
            Header::read(&bytes)
        };
        assert_eq!([changed(0), changed(20)], [Err(HeaderError::Other), Err(HeaderError::Damaged)]);
        assert_eq!(changed(12), Err(HeaderError::Newer(3)));
        assert_eq!(Header::read(&[0; 100]), Err(HeaderError::Empty));
        assert_eq!(Header::read(b"#!/bin/sh"), Err(HeaderError::Other));
        for end in 0..Header::SIZE {
            assert_eq!(Header::read(&bytes[..end]), Err(HeaderError::Empty));
        }
    }
}
