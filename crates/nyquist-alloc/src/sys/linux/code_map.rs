//! Which words of a stack can matter to a walk: those that may be addresses of code, and those that point into the
//! stack.
//!
//! Words of other memory, and numbers, differ from call to call and do not matter. Code is whatever is not known to be
//! data, so that code which was just loaded counts, too.

use super::calls;

/// The most ranges of data that are told apart.
const MAX_RANGES: usize = 1 << 10;

/// Addresses of programs are below this one.
const END_OF_ADDRESSES: u64 = 1 << 47;

/// A word that is as far before the end of a stack points into it.
const MAX_DEPTH: u64 = 64 << 10;

/// Where data is.
pub(super) struct CodeMap {
    ranges: [(u64, u64); MAX_RANGES],
    count: usize,
    /// Whether there are more ranges than have room.
    is_full: bool,
    /// Where the first code is.
    first_code: u64,
    /// A number for all ranges of code.
    pub(super) code: u64,
    buffer: [u8; 4096],
}

impl CodeMap {
    /// A map that was not read.
    pub(super) const EMPTY: Self = Self {
        ranges: [(0, 0); MAX_RANGES],
        count: 0,
        is_full: false,
        first_code: u64::MAX,
        code: 0,
        buffer: [0; 4096],
    };

    /// Whether it is known where data is.
    pub(super) fn is_known(&self) -> bool {
        !self.is_full && self.count > 0
    }

    /// Adds the next word of a stack, which has its end at an address, to a hash.
    #[inline(always)]
    pub(super) fn add_word(&self, hash: u64, word: u64, end: u64, last: &mut (u64, u64)) -> u64 {
        // Each word is counted, so that those which matter have places.
        let hash = hash.wrapping_add(1);
        let before_end = end.wrapping_sub(word);
        if before_end <= MAX_DEPTH {
            mix(hash, before_end)
        } else if word >= self.first_code && word < END_OF_ADDRESSES && !self.is_data(word, last) {
            mix(hash, word)
        } else {
            hash
        }
    }

    /// Whether a word points to data. The last range that had one is looked at first.
    fn is_data(&self, word: u64, last: &mut (u64, u64)) -> bool {
        if word >= last.0 && word < last.1 {
            return true;
        }
        let ranges = self.ranges.get(..self.count).unwrap_or(&[]);
        let at = ranges.partition_point(|(_, end)| *end <= word);
        match ranges.get(at).filter(|(start, _)| *start <= word) {
            Some(range) => {
                *last = *range;
                true
            }
            None => false,
        }
    }

    /// Reads where data and code are.
    pub(super) fn read(&mut self) {
        (self.count, self.is_full, self.first_code) = (0, true, u64::MAX);
        let Some(file) = calls::open_to_read(b"/proc/self/maps\0") else { return };
        (self.is_full, self.code) = (false, 0);
        let mut line = Line::default();
        loop {
            let count = calls::read(file, &mut self.buffer);
            if count == 0 {
                break;
            }
            for at in 0..count {
                let byte = self.buffer.get(at).copied().unwrap_or(0);
                if line.take(byte) {
                    self.add(&line);
                    line = Line::default();
                }
            }
        }
        calls::close(file);
    }

    /// Adds the range of a line.
    fn add(&mut self, line: &Line) {
        let Line { start, end, is_code, .. } = *line;
        if is_code {
            self.first_code = self.first_code.min(start);
            self.code = mix(mix(self.code, start), end);
            return;
        }
        let last = self.count.checked_sub(1).and_then(|last| self.ranges.get_mut(last));
        if let Some(last) = last.filter(|last| last.1 == start) {
            last.1 = end;
        } else if let Some(place) = self.ranges.get_mut(self.count) {
            *place = (start, end);
            self.count += 1;
        } else {
            self.is_full = true;
        }
    }
}

/// A line of `/proc/self/maps`, as far as it was read: `START-END rwxp ...`.
#[derive(Clone, Copy, Default)]
struct Line {
    start: u64,
    end: u64,
    is_code: bool,
    /// How many fields have ended.
    fields: u32,
}

impl Line {
    /// Takes the next byte. Returns whether it has ended the line.
    fn take(&mut self, byte: u8) -> bool {
        match (self.fields, byte) {
            (_, b'\n') => return true,
            (0, b'-') | (1 | 2, b' ') => self.fields += 1,
            (0, _) => self.start = self.start << 4 | digit(byte),
            (1, _) => self.end = self.end << 4 | digit(byte),
            (2, b'x') => self.is_code = true,
            _ => {}
        }
        false
    }
}

fn digit(byte: u8) -> u64 {
    match byte {
        b'0'..=b'9' => u64::from(byte - b'0'),
        b'a'..=b'f' => u64::from(byte - b'a' + 10),
        _ => 0,
    }
}

/// Adds a number to a hash.
pub(super) fn mix(hash: u64, word: u64) -> u64 {
    (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> Box<CodeMap> {
        let mut map = Box::new(CodeMap::EMPTY);
        let mut line = Line::default();
        for byte in b"1000-2000 r-xp 0 x\n2000-3000 r--p 0 y-z\n3000-4000 rw-p 0 \n7000-8000 rwxp 0\n" {
            if line.take(*byte) {
                map.add(&line);
                line = Line::default();
            }
        }
        map
    }

    /// The hash of a stack with its end at this address.
    fn hash(map: &CodeMap, words: [u64; 4]) -> u64 {
        let mut last = (0, 0);
        words.into_iter().fold(0, |hash, word| map.add_word(hash, word, 0x90_0000, &mut last))
    }

    #[test]
    fn only_words_that_matter_are_hashed() {
        let map = map();
        assert_eq!((map.count, map.ranges[0], map.first_code), (1, (0x2000, 0x4000), 0x1000));
        let first = hash(&map, [0x1234, 7, 0x2500, 0x8f_ff18]);
        assert_eq!(hash(&map, [0x1234, 999, 0x3fff, 0x8f_ff18]), first, "numbers and data");
        for other in [
            [0x1235, 7, 0x2500, 0x8f_ff18],
            [0x1234, 7, 0x2500, 0x8f_ff10],
            // Memory that is not known may be code.
            [0x1234, 7, 0x5000, 0x8f_ff18],
            [7, 0x1234, 0x2500, 0x8f_ff18],
        ] {
            assert_ne!(hash(&map, other), first, "{other:x?}");
        }
    }
}
