//! Compressed buffers: plain LZ77 and LZNT1, as Microsoft's "\[MS-XCA\]: Xpress Compression Algorithm" describes
//! them (2.4 and 2.5).

use nyquist_object::Cursor;
use std::fmt;

/// How buffers are compressed: a number of `RtlCompressBuffer`'s formats (ntifs.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// LZNT1.
    Lznt1,
    /// Xpress: plain LZ77.
    Xpress,
    /// Any other number. 4 is Xpress with Huffman codes.
    Other(u16),
}

impl Compression {
    pub(super) fn of(number: u16) -> Self {
        match number {
            2 => Self::Lznt1,
            3 => Self::Xpress,
            other => Self::Other(other),
        }
    }

    /// Appends the decompressed bytes to `out`, up to `most` of them in all. Damaged input ends early. The memory
    /// grows with the bytes that are there, and not by a stated length.
    pub(super) fn decompress(self, input: &[u8], out: &mut Vec<u8>, most: usize) {
        match self {
            Self::Xpress => {
                xpress(input, out, most);
            }
            Self::Lznt1 => {
                lznt1(input, out, most);
            }
            Self::Other(_) => {}
        }
        out.truncate(most);
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lznt1 => f.write_str("LZNT1"),
            Self::Xpress => f.write_str("Xpress"),
            Self::Other(4) => f.write_str("Xpress with Huffman codes"),
            Self::Other(number) => write!(f, "format {number}"),
        }
    }
}

/// Copies bytes from before the end of the output to its end. `None` if they would be before its beginning.
fn repeat(out: &mut Vec<u8>, (start, distance): (usize, usize), len: usize, most: usize) -> Option<()> {
    let from = out.len().checked_sub(distance).filter(|from| distance > 0 && *from >= start)?;
    let len = len.min(most.saturating_sub(out.len()));
    if distance >= len {
        out.extend_from_within(from..from + len);
    } else {
        // The bytes are copied while they are written.
        for at in from..from + len {
            out.push(out[at]);
        }
    }
    Some(())
}

fn xpress(input: &[u8], out: &mut Vec<u8>, most: usize) -> Option<()> {
    let start = out.len();
    let mut input = XpressInput { bytes: Cursor::new(input, 0, true), half: None };
    while out.len() < most {
        let flags = input.bytes.u32()?;
        for bit in (0..32).rev() {
            if out.len() >= most {
                return Some(());
            }
            if flags >> bit & 1 == 0 {
                out.push(input.bytes.u8()?);
            } else {
                let pair = input.bytes.u16()?;
                let len = input.length(pair & 7)?;
                repeat(out, (start, usize::from(pair >> 3) + 1), len, most)?;
            }
        }
    }
    Some(())
}

/// The input of plain LZ77.
struct XpressInput<'a> {
    bytes: Cursor<'a>,
    /// A byte whose upper half is the next long length.
    half: Option<u8>,
}

impl XpressInput<'_> {
    /// The length of a match, whose three bits in the pair are these.
    fn length(&mut self, bits: u16) -> Option<usize> {
        const MIN_MATCH_LEN: usize = 3;
        if bits < 7 {
            return Some(usize::from(bits) + MIN_MATCH_LEN);
        }
        let half = match self.half.take() {
            Some(byte) => byte >> 4,
            None => {
                let byte = self.bytes.u8()?;
                self.half = Some(byte);
                byte & 15
            }
        };
        if half < 15 {
            return Some(usize::from(half) + 7 + MIN_MATCH_LEN);
        }
        let byte = self.bytes.u8()?;
        if byte < 255 {
            return Some(usize::from(byte) + 15 + 7 + MIN_MATCH_LEN);
        }
        let len = match self.bytes.u16()? {
            0 => usize::try_from(self.bytes.u32()?).ok()?,
            len => usize::from(len),
        };
        (len >= 15 + 7).then_some(len.saturating_add(MIN_MATCH_LEN))
    }
}

