//! Reads the packets of a trace, including those in its compressed parts.

use std::io::Read as _;

use flate2::read::ZlibDecoder;
use prost::Message as _;
use prost::encoding::{WireType, decode_key, decode_varint};

use super::message::{PACKET, Packet};

/// The maximum size of decompressed packets, as for gzip.
const MAX_BYTES: u64 = 2 << 30;

/// Passes all packets to `take`, in the order of the file. Returns where the file is truncated or damaged,
/// and how many packets could not be read.
pub(super) fn for_each(bytes: &[u8], take: &mut impl FnMut(Packet)) -> (Option<usize>, u64) {
    let mut budget = MAX_BYTES;
    each(bytes, &mut budget, take)
}

fn each(bytes: &[u8], budget: &mut u64, take: &mut impl FnMut(Packet)) -> (Option<usize>, u64) {
    let (mut rest, mut damaged) = (bytes, 0);
    while !rest.is_empty() {
        let at = bytes.len() - rest.len();
        let Some((packet, after)) = split(rest) else { return (Some(at), damaged) };
        rest = after;
        match Packet::decode(packet) {
            Ok(packet) if packet.compressed.is_empty() => take(packet),
            Ok(packet) => damaged += decompressed(&packet.compressed, budget, take),
            Err(_) => damaged += 1,
        }
    }
    (None, damaged)
}

/// The packet at the beginning, and the rest.
fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut rest = bytes;
    let (field, wire_type) = decode_key(&mut rest).ok()?;
    if u64::from(field) != PACKET || wire_type != WireType::LengthDelimited {
        return None;
    }
    let length = usize::try_from(decode_varint(&mut rest).ok()?).ok()?;
    rest.split_at_checked(length)
}

/// Passes compressed packets to `take`. They contain no compressed packets themselves.
fn decompressed(compressed: &[u8], budget: &mut u64, take: &mut impl FnMut(Packet)) -> u64 {
    let mut plain = Vec::new();
    let is_whole = ZlibDecoder::new(compressed).take(*budget).read_to_end(&mut plain).is_ok();
    *budget = budget.saturating_sub(plain.len() as u64);
    let (mut rest, mut damaged) = (plain.as_slice(), u64::from(!is_whole));
    while let Some((packet, after)) = split(rest) {
        rest = after;
        match Packet::decode(packet) {
            Ok(packet) if packet.compressed.is_empty() => take(packet),
            _ => damaged += 1,
        }
    }
    damaged + u64::from(!rest.is_empty())
}
