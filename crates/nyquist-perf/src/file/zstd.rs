//! Compressed records: one zstd stream for a whole file, split into records whenever a buffer was full.
//!
//! Source: `zstd_compress_stream_to_records` in Linux's `tools/perf/util/zstd.c`, and RFC 8878 for the
//! frame header and the block header.

use bytes::BytesMut;
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// The maximum size of a frame header in bytes.
const MAX_FRAME_HEADER_LEN: usize = 18;

/// Decompresses the contents of records, as far as they are complete.
///
/// The output is delayed, because the decoder holds back a window of the latest bytes for references.
pub(crate) struct Inflater {
    decoder: FrameDecoder,
    /// Compressed bytes that are not decoded yet.
    waiting: Vec<u8>,
    /// The window of the current frame; `None` between frames.
    window: Option<u64>,
}

impl std::fmt::Debug for Inflater {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inflater").field("waiting", &self.waiting.len()).finish_non_exhaustive()
    }
}

impl Inflater {
    pub(crate) fn new() -> Self {
        Self { decoder: FrameDecoder::new(), waiting: Vec::new(), window: None }
    }

    /// The maximum number of decompressed bytes that are held back.
    pub(crate) fn held_back(&self) -> u64 {
        self.window.unwrap_or(0)
    }

    /// Decompresses the bytes of a record, and appends the output to `out`.
    pub(crate) fn push(&mut self, compressed: &[u8], out: &mut BytesMut) -> Result<(), String> {
        self.waiting.extend_from_slice(compressed);
        let waiting = std::mem::take(&mut self.waiting);
        let mut rest = waiting.as_slice();
        while self.decode_next(&mut rest, out)? {}
        self.waiting = rest.to_vec();
        Ok(())
    }

    /// Appends the bytes that were held back. The stream has no end, because perf never closes it.
    pub(crate) fn finish(&mut self, out: &mut BytesMut) -> Result<(), String> {
        /// An empty block that is the last one of its frame.
        const LAST_BLOCK: [u8; 3] = [1, 0, 0];
        if self.window.take().is_some() {
            self.decode(&mut LAST_BLOCK.as_slice(), out)?;
        }
        if self.waiting.is_empty() { Ok(()) } else { Err("they end within a block".to_owned()) }
    }

    /// Decodes the next block, or the header of the next frame; returns false if it is incomplete.
    fn decode_next(&mut self, rest: &mut &[u8], out: &mut BytesMut) -> Result<bool, String> {
        let Some(window) = self.window else {
            let Some((header_len, window)) = frame_header(rest)? else { return Ok(false) };
            let (mut header, blocks) = rest.split_at(header_len);
            self.decoder.reset(&mut header).map_err(|error| error.to_string())?;
            (self.window, *rest) = (Some(window), blocks);
            return Ok(true);
        };
        let Some(block_len) = block_len(rest) else { return Ok(false) };
        let Some((mut block, after)) = rest.split_at_checked(block_len) else { return Ok(false) };
        *rest = after;
        self.decode(&mut block, out)?;
        self.window = (!self.decoder.is_finished()).then_some(window);
        Ok(true)
    }

    fn decode(&mut self, block: &mut &[u8], out: &mut BytesMut) -> Result<(), String> {
        let one = BlockDecodingStrategy::UptoBlocks(1);
        self.decoder.decode_blocks(block, one).map_err(|error| error.to_string())?;
        let mut writer = bytes::BufMut::writer(out);
        self.decoder.collect_to_writer(&mut writer).map_err(|error| error.to_string())?;
        Ok(())
    }
}

/// The length of a block with its header (RFC 8878, 3.1.1.2); `None` if the header is incomplete.
fn block_len(bytes: &[u8]) -> Option<usize> {
    const RLE: u32 = 1;
    let [low, middle, high] = *bytes.first_chunk::<3>()?;
    let header = u32::from_le_bytes([low, middle, high, 0]);
    let size = if header >> 1 & 3 == RLE { 1 } else { header >> 3 };
    Some(3 + size as usize)
}

