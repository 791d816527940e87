//! The signature that the linker makes: it names nobody ("ad hoc") and has a hash of each page.
//!
//! The format is that of `cs_blobs.h` in Apple's XNU: numbers are big-endian.

use anyhow::{Context as _, Result, ensure};
use sha2::{Digest as _, Sha256};

const EMBEDDED_SIGNATURE: u32 = 0xfade_0cc0;
const CODE_DIRECTORY: u32 = 0xfade_0c02;
/// The flag of a signature that names nobody.
const AD_HOC: u32 = 2;
/// The kind of hash, and its size in bytes.
const SHA_256: (u8, u8) = (2, 32);

/// Fails unless the signature at a place of a program names nobody and fits all pages before it. The place is an
/// offset and a length.
pub(super) fn expect_valid(program: &[u8], (at, len): (usize, usize)) -> Result<()> {
    let signature =
        program.get(at..).and_then(|rest| rest.get(..len)).context("it is outside of the file")?;
    ensure!(number(signature, 0)? == EMBEDDED_SIGNATURE, "it is not a signature");
    let directory = code_directory(signature)?;
    ensure!(number(directory, 12)? & AD_HOC != 0, "it names somebody");
    let hashes = number(directory, 16)? as usize;
    let (count, signed) = (number(directory, 28)? as usize, number(directory, 32)? as usize);
    let [hash_size, hash_kind, _, page_bits] = number(directory, 36)?.to_be_bytes();
    ensure!((hash_kind, hash_size) == SHA_256, "its hashes are of another kind");
    ensure!(signed == at, "it is of {signed} bytes, and begins at {at}");
    let page = 1_usize.checked_shl(page_bits.into()).context("its pages are too large")?;
    let pages = program[..signed].chunks(page);
    ensure!(pages.len() == count, "it is of {count} pages in place of {}", pages.len());
    let expected = directory.get(hashes..).unwrap_or_default().chunks(hash_size.into());
    for (index, (page, expected)) in pages.zip(expected).enumerate() {
        ensure!(Sha256::digest(page).as_slice() == expected, "page {index} has another hash");
    }
    Ok(())
}

/// The part with the hashes.
fn code_directory(signature: &[u8]) -> Result<&[u8]> {
    let count = number(signature, 8)?;
    for index in 0..count as usize {
        let part = signature.get(number(signature, 16 + 8 * index)? as usize..).unwrap_or_default();
        if number(part, 0)? == CODE_DIRECTORY {
            return Ok(part);
        }
    }
    anyhow::bail!("it has no hashes")
}

fn number(bytes: &[u8], at: usize) -> Result<u32> {
    let bytes = bytes.get(at..).and_then(<[u8]>::first_chunk).context("it is too short")?;
    Ok(u32::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A program of two pages with this signature.
    fn signed(flags: u32) -> (Vec<u8>, (usize, usize)) {
        let mut program = vec![7; 0x1800];
        let hashes: Vec<u8> = program.chunks(0x1000).flat_map(|page| Sha256::digest(page).to_vec()).collect();
        let at = program.len();
        let numbers = [
            // One part, at 20.
            &[EMBEDDED_SIGNATURE, 20 + 44 + 64, 1, 0, 20][..],
            &[CODE_DIRECTORY, 44 + 64, 0x2_0400, flags, 44, 0, 0, 2, at as u32, 0x2002_000c, 0],
        ];
        program.extend(numbers.concat().iter().flat_map(|number| number.to_be_bytes()));
        program.extend(hashes);
        let len = program.len() - at;
        (program, (at, len))
    }

    #[test]
    fn a_changed_byte_is_seen() {
        let (mut program, place) = signed(AD_HOC);
        expect_valid(&program, place).unwrap();
        program[0x1234] ^= 1;
        assert_eq!(expect_valid(&program, place).unwrap_err().to_string(), "page 1 has another hash");
    }

    #[test]
    fn other_signatures_are_refused() {
        let why = |program: &[u8], place| expect_valid(program, place).unwrap_err().to_string();
        let (program, place) = signed(0);
        assert_eq!(why(&program, place), "it names somebody");
        let (program, (at, len)) = signed(AD_HOC);
        assert_eq!(why(&program, (at, len + 1)), "it is outside of the file");
        assert_eq!(why(&program, (at, 30)), "it is too short");
        assert_eq!(why(&program, (at - 4, len)), "it is not a signature");
    }
}
