//! Writes a profile as a table.

use std::io::{self, Write};

use ::parquet::basic::{Compression, ZstdLevel};
use ::parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use ::parquet::errors::{ParquetError, Result};
use ::parquet::file::metadata::{KeyValue, SortingColumn};
use ::parquet::file::properties::{WriterProperties, WriterVersion};
use ::parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use nyquist_profile::{Frame, ProcessIndex, Profile, StackId, Unit};
use rustc_hash::FxHashMap;

use super::rows::{Row, Slices, WriteOptions, kind, rows};
use super::{INTERVAL_KEY, PRODUCT_KEY, VERSION, VERSION_KEY, schema};
use crate::pprof::unit_name;
use crate::{ProcessLabels, SourcePaths, source_path};

/// The rows of a row group, which engines read or skip as a whole.
const GROUP_ROWS: usize = 100_000;

/// The rows that are handed to the library at once.
const BATCH_ROWS: usize = 1024;

/// Writes the profile, with a row for each stack of a thread and kind within a time. O(rows × depth), in memory of
/// the rows and of a compressed row group.
///
/// # Errors
/// If `out` cannot be written.
pub fn write(profile: &Profile, options: WriteOptions<'_>, out: &mut impl Write) -> io::Result<()> {
    TableWriter::new(profile, options).write_file(u64::MAX, out)
}

/// Writes the table of a profile as files of limited size. Memory: the rows, and a compressed row group.
pub struct TableWriter<'a> {
    table: Table<'a>,
    rows: Vec<Row>,
    /// How many of the rows are in files.
    written: usize,
}

impl std::fmt::Debug for TableWriter<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { rows, written, .. } = self;
        f.debug_struct("TableWriter").field("rows", &rows.len()).field("written", written).finish()
    }
}

impl<'a> TableWriter<'a> {
    /// A writer of the profile, with a row for each stack of a thread and kind within a time. O(samples).
    pub fn new(profile: &'a Profile, options: WriteOptions<'a>) -> Self {
        let services: Vec<_> = (0..profile.processes().len())
            .map(|index| (options.labels)(ProcessIndex::from_index(index)))
            .collect();
        let slices = Slices::new(profile, options.slice);
        let rows = rows(profile, slices, &services);
        Self { table: Table::new(profile, options.paths, slices, &services), rows, written: 0 }
    }

    /// Whether all rows are in files.
    pub fn is_complete(&self) -> bool {
        self.written == self.rows.len()
    }

    /// Writes the next file, which ends with the row group that reaches `max_bytes`. O(rows of it × depth).
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn write_file(&mut self, max_bytes: u64, out: &mut impl Write) -> io::Result<()> {
        self.write_groups(max_bytes, out).map_err(|error| match error {
            ParquetError::External(source) => match source.downcast::<io::Error>() {
                Ok(error) => *error,
                Err(source) => io::Error::other(source),
            },
            error => io::Error::other(error),
        })
    }

    fn write_groups(&mut self, max_bytes: u64, out: &mut impl Write) -> Result<()> {
        let properties = properties(self.table.profile)?;
        let mut writer = SerializedFileWriter::new(Vec::new(), schema::schema()?, properties.into())?;
        let mut bytes = 0;
        for rows in self.rows[self.written..].chunks(GROUP_ROWS) {
            if bytes >= max_bytes {
                break;
            }
            let mut group = writer.next_row_group()?;
            self.table.write_group(rows, &mut group)?;
            group.close()?;
            writer.flush()?;
            // The library counts the bytes itself.
            let compressed = std::mem::take(writer.inner_mut());
            out.write_all(&compressed)?;
            bytes += compressed.len() as u64;
            self.written += rows.len();
        }
        out.write_all(&writer.into_inner()?)?;
        Ok(())
    }
}

