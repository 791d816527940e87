//! The checksum of cached data. It detects damage, and is not meant to withstand forgery.

const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
const STARTS: [u64; 4] =
    [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344, 0xa409_3822_299f_31d0, 0x082e_fa98_ec4e_6c89];

/// A hash of `bytes` that depends on the seed. It has four lanes of eight bytes, so that it costs less than
/// reading the bytes.
pub(crate) fn checksum(seed: u64, bytes: &[u8]) -> u64 {
    let (chunks, rest) = bytes.as_chunks::<32>();
    let mut lanes = STARTS.map(|start| start ^ seed);
    for chunk in chunks {
        let (words, _) = chunk.as_chunks::<8>();
        for (lane, word) in lanes.iter_mut().zip(words) {
            *lane = mix(*lane, u64::from_le_bytes(*word));
        }
    }
    let of_rest = rest.iter().fold(mix(seed, bytes.len() as u64), |sum, &byte| mix(sum, u64::from(byte)));
    let sum = lanes.into_iter().fold(of_rest, mix);
    mix(sum ^ (sum >> 32), sum >> 29)
}

fn mix(sum: u64, word: u64) -> u64 {
    (sum.rotate_left(29) ^ word).wrapping_mul(MULTIPLIER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_the_length_and_the_seed_count() {
        let bytes: Vec<u8> = (0..100).collect();
        let whole = checksum(1, &bytes);
        assert_ne!(whole, checksum(2, &bytes));
        assert_ne!(whole, checksum(1, &bytes[..99]));
        assert_ne!(checksum(1, &[]), checksum(1, &[0]));
        for bit in 0..bytes.len() * 8 {
            let mut other = bytes.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(whole, checksum(1, &other), "bit {bit}");
        }
    }
}
