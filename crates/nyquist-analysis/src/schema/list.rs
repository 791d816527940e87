//! The list of rows in an answer, with the number of all of them.

use serde::ser::{Serialize, SerializeMap as _, Serializer};

/// The first rows of a list, as two members: `function_count`, and `functions`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List<T> {
    noun: &'static str,
    /// The name of the list.
    pub name: &'static str,
    /// The number of all rows, beyond the limit too.
    pub count: usize,
    /// The rows.
    pub rows: Vec<T>,
}

impl<T> List<T> {
    /// The rows of the first results. `noun` is what one of them is, and `name` what several are.
    pub fn new<R>(
        noun: &'static str,
        name: &'static str,
        limit: usize,
        all: &[R],
        row: impl FnMut(&R) -> T,
    ) -> Self {
        Self { noun, name, count: all.len(), rows: all.iter().take(limit).map(row).collect() }
    }
}

impl<T: Serialize> Serialize for List<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry(&format!("{}_count", self.noun), &self.count)?;
        map.serialize_entry(self.name, &self.rows)?;
        map.end()
    }
}
