//! The interned strings of a profile.

use std::ops::Index;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::id::StringId;

/// Strings by id, each stored once. Comparing two tables compares their strings in order.
#[derive(Clone, Debug, Default)]
pub struct StringTable {
    strings: Vec<Arc<str>>,
    ids: FxHashMap<Arc<str>, StringId>,
}

impl StringTable {
    /// The id of `string`, which is added if it is new. O(length).
    pub fn intern(&mut self, string: &str) -> StringId {
        if let Some(&id) = self.ids.get(string) {
            return id;
        }
        let id = StringId::from_index(self.strings.len());
        let string: Arc<str> = string.into();
        self.strings.push(Arc::clone(&string));
        self.ids.insert(string, id);
        id
    }

    /// The string of `id`; `None` where the id is another table's.
    pub fn get(&self, id: StringId) -> Option<&str> {
        self.strings.get(id.index()).map(AsRef::as_ref)
    }

    /// The id of `string` if it is in the table.
    pub fn find(&self, string: &str) -> Option<StringId> {
        self.ids.get(string).copied()
    }

    /// How many strings there are.
    pub fn len(&self) -> usize {
        self.strings.len()
    }

    /// Whether there is no string.
    pub fn is_empty(&self) -> bool {
        self.strings.is_empty()
    }

    /// The strings in the order of their ids.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        self.strings.iter().map(AsRef::as_ref)
    }
}

impl Index<StringId> for StringTable {
    type Output = str;

    fn index(&self, id: StringId) -> &str {
        &self.strings[id.index()]
    }
}

impl PartialEq for StringTable {
    fn eq(&self, other: &Self) -> bool {
        self.strings == other.strings
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
