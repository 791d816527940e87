//! The texts of columns, of which each is processed once: rows refer to those of a dictionary repeatedly, and a hostile
//! file to long ones.

use std::borrow::Cow;

use ::parquet::data_type::ByteArray;
use rustc_hash::FxHashMap;

/// The maximum length of a text. Longer ones are truncated.
pub(super) const MAX_TEXT: usize = 1 << 16;

/// The most texts that are known at a time. They keep their pages in memory.
const MAX_KNOWN: usize = 1 << 18;

/// What texts stand for, by where they are in memory. A text here keeps its page, so that no other one is there.
#[derive(Debug)]
pub(super) struct KnownTexts<T>(FxHashMap<(usize, usize), (ByteArray, T)>);

impl<T: Copy> KnownTexts<T> {
    pub(super) fn new() -> Self {
        Self(FxHashMap::default())
    }

    /// What a text stands for, which `new` finds out.
    pub(super) fn find(&mut self, text: &ByteArray, new: impl FnOnce(&str) -> T) -> T {
        let bytes = text.data();
        let place = (bytes.as_ptr() as usize, bytes.len());
        if let Some((_, known)) = self.0.get(&place) {
            return *known;
        }
        if self.0.len() >= MAX_KNOWN {
            self.0.clear();
        }
        let found = new(&lossy(bytes));
        self.0.insert(place, (text.clone(), found));
        found
    }
}

fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_TEXT)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_processed_once_at_its_place() {
        let mut known = KnownTexts::new();
        let (text, same) = (ByteArray::from(vec![b'a'; 1 << 20]), ByteArray::from(vec![b'a'; 9]));
        let mut processed = 0;
        let mut find = |text: &ByteArray| {
            known.find(text, |text| {
                processed += 1;
                text.len()
            })
        };
        assert_eq!([&text, &text.clone(), &same, &text].map(&mut find), [MAX_TEXT, MAX_TEXT, 9, MAX_TEXT]);
        assert_eq!(processed, 2);
    }
}