fn properties(profile: &Profile) -> Result<WriterProperties> {
    let pair = |key: &str, value: &str| KeyValue::new(key.to_owned(), value.to_owned());
    let sorted = schema::SORTED_BY.map(|column_idx| SortingColumn {
        column_idx,
        descending: false,
        nulls_first: false,
    });
    Ok(WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .set_created_by(concat!("nyquist ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_sorting_columns(Some(sorted.into()))
        .set_key_value_metadata(Some(vec![
            pair(VERSION_KEY, VERSION),
            pair(INTERVAL_KEY, &profile.meta().interval.to_string()),
            pair(PRODUCT_KEY, &profile.meta().product),
        ]))
        .build())
}

/// The texts of a frame. They share memory with those of other frames.
#[derive(Clone)]
struct FrameTexts {
    function: ByteArray,
    file: ByteArray,
    line: i32,
    module: ByteArray,
    build_id: ByteArray,
}

/// What the rows refer to.
struct Table<'a> {
    profile: &'a Profile,
    slices: Slices,
    frames: Vec<FrameTexts>,
    services: Vec<(ByteArray, Vec<(ByteArray, ByteArray)>)>,
}

/// Texts, each once in memory.
#[derive(Default)]
struct Texts(FxHashMap<String, ByteArray>);

impl Texts {
    fn get(&mut self, text: &str) -> ByteArray {
        if let Some(known) = self.0.get(text) {
            return known.clone();
        }
        let bytes = ByteArray::from(text.as_bytes().to_vec());
        self.0.insert(text.to_owned(), bytes.clone());
        bytes
    }
}

impl<'a> Table<'a> {
    fn new(profile: &'a Profile, paths: SourcePaths<'_>, slices: Slices, services: &[ProcessLabels]) -> Self {
        let mut texts = Texts::default();
        let frames =
            profile.frames().iter().map(|frame| frame_texts(profile, frame, paths, &mut texts)).collect();
        let services = services
            .iter()
            .map(|it| {
                let labels = it.labels.iter().map(|(key, value)| (texts.get(key), texts.get(value)));
                (texts_of(&it.service), labels.collect())
            })
            .collect();
        Self { profile, slices, frames, services }
    }

    /// Writes the columns in the order of the schema.
    fn write_group<W: Write + Send>(
        &self,
        rows: &[Row],
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<()> {
        let profile = self.profile;
        let process = |row: &Row| profile.process(row.process);
        let thread = |row: &Row| profile.thread(row.thread);
        column::<Int64Type, _>(group, rows, |row| self.slices.start(row.slice))?;
        column::<Int64Type, _>(group, rows, |_| self.slices.duration())?;
        column::<ByteArrayType, _>(group, rows, |row| self.services[row.process.index()].0.clone())?;
        let labels = |row: &Row| &self.services[row.process.index()].1;
        list::<ByteArrayType, _>(group, rows, |row, out| {
            out.extend(labels(row).iter().map(|it| it.0.clone()));
        })?;
        list::<ByteArrayType, _>(group, rows, |row, out| {
            out.extend(labels(row).iter().map(|it| it.1.clone()));
        })?;
        column::<ByteArrayType, _>(group, rows, |row| texts_of(&process(row).name))?;
        column::<ByteArrayType, _>(group, rows, |row| texts_of(&process(row).pid))?;
        column::<ByteArrayType, _>(group, rows, |row| texts_of(&thread(row).name))?;
        column::<ByteArrayType, _>(group, rows, |row| texts_of(&thread(row).tid))?;
        column::<ByteArrayType, _>(group, rows, |row| texts_of(kind(profile, row.off_cpu)))?;
        column::<ByteArrayType, _>(group, rows, |row| texts_of(unit_name(self.unit(row))))?;
        column::<Int64Type, _>(group, rows, |row| row.value)?;
        column::<ByteArrayType, _>(group, rows, |row| self.leaf(row))?;
        column::<ByteArrayType, _>(group, rows, |row| self.folded(row))?;
        self.write_frames(rows, group)
    }

    fn write_frames<W: Write + Send>(
        &self,
        rows: &[Row],
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<()> {
        let texts: [fn(&FrameTexts) -> ByteArray; 2] = [|it| it.function.clone(), |it| it.file.clone()];
        for text in texts {
            list::<ByteArrayType, _>(group, rows, |row, out| {
                out.extend(self.stack(row).into_iter().map(text));
            })?;
        }
        list::<Int32Type, _>(group, rows, |row, out| {
            out.extend(self.stack(row).into_iter().map(|it| it.line));
        })?;
        let texts: [fn(&FrameTexts) -> ByteArray; 2] = [|it| it.module.clone(), |it| it.build_id.clone()];
        for text in texts {
            list::<ByteArrayType, _>(group, rows, |row, out| {
                out.extend(self.stack(row).into_iter().map(text));
            })?;
        }
        Ok(())
    }

    fn unit(&self, row: &Row) -> Unit {
        if row.off_cpu { Unit::Time } else { self.profile.meta().measure.unit }
    }

    /// The frames of a row from the outermost to the innermost.
    fn stack(&self, row: &Row) -> Vec<&FrameTexts> {
        let nodes = row.stack.into_iter().flat_map(|stack| self.profile.ancestors(stack));
        let mut frames: Vec<_> = nodes.map(|node| self.frame(node)).collect();
        frames.reverse();
        frames
    }

    fn frame(&self, node: StackId) -> &FrameTexts {
        &self.frames[self.profile.stack(node).frame.index()]
    }

    fn leaf(&self, row: &Row) -> ByteArray {
        row.stack.map_or_else(|| texts_of(""), |stack| self.frame(stack).function.clone())
    }

    /// The functions from the outermost to the innermost, as in folded stacks: a name has no semicolon.
    fn folded(&self, row: &Row) -> ByteArray {
        let mut text = Vec::new();
        for (place, frame) in self.stack(row).into_iter().enumerate() {
            text.extend((place > 0).then_some(b';'));
            text.extend(frame.function.data().iter().map(|&byte| if byte == b';' { b':' } else { byte }));
        }
        ByteArray::from(text)
    }
}

fn texts_of(text: &str) -> ByteArray {
    ByteArray::from(text.as_bytes().to_vec())
}

fn frame_texts(profile: &Profile, frame: &Frame, paths: SourcePaths<'_>, texts: &mut Texts) -> FrameTexts {
    let source = profile.frame_source(frame).map(|source| source_path(profile, source, paths));
    let lib = profile.func(frame.func).lib.map(|lib| profile.lib(lib));
    let module = lib.map_or("", |lib| if lib.path.is_empty() { &lib.name } else { &lib.path });
    FrameTexts {
        function: texts.get(profile.func_name(frame.func)),
        file: texts.get(&source.unwrap_or_default()),
        line: profile.frame_line(frame).and_then(|line| i32::try_from(line).ok()).unwrap_or(0),
        module: texts.get(module),
        build_id: texts.get(lib.and_then(|lib| lib.code_id.as_deref()).unwrap_or("")),
    }
}

/// Writes a column with a value for each row.
fn column<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    rows: &[Row],
    value: impl Fn(&Row) -> T::T,
) -> Result<()> {
    let mut column = group.next_column()?.ok_or_else(too_many)?;
    for rows in rows.chunks(BATCH_ROWS) {
        let values: Vec<_> = rows.iter().map(&value).collect();
        column.typed::<T>().write_batch(&values, None, None)?;
    }
    column.close()
}

/// Writes a column with a list of values for each row.
fn list<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    rows: &[Row],
    values_of: impl Fn(&Row, &mut Vec<T::T>),
) -> Result<()> {
    let mut column = group.next_column()?.ok_or_else(too_many)?;
    for rows in rows.chunks(BATCH_ROWS) {
        let (mut values, mut defined, mut repeated) = (Vec::new(), Vec::new(), Vec::new());
        for row in rows {
            let before = values.len();
            values_of(row, &mut values);
            let count = values.len() - before;
            // An empty list is a row without a value.
            defined.extend(std::iter::repeat_n(i16::from(count > 0), count.max(1)));
            repeated.push(0);
            repeated.extend(std::iter::repeat_n(1, count.saturating_sub(1)));
        }
        column.typed::<T>().write_batch(&values, Some(&defined), Some(&repeated))?;
    }
    column.close()
}

fn too_many() -> ParquetError {
    ParquetError::General("the schema has fewer columns than are written".into())
}