fn lznt1(mut input: &[u8], out: &mut Vec<u8>, most: usize) -> Option<()> {
    while out.len() < most {
        let (header, rest) = input.split_first_chunk()?;
        let header = u16::from_le_bytes(*header);
        if header == 0 {
            return Some(());
        }
        let (chunk, rest) = rest.split_at_checked(usize::from(header & 0xfff) + 1)?;
        input = rest;
        if header & 0x8000 == 0 {
            out.extend_from_slice(chunk);
        } else {
            lznt1_chunk(chunk, out, most)?;
        }
    }
    Some(())
}

fn lznt1_chunk(chunk: &[u8], out: &mut Vec<u8>, most: usize) -> Option<()> {
    let start = out.len();
    let mut bytes = chunk.iter().copied();
    while let Some(flags) = bytes.next() {
        for bit in 0..8 {
            let Some(first) = bytes.next() else { return Some(()) };
            if out.len() >= most {
                return Some(());
            }
            if flags >> bit & 1 == 0 {
                out.push(first);
                continue;
            }
            let pair = u16::from_le_bytes([first, bytes.next()?]);
            // The more bytes the chunk has, the more bits are the distance.
            let position = out.len().checked_sub(start + 1)?;
            let length_bits = (4..12).rev().find(|bits| position < 1 << (16 - bits)).unwrap_or(4);
            let length_bits = if position < 16 { 12 } else { length_bits };
            let len = usize::from(pair & ((1 << length_bits) - 1)) + 3;
            let distance = usize::from(pair >> length_bits) + 1;
            repeat(out, (start, distance), len, most)?;
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decompressed(compression: Compression, input: &[u8], most: usize) -> Vec<u8> {
        let mut out = Vec::new();
        compression.decompress(input, &mut out, most);
        out
    }

    /// The examples of MS-XCA 3.1 and 3.2.
    #[test]
    fn the_examples_of_the_specification() {
        let alphabet = [&[0x3f, 0, 0, 0][..], b"abcdefghijklmnopqrstuvwxyz"].concat();
        assert_eq!(decompressed(Compression::Xpress, &alphabet, 26), b"abcdefghijklmnopqrstuvwxyz");
        let repeated = [0xff, 0xff, 0xff, 0x1f, 0x61, 0x62, 0x63, 0x17, 0, 0x0f, 0xff, 0x26, 1];
        assert_eq!(decompressed(Compression::Xpress, &repeated, 300), b"abc".repeat(100));
        let lznt1 = [
            0x38, 0xb0, 0x88, 0x46, 0x23, 0x20, 0x00, 0x20, 0x47, 0x20, 0x41, 0x00, 0x10, 0xa2, 0x47, 0x01,
            0xa0, 0x45, 0x20, 0x44, 0x00, 0x08, 0x45, 0x01, 0x50, 0x79, 0x00, 0xc0, 0x45, 0x20, 0x05, 0x24,
            0x13, 0x88, 0x05, 0xb4, 0x02, 0x4a, 0x44, 0xef, 0x03, 0x58, 0x02, 0x8c, 0x09, 0x16, 0x01, 0x48,
            0x45, 0x00, 0xbe, 0x00, 0x9e, 0x00, 0x04, 0x01, 0x18, 0x90, 0x00,
        ];
        let text =
            b"F# F# G A A G F# E D D E F# F# E E F# F# G A A G F# E D D E F# E D D E E F# D E F# G F# D E \
                     F# G F# E D E A F# F# G A A G F# E D D E F# E D D\0";
        assert_eq!(decompressed(Compression::Lznt1, &lznt1, 4096), text);
    }

    #[test]
    fn damaged_input_ends_early_and_in_bounds() {
        let before_beginning = [0, 0, 0, 0x80, 0xff, 0xff];
        assert_eq!(decompressed(Compression::Xpress, &before_beginning, 100), []);
        let repeated =
            [0xff, 0xff, 0xff, 0x1f, 0x61, 0x62, 0x63, 0x17, 0, 0x0f, 0xff, 0, 0, 0xff, 0xff, 0xff, 0xff];
        assert_eq!(decompressed(Compression::Xpress, &repeated, 10).len(), 10);
        assert_eq!(decompressed(Compression::Lznt1, &[0xff, 0xbf, 1, 2], 10), []);
    }
}
