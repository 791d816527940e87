//! The columns of a row group, read some rows at a time.

use ::parquet::column::reader::get_column_reader;
use ::parquet::column::reader::{ColumnReaderImpl, get_typed_column_reader};
use ::parquet::data_type::DataType;
use ::parquet::errors::Result;
use ::parquet::file::metadata::RowGroupMetaData;
use bytes::Bytes;

use super::pages::{Pages, ValueBudget, refused};

/// The rows that are read at once. Each of them can have a list of `MAX_ENTRIES` entries.
const BATCH_ROWS: usize = 64;

/// A column with a value, or a list of values, for each row.
pub(super) struct Column<T: DataType> {
    reader: Option<ColumnReaderImpl<T>>,
    values: Vec<T::T>,
    repeated: Vec<i16>,
    defined: Vec<i16>,
    /// The end of each row's values.
    ends: Vec<usize>,
}

impl<T: DataType> Column<T> {
    /// The column of that path. One that is not there is empty.
    pub(super) fn open(
        (file, group): (&Bytes, &RowGroupMetaData),
        (path, is_list): (&str, bool),
        budget: &ValueBudget,
    ) -> Result<Self> {
        let found = group.columns().iter().find(|column| column.column_path().string() == path);
        let reader = match found {
            None => None,
            Some(column) => {
                let descriptor = column.column_descr_ptr();
                let level = i16::from(is_list);
                let levels = (descriptor.max_def_level(), descriptor.max_rep_level());
                if levels != (level, level) || descriptor.physical_type() != T::get_physical_type() {
                    return Err(refused(&format!("its column {path} is of another type")));
                }
                let pages = Box::new(Pages::new(file, column, budget)?);
                Some(get_typed_column_reader(get_column_reader(descriptor, pages)))
            }
        };
        Ok(Self { reader, values: Vec::new(), repeated: Vec::new(), defined: Vec::new(), ends: Vec::new() })
    }

    /// Reads the next rows, and returns their number; 0 at the end, and `None` if the column is not there.
    pub(super) fn advance(&mut self) -> Result<Option<usize>> {
        self.values.clear();
        self.repeated.clear();
        self.defined.clear();
        self.ends.clear();
        let Some(reader) = &mut self.reader else { return Ok(None) };
        let (defined, repeated) = (Some(&mut self.defined), Some(&mut self.repeated));
        let (rows, _, _) = reader.read_records(BATCH_ROWS, defined, repeated, &mut self.values)?;
        if self.repeated.is_empty() {
            self.ends.extend(1..=self.values.len());
        } else {
            self.find_ends();
        }
        if self.ends.len() != rows || self.ends.last().is_some_and(|end| *end > self.values.len()) {
            return Err(refused("a column has other values than it states"));
        }
        Ok(Some(rows))
    }

    fn find_ends(&mut self) {
        let mut end = 0;
        for (place, (repeated, defined)) in self.repeated.iter().zip(&self.defined).enumerate() {
            if *repeated == 0 && place > 0 {
                self.ends.push(end);
            }
            end += usize::from(*defined > 0);
        }
        self.ends.push(end);
    }

    /// The values of a row.
    pub(super) fn list(&self, row: usize) -> &[T::T] {
        let start = row.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.ends.get(row).and_then(|&end| self.values.get(start..end)).unwrap_or_default()
    }

    /// The value of a row.
    pub(super) fn value(&self, row: usize) -> Option<&T::T> {
        self.list(row).first()
    }
}