/// The length of a frame's header (RFC 8878, 3.1.1.1) and its window; `None` if it is incomplete. Perf
/// writes no frames with a checksum or a dictionary.
fn frame_header(bytes: &[u8]) -> Result<Option<(usize, u64)>, String> {
    const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
    let Some(magic) = bytes.first_chunk::<4>() else { return Ok(None) };
    if *magic != MAGIC {
        return Err("no zstd frame begins where one should".to_owned());
    }
    let Some(&descriptor) = bytes.get(4) else { return Ok(None) };
    if descriptor & 0b111 != 0 {
        return Err("a zstd frame has a checksum or a dictionary".to_owned());
    }
    let single_segment = descriptor & 0x20 != 0;
    let content_size_len = match descriptor >> 6 {
        0 => usize::from(single_segment),
        flag => 1 << flag,
    };
    let len = 5 + usize::from(!single_segment) + content_size_len;
    debug_assert!(len <= MAX_FRAME_HEADER_LEN);
    let Some(rest) = bytes.get(5..len) else { return Ok(None) };
    let window = if single_segment {
        let mut size = [0; 8];
        size[..rest.len()].copy_from_slice(rest);
        u64::from_le_bytes(size) + if rest.len() == 2 { 256 } else { 0 }
    } else {
        let descriptor = rest.first().copied().unwrap_or_default();
        let base = 1_u64 << (10 + (descriptor >> 3));
        base + base / 8 * u64::from(descriptor & 7)
    };
    Ok(Some((len, window)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Raw blocks in a frame with a window of 1 kB, without a last block, as written by perf.
    fn frame(blocks: &[&[u8]]) -> Vec<u8> {
        let mut bytes = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0];
        for block in blocks {
            bytes.extend(&((block.len() as u32) << 3).to_le_bytes()[..3]);
            bytes.extend(*block);
        }
        bytes
    }

    #[test]
    fn a_stream_cut_anywhere_gives_the_same_bytes() {
        let blocks: Vec<Vec<u8>> = (1..20_u8).map(|number| vec![number; 20 * usize::from(number)]).collect();
        let expected: Vec<u8> = blocks.concat();
        let blocks: Vec<&[u8]> = blocks.iter().map(Vec::as_slice).collect();
        let bytes = frame(&blocks);
        for size in [1, 2, 7, 1000, bytes.len()] {
            let (mut inflater, mut out) = (Inflater::new(), BytesMut::new());
            for part in bytes.chunks(size) {
                inflater.push(part, &mut out).unwrap();
                assert!(out.len() <= expected.len());
            }
            inflater.finish(&mut out).unwrap();
            assert_eq!(out, expected, "parts of {size}");
        }
    }

    #[test]
    fn no_more_than_a_window_is_held_back() {
        let block = [7; 900];
        let (mut inflater, mut out) = (Inflater::new(), BytesMut::new());
        inflater.push(&frame(&[&block[..]; 10]), &mut out).unwrap();
        assert_eq!(inflater.held_back(), 1024);
        assert!(out.len() as u64 + inflater.held_back() >= 9000, "{}", out.len());
    }

    #[test]
    fn a_cut_stream_gives_what_is_whole_and_says_so() {
        let bytes = frame(&[&[1; 10], &[2; 10]]);
        let (mut inflater, mut out) = (Inflater::new(), BytesMut::new());
        inflater.push(&bytes[..bytes.len() - 1], &mut out).unwrap();
        assert!(inflater.finish(&mut out).is_err());
        assert_eq!(out, [1; 10][..]);
    }

    #[test]
    fn what_is_no_zstd_is_an_error() {
        for bytes in [&b"no frame"[..], &[0x28, 0xb5, 0x2f, 0xfd, 4]] {
            assert!(Inflater::new().push(bytes, &mut BytesMut::new()).is_err());
        }
    }
}
