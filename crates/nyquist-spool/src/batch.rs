//! The records of one batch.

use crate::kind::Kind;

/// The size at which a record of many rows ends, and another one begins, in bytes.
const RECORD_SIZE: usize = 16 << 10;

/// Records in sequence, which are written at once.
#[derive(Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Batch {
    /// The records.
    pub fn records(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.bytes[start..end])
    }

    /// The size of all records in bytes.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Adds a record with these fields.
    pub(crate) fn add(&mut self, kind: Kind, put: impl FnOnce(&mut Vec<u8>)) {
        self.bytes.push(kind as u8);
        put(&mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    /// Adds rows, in as many records as are needed. `begin` adds the first fields of a record, given the number of the
    /// rows before it. `put` adds a row, and is told whether it is the first one of its record.
    pub(crate) fn add_rows<Row>(
        &mut self,
        kind: Kind,
        rows: impl IntoIterator<Item = Row>,
        begin: impl Fn(&mut Vec<u8>, usize),
        mut put: impl FnMut(&mut Vec<u8>, Row, bool),
    ) {
        let mut start = None;
        for (number, row) in rows.into_iter().enumerate() {
            let is_first = start.is_none();
            if is_first {
                start = Some(self.bytes.len());
                self.bytes.push(kind as u8);
                begin(&mut self.bytes, number);
            }
            put(&mut self.bytes, row, is_first);
            if start.is_some_and(|start| self.bytes.len() - start >= RECORD_SIZE) {
                self.ends.push(self.bytes.len());
                start = None;
            }
        }
        if start.is_some() {
            self.ends.push(self.bytes.len());
        }
    }
}
