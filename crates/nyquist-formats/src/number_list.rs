//! A long list of numbers of a file, of which most are small.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeSeed, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// The numbers of a piece, which is freed when all of its numbers are taken. A megabyte goes back to the system then.
const PIECE: usize = 1 << 18;

/// Numbers in sequence, of four bytes each if those around them are small, and otherwise of eight.
#[derive(Default)]
pub(crate) struct NumberList {
    pieces: Vec<Piece>,
    len: usize,
}

enum Piece {
    Small(Vec<u32>),
    Large(Vec<u64>),
}

impl NumberList {
    /// Adds a number at the end.
    pub(crate) fn push(&mut self, number: u64) {
        if self.len.is_multiple_of(PIECE) {
            self.pieces.push(Piece::Small(Vec::new()));
        }
        let Some(last) = self.pieces.last_mut() else { return };
        self.len += 1;
        match last {
            Piece::Large(numbers) => numbers.push(number),
            Piece::Small(numbers) => match u32::try_from(number) {
                Ok(number) => numbers.push(number),
                Err(_) => {
                    let numbers = numbers.iter().copied().map(u64::from).chain([number]);
                    *last = Piece::Large(numbers.collect());
                }
            },
        }
    }
}

impl IntoIterator for NumberList {
    type Item = u64;
    type IntoIter = IntoNumbers;

    fn into_iter(self) -> IntoNumbers {
        IntoNumbers {
            pieces: self.pieces.into_iter(),
            small: Vec::new().into_iter(),
            large: Vec::new().into_iter(),
        }
    }
}

/// Takes the numbers of a list.
pub(crate) struct IntoNumbers {
    pieces: std::vec::IntoIter<Piece>,
    small: std::vec::IntoIter<u32>,
    large: std::vec::IntoIter<u64>,
}

impl Iterator for IntoNumbers {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        loop {
            if let Some(number) = self.small.next().map(u64::from).or_else(|| self.large.next()) {
                return Some(number);
            }
            match self.pieces.next()? {
                Piece::Small(numbers) => self.small = numbers.into_iter(),
                Piece::Large(numbers) => self.large = numbers.into_iter(),
            }
        }
    }
}

/// Reads a list, each of whose elements is given to a function.
pub(crate) struct EachOf<T, F: FnMut(T)>(F, PhantomData<T>);

impl<T, F: FnMut(T)> EachOf<T, F> {
    /// A list whose elements are given to this function.
    pub(crate) fn new(each: F) -> Self {
        Self(each, PhantomData)
    }
}

impl<'de, T: Deserialize<'de>, F: FnMut(T)> DeserializeSeed<'de> for EachOf<T, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, T: Deserialize<'de>, F: FnMut(T)> Visitor<'de> for EachOf<T, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut elements: A) -> Result<(), A::Error> {
        while let Some(element) = elements.next_element()? {
            (self.0)(element);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_that_were_added() {
        let check = |numbers: &[u64], large: usize| {
            let mut list = NumberList::default();
            for &number in numbers {
                list.push(number);
            }
            assert_eq!(list.pieces.iter().filter(|it| matches!(it, Piece::Large(_))).count(), large);
            assert!(list.into_iter().eq(numbers.iter().copied()));
        };
        check(&[], 0);
        check(&[1, u64::from(u32::MAX)], 0);
        check(&[1, u64::MAX, 2, 1 << 32], 1);
        let mut many: Vec<u64> = (0..600_000).collect();
        check(&many, 0);
        many[300_000] = 1 << 40;
        check(&many, 1);
    }
}
