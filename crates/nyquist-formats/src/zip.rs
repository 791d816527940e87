//! The first file of a zip archive, which is how traces of Windows and .NET are passed on (`.etl.zip`). Their own file
//! is the first one; behind it are files of symbols.
//!
//! The layout is that of APPNOTE.TXT of PKWARE, "Local file header".

use std::io::{self, BufRead, Read};

use flate2::read::DeflateDecoder;

/// The first bytes of an archive with a file.
pub(crate) const MAGIC: [u8; 4] = *b"PK\x03\x04";

/// The length of a header, without its name and its extra fields.
const HEADER: usize = 30;

/// Flags and methods of a header.
const ENCRYPTED: u16 = 1;
const SIZE_BEHIND: u16 = 8;
const STORED: u16 = 0;
const DEFLATED: u16 = 8;

/// The contents of the first file of an archive that is no folder.
pub(crate) fn first_file<'a>(mut archive: impl BufRead + 'a) -> io::Result<Box<dyn Read + 'a>> {
    loop {
        let mut header = [0; HEADER];
        archive.read_exact(&mut header)?;
        if header[..4] != MAGIC {
            return Err(io::Error::other("the archive has no file"));
        }
        let u16_at = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
        let (flags, method) = (u16_at(6), u16_at(8));
        let packed_size = u32::from_le_bytes([header[18], header[19], header[20], header[21]]);
        let mut name = vec![0; usize::from(u16_at(26))];
        archive.read_exact(&mut name)?;
        skip(&mut archive, u16_at(28).into())?;
        if name.ends_with(b"/") {
            skip(&mut archive, packed_size.into())?;
            continue;
        }
        return match method {
            _ if flags & ENCRYPTED != 0 => Err(io::Error::other("the archive is encrypted")),
            DEFLATED => Ok(Box::new(DeflateDecoder::new(archive))),
            // The size is in an extra field.
            STORED if packed_size == u32::MAX => {
                Err(io::Error::other("its file is stored, and has 4 GiB or more"))
            }
            STORED if flags & SIZE_BEHIND == 0 => Ok(Box::new(archive.take(packed_size.into()))),
            _ => Err(io::Error::other("the archive is not packed with deflate")),
        };
    }
}

fn skip(archive: &mut impl Read, bytes: u64) -> io::Result<()> {
    io::copy(&mut archive.take(bytes), &mut io::sink()).map(|_| ())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::DeflateEncoder;
    use std::io::Write as _;

    fn entry(name: &str, (flags, method): (u16, u16), size: u32, packed: &[u8]) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend([20, flags, method, 0, 0].into_iter().flat_map(u16::to_le_bytes));
        out.extend([0, size, size].into_iter().flat_map(u32::to_le_bytes));
        out.extend([name.len() as u16, 2].into_iter().flat_map(u16::to_le_bytes));
        [&*out, name.as_bytes(), b"xx", packed].concat()
    }

    /// An archive with a folder, a file and another one. The sizes are behind the files.
    pub(crate) fn archive(text: &[u8]) -> Vec<u8> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text).unwrap();
        let packed = encoder.finish().unwrap();
        [
            entry("folder/", (0, STORED), 0, &[]),
            entry("folder/trace.etl", (SIZE_BEHIND, DEFLATED), 0, &packed),
            entry("symbols/a.pdb", (0, STORED), 3, b"pdb"),
        ]
        .concat()
    }

    fn first(bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        first_file(bytes)?.read_to_end(&mut out)?;
        Ok(out)
    }

    #[test]
    fn the_first_file_is_read() {
        let text = b"some text, some text".repeat(1000);
        assert_eq!(first(&archive(&text)).unwrap(), text);
        assert_eq!(first(&entry("a", (0, STORED), 3, b"abcd")).unwrap(), b"abc");
        let error = |bytes: &[u8]| first(bytes).unwrap_err().to_string();
        assert_eq!(error(&entry("a", (ENCRYPTED, DEFLATED), 3, b"abc")), "the archive is encrypted");
        assert_eq!(error(&entry("a", (0, 14), 3, b"abc")), "the archive is not packed with deflate");
        assert!(first(&archive(&text)[..20]).is_err());
    }

    /// Sizes are those of the file that is read, and names are not used.
    #[test]
    fn archives_can_lie() {
        let error = |bytes: &[u8]| first(bytes).unwrap_err().to_string();
        let large = entry("a", (0, STORED), u32::MAX, b"abc");
        assert_eq!(error(&large), "its file is stored, and has 4 GiB or more");
        // The stated size is beyond the file's end.
        assert_eq!(first(&entry("../../etc/passwd", (0, STORED), u32::MAX - 1, b"abc")).unwrap(), b"abc");
        assert!(first(&entry("folder/", (0, STORED), u32::MAX, b"abc")).is_err());
        // Many entries, of which none is a file.
        let folders = entry("folder/", (0, STORED), 0, &[]).repeat(100_000);
        assert!(first(&folders).is_err());
        assert_eq!(error(&[&*folders, b"PK\x01\x02", &[0; HEADER]].concat()), "the archive has no file");
        // Names and extra fields of the greatest length.
        let mut name = entry("a", (0, STORED), 3, b"abc");
        name[26..30].fill(0xff);
        assert!(first(&name).is_err());
    }

    /// A file that grows to a thousand times its size is read in pieces, up to the limit.
    #[test]
    fn a_bomb_is_cut_at_the_limit() {
        let bomb = archive(&vec![0; 10_000_000]);
        assert!(bomb.len() < 100_000);
        let mut out = Vec::new();
        first_file(&*bomb).unwrap().take(5000).read_to_end(&mut out).unwrap();
        assert_eq!(out.len(), 5000);
    }
}
