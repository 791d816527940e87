//! The links in a stripped binary to its debug info.

use crate::{BuildId, ObjectError};

/// `.gnu_debuglink`: the name of a separate debug file and the checksum of its contents (GDB manual,
/// "Debugging Information in Separate Files").
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebugLink {
    /// The file's name, without a folder.
    pub file_name: Vec<u8>,
    /// [`crc32`] of the whole file.
    pub crc: u32,
}

/// `.gnu_debugaltlink`: the supplementary file that dwz moved shared debug info to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebugAltLink {
    /// The path, absolute or relative to the file with the link.
    pub path: Vec<u8>,
    /// The supplementary file's build id.
    pub build_id: BuildId,
}

impl DebugLink {
    /// Parses the section's contents: a name, zeros up to a multiple of four bytes, the checksum.
    pub fn parse(section: &[u8], little_endian: bool) -> Result<Self, ObjectError> {
        let malformed = |reason| ObjectError::malformed(".gnu_debuglink", reason);
        let end = section.iter().position(|&byte| byte == 0).ok_or(malformed("the name has no end"))?;
        let at = (end + 4) & !3;
        let crc = section.get(at..at + 4).ok_or(malformed("no checksum"))?;
        let crc = [crc[0], crc[1], crc[2], crc[3]];
        let crc = if little_endian { u32::from_le_bytes(crc) } else { u32::from_be_bytes(crc) };
        if end == 0 || section[..end].contains(&b'/') {
            return Err(malformed("the name is not a file name"));
        }
        Ok(Self { file_name: section[..end].to_vec(), crc })
    }
}

impl DebugAltLink {
    /// Parses the section's contents: a path, a zero, the build id.
    pub fn parse(section: &[u8]) -> Result<Self, ObjectError> {
        let malformed = |reason| ObjectError::malformed(".gnu_debugaltlink", reason);
        let end = section.iter().position(|&byte| byte == 0).ok_or(malformed("the path has no end"))?;
        let build_id = BuildId::new(&section[end + 1..]).ok_or(malformed("no build id"))?;
        Ok(Self { path: section[..end].to_vec(), build_id })
    }
}

/// The checksum of `.gnu_debuglink` (CRC-32 as in zlib), continued from `crc`: start with 0. It takes one
/// table lookup per byte.
pub fn crc32(crc: u32, bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = table();
    let step = |crc: u32, &byte: &u8| TABLE[((crc ^ u32::from(byte)) & 0xff) as usize] ^ (crc >> 8);
    !bytes.iter().fold(!crc, step)
}

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut n = 0;
    while n < 256 {
        let mut value = n as u32;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 { 0xedb8_8320 ^ (value >> 1) } else { value >> 1 };
            bit += 1;
        }
        table[n] = value;
        n += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_zlib() {
        assert_eq!(crc32(0, b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(crc32(0, b"1234"), b"56789"), 0xcbf4_3926);
    }

    #[test]
    fn a_debug_link_is_a_name_and_a_checksum() {
        let link = DebugLink::parse(b"a.debug\0\x78\x56\x34\x12", true).unwrap();
        assert_eq!(link, DebugLink { file_name: b"a.debug".to_vec(), crc: 0x1234_5678 });
        for wrong in [b"".as_slice(), b"name", b"name\0", b"\0\0\0\0\x01\0\0\0", b"../x\0\0\0\0\x01\0\0\0"] {
            assert!(DebugLink::parse(wrong, true).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn an_alternative_link_is_a_path_and_a_build_id() {
        let link = DebugAltLink::parse(b"/x/y.dwz\0\x01\x02").unwrap();
        assert_eq!(link.path, b"/x/y.dwz");
        assert_eq!(link.build_id.to_string(), "0102");
        assert!(DebugAltLink::parse(b"/x/y.dwz\0").is_err());
        assert!(DebugAltLink::parse(b"/x/y.dwz").is_err());
    }
}
