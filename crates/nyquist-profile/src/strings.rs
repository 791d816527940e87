//! The interned strings of a profile.

use std::ops::Index;

use crate::id::StringId;
use crate::row_index::{RowIndex, hash_of};

/// Strings by id, each stored once, one after the other. Comparing two tables compares their strings in
/// order.
#[derive(Clone, Debug, Default)]
pub struct StringTable {
    text: String,
    /// The end of each string in `text`, where the next one begins.
    ends: Vec<usize>,
    index: RowIndex,
}

impl StringTable {
    /// The id of `string`, which is added if it is new. O(length).
    pub fn intern(&mut self, string: &str) -> StringId {
        let (text, ends, new) = (&self.text, &self.ends, self.ends.len());
        let place =
            self.index.find_or_add(hash_of(string), new, |place| row(text, ends, place) == Some(string));
        if place == new { self.append(string) } else { StringId::from_index(place) }
    }

    /// Adds a new string, which neither [`intern`](Self::intern) nor [`find`](Self::find) will find.
    /// O(length).
    pub(crate) fn append(&mut self, string: &str) -> StringId {
        self.text.push_str(string);
        self.ends.push(self.text.len());
        StringId::from_index(self.ends.len() - 1)
    }

    /// The string with `id`; `None` if the id belongs to another table.
    pub fn get(&self, id: StringId) -> Option<&str> {
        row(&self.text, &self.ends, id.index())
    }

    /// The id of `string` if it is in the table.
    pub fn find(&self, string: &str) -> Option<StringId> {
        let is_equal = |place| row(&self.text, &self.ends, place) == Some(string);
        self.index.find(hash_of(string), is_equal).map(StringId::from_index)
    }

    /// The number of strings.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether the table is empty.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The strings in the order of their ids.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        (0..self.len()).map(|place| row(&self.text, &self.ends, place).unwrap_or_default())
    }
}

/// The string at an index.
fn row<'a>(text: &'a str, ends: &[usize], place: usize) -> Option<&'a str> {
    let end = *ends.get(place)?;
    let start = place.checked_sub(1).map_or(0, |before| ends[before]);
    text.get(start..end)
}

impl Index<StringId> for StringTable {
    type Output = str;

    fn index(&self, id: StringId) -> &str {
        let place = id.index();
        &self.text[place.checked_sub(1).map_or(0, |before| self.ends[before])..self.ends[place]]
    }
}

impl PartialEq for StringTable {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text && self.ends == other.ends
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_strings_share_an_id() {
        let mut table = StringTable::default();
        let main = table.intern("main");
        let other = table.intern("other");
        assert_eq!(table.intern("main"), main);
        assert_ne!(main, other);
        assert_eq!(&table[main], "main");
        assert_eq!(table.find("other"), Some(other));
        assert_eq!(table.len(), 2);
    }
}
