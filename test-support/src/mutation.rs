//! Changes to a file's bytes, as damage or an attacker would make them. The same seed makes the same changes.

/// Pseudo-random numbers from a seed (SplitMix64, public domain, by Sebastiano Vigna).
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// The numbers that follow from `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, or 0 if `bound` is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.roll() % (bound as u64).max(1)) as usize
    }

    /// One of `choices`, which must not be empty.
    pub fn choose<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

/// Numbers at which lengths, counts and offsets overflow, wrap, or claim all memory.
const EXTREMES: [u64; 16] = [
    0,
    1,
    7,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0xffff,
    0x1_0000,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_fff0,
    0xffff_ffff,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    u64::MAX,
];

/// The maximum number of bytes that one change adds.
const MAX_ADDED_BYTES: usize = 4096;

/// Changes `bytes` in a few places. Some pieces are taken from `other`. The result is not longer than `most`.
pub fn mutate(bytes: &mut Vec<u8>, other: &[u8], most: usize, dice: &mut Dice) {
    let changes = 1 << dice.below(5);
    for _ in 0..changes {
        change(bytes, other, dice);
    }
    bytes.truncate(most);
}

fn change(bytes: &mut Vec<u8>, other: &[u8], dice: &mut Dice) {
    let at = place(bytes.len(), dice);
    match dice.below(12) {
        0 | 1 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << dice.below(8);
            }
        }
        2 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = dice.roll() as u8;
            }
        }
        3..=5 => set_number(bytes, at, dice),
        6 => {
            if dice.below(4) == 0 {
                bytes.truncate(at);
            }
        }
        7 => {
            let end = at + dice.below(bytes.len() - at + 1).min(MAX_ADDED_BYTES);
            bytes.drain(at..end);
        }
        8 => {
            let from = place(bytes.len(), dice);
            let end = from + dice.below(bytes.len() - from + 1).min(MAX_ADDED_BYTES);
            let piece = bytes[from..end].to_vec();
            bytes.splice(at..at, piece);
        }
        9 => {
            let from = dice.below(other.len());
            let end = from + dice.below(other.len() - from + 1).min(MAX_ADDED_BYTES);
            let over = if dice.below(2) == 0 { at..at } else { at..(at + end - from).min(bytes.len()) };
            bytes.splice(over, other[from..end].iter().copied());
        }
        10 => set_digits(bytes, at, dice),
        _ => {
            let filler = dice.choose(&[0, 0xff, b' ', b'[', b'{', b'"', dice.clone().roll() as u8]);
            let len = dice.below(64);
            bytes.splice(at..at, std::iter::repeat_n(filler, len));
        }
    }
}

/// A position in the bytes or at their end. Every second one is near the start, where headers are.
fn place(len: usize, dice: &mut Dice) -> usize {
    let within = if dice.below(2) == 0 { len.min(256) } else { len };
    dice.below(within + 1)
}

/// Writes an extreme number, or one near the present one, into a possible field.
fn set_number(bytes: &mut [u8], at: usize, dice: &mut Dice) {
    let width = dice.choose(&[1, 2, 4, 8]);
    // Most fields are aligned.
    let at = if dice.below(2) == 0 { at / width * width } else { at };
    let Some(field) = bytes.get_mut(at..at + width) else { return };
    let is_big_endian = dice.below(4) == 0;
    if is_big_endian {
        field.reverse();
    }
    let mut number = [0; 8];
    number[..width].copy_from_slice(field);
    let near = u64::from_le_bytes(number).wrapping_add(dice.below(9) as u64).wrapping_sub(4);
    let number = if dice.below(3) == 0 { near } else { dice.choose(&EXTREMES) };
    field.copy_from_slice(&number.to_le_bytes()[..width]);
    if is_big_endian {
        field.reverse();
    }
}

/// Replaces the next number that is written in digits.
fn set_digits(bytes: &mut Vec<u8>, at: usize, dice: &mut Dice) {
    let Some(from) = bytes[at..].iter().position(u8::is_ascii_digit).map(|start| at + start) else { return };
    let len = bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = dice.choose(&[
        "-1",
        "0",
        "4294967295",
        "4294967296",
        "18446744073709551616",
        "1e308",
        "-0.5",
        "null",
    ]);
    bytes.splice(from..from + len, number.bytes());
}

#[cfg(test)]
mod tests {
    use super::{Dice, mutate};

    #[test]
    fn the_same_seed_makes_the_same_changes() {
        let changed = |seed| {
            let mut bytes: Vec<u8> = (0..200).collect();
            mutate(&mut bytes, b"other bytes 12345", 300, &mut Dice::new(seed));
            bytes
        };
        assert_eq!(changed(7), changed(7));
        assert_ne!(changed(7), changed(8));
    }

    #[test]
    fn what_is_empty_or_short_can_be_changed() {
        for seed in 0..20_000 {
            let mut bytes = vec![b'1'; (seed % 5) as usize];
            let other = vec![0; (seed % 3) as usize];
            mutate(&mut bytes, &other, 50, &mut Dice::new(seed));
            assert!(bytes.len() <= 50);
        }
    }
}
