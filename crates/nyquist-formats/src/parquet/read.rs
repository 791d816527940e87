//! Reads tables: one file, or those of one machine as one profile.

use std::collections::BTreeMap;

use ::parquet::data_type::{ByteArrayType, Int32Type, Int64Type};
use ::parquet::errors::{ParquetError, Result as TableResult};
use ::parquet::file::metadata::{
    ParquetMetaData, ParquetMetaDataOptions, ParquetMetaDataReader, ParquetStatisticsPolicy, RowGroupMetaData,
};
use bytes::Bytes;
use nyquist_profile::{FrameId, LibId, StackId, StringId, ThreadIndex, Unit};
use rustc_hash::FxHashMap;

use super::column::Column;
use super::pages::ValueBudget;
use super::texts::{KnownTexts, MAX_TEXT};
use super::{CPU, INTERVAL_KEY, OFF_CPU, PRODUCT_KEY, schema};
use crate::error::{ImportedProfile, ReadError};
use crate::import::{CodePosition, Importer, ThreadName};
use crate::labels::{LabelSelection, is_one_of, unknown};
use crate::pprof::factor_of;
use crate::values::{SampleValueKind, choose};

const FORMAT: &str = "a Parquet table of a profile";

/// Reads a file, with the rows of CPU time and of waiting, or else of the first kind.
///
/// # Errors
/// The file is no table of a profile.
pub fn read(bytes: &[u8]) -> Result<ImportedProfile, ReadError> {
    read_labelled(bytes, None, &[])
}

/// As [`read`], for the rows of the kind with this name and with these labels: `KEY=VALUE`, or `KEY` for any value.
/// `service`, `process`, `pid`, `thread` and `tid` are labels, too.
///
/// # Errors
/// As there, and if there is no such kind, or no row with such a label.
pub fn read_labelled(
    bytes: &[u8],
    kind: Option<&str>,
    labels: &[String],
) -> Result<ImportedProfile, ReadError> {
    let mut reader = TableReader::new();
    reader.add(bytes.to_vec())?;
    reader.read(kind, labels)
}

/// Reads the tables of several files as one profile.
#[derive(Debug, Default)]
pub struct TableReader {
    files: Vec<(Bytes, ParquetMetaData)>,
}

impl TableReader {
    /// A reader without files.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file.
    ///
    /// # Errors
    /// It is no Parquet file.
    pub fn add(&mut self, bytes: Vec<u8>) -> Result<(), ReadError> {
        let bytes = Bytes::from(bytes);
        let skip = ParquetStatisticsPolicy::SkipAll;
        let options = ParquetMetaDataOptions::new()
            .with_column_stats_policy(skip.clone())
            .with_encoding_stats_policy(skip.clone())
            .with_size_stats_policy(skip);
        let reader = ParquetMetaDataReader::new().with_metadata_options(Some(options));
        let metadata = reader.parse_and_finish(&bytes).map_err(|error| malformed(&error))?;
        self.files.push((bytes, metadata));
        Ok(())
    }

    /// The profile of all files, as by [`read_labelled`].
    ///
    /// # Errors
    /// As there.
    pub fn read(self, kind: Option<&str>, labels: &[String]) -> Result<ImportedProfile, ReadError> {
        let kinds = self.kinds().map_err(|error| malformed(&error))?;
        let requested = KindSelection::choose(&kinds, kind)?;
        let mut importer = Importer::new("Parquet table", "Parquet");
        if !requested.is_cpu {
            importer.meta_mut().measure = requested.value.measure();
        }
        let labels = LabelSelection::new(labels);
        let mut rows = RowReader::new(importer, &requested, &labels);
        for (file, metadata) in &self.files {
            let budget = ValueBudget::new(file.len());
            for group in metadata.row_groups() {
                rows.read_group(file, group, &budget).map_err(|error| malformed(&error))?;
            }
        }
        rows.finish(self.interval(), self.product())
    }

    /// The kinds of rows, with their units.
    fn kinds(&self) -> TableResult<BTreeMap<String, String>> {
        let mut kinds = BTreeMap::new();
        for (file, metadata) in &self.files {
            let budget = ValueBudget::new(file.len());
            for group in metadata.row_groups() {
                let source = (file, group);
                let mut kind = Column::<ByteArrayType>::open(source, ("kind", false), &budget)?;
                let mut unit = Column::<ByteArrayType>::open(source, ("unit", false), &budget)?;
                let mut known = KnownTexts::new();
                while let (Some(rows @ 1..), Some(_)) = (kind.advance()?, unit.advance()?) {
                    for row in 0..rows {
                        let (Some(kind), Some(unit)) = (kind.value(row), unit.value(row)) else { continue };
                        known.find(kind, |name| {
                            if kinds.len() < MAX_KINDS && !kinds.contains_key(name) {
                                kinds.insert(name.to_owned(), text(unit.data()));
                            }
                        });
                    }
                }
            }
        }
        Ok(kinds)
    }

    /// A value of the files' own metadata, if all files have the same.
    fn declared(&self, key: &str) -> Option<&str> {
        let mut values = self.files.iter().map(|(_, metadata)| {
            let pairs = metadata.file_metadata().key_value_metadata()?;
            pairs.iter().find(|pair| pair.key == key)?.value.as_deref()
        });
        let first = values.next()??;
        values.all(|value| value == Some(first)).then_some(first)
    }

    fn interval(&self) -> Option<u64> {
        self.declared(INTERVAL_KEY)?.parse().ok()
    }

    fn product(&self) -> Option<String> {
        self.declared(PRODUCT_KEY).filter(|name| !name.is_empty()).map(|name| cut(name).to_owned())
    }
}

/// The kinds that a file is looked at for.
const MAX_KINDS: usize = 256;

fn malformed(error: &ParquetError) -> ReadError {
    ReadError::Malformed { format: FORMAT, problem: error.to_string() }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_TEXT)]).into_owned()
}

fn cut(name: &str) -> &str {
    &name[..name.floor_char_boundary(MAX_TEXT)]
}

/// Which rows are read.
struct KindSelection {
    value: SampleValueKind,
    /// Whether it is CPU time. Rows of waiting are read with it.
    is_cpu: bool,
}

impl KindSelection {
    fn choose(kinds: &BTreeMap<String, String>, requested: Option<&str>) -> Result<Self, ReadError> {
        let values: Vec<_> = kinds
            .iter()
            .map(|(name, unit)| {
                let (factor, unit) = factor_of(unit);
                SampleValueKind { name: name.clone(), unit, factor }
            })
            .collect();
        let is_cpu = |value: &SampleValueKind| value.name == CPU && value.unit == Unit::Time;
        let default = values.iter().position(is_cpu);
        let default = default.or_else(|| values.iter().position(|value| value.name != OFF_CPU)).unwrap_or(0);
        let chosen = choose(&values, requested, default)?;
        let value = values.get(chosen).cloned().ok_or_else(|| ReadError::Malformed {
            format: FORMAT,
            problem: "it has no rows of a known kind".into(),
        })?;
        Ok(Self { is_cpu: is_cpu(&value), value })
    }
}

/// The columns of a row group.
struct Columns {
    time: Column<Int64Type>,
    duration: Column<Int64Type>,
    texts: [Column<ByteArrayType>; TEXTS.len()],
    value: Column<Int64Type>,
    label_keys: Column<ByteArrayType>,
    label_values: Column<ByteArrayType>,
    /// The texts of frames, in the order of `FRAME_TEXTS`.
    frames: [Column<ByteArrayType>; FRAME_TEXTS.len()],
    lines: Column<Int32Type>,
}

/// The columns of texts. The first five are labels, too.
const TEXTS: [&str; 6] = ["service", "process", "pid", "thread", "tid", "kind"];
const KIND: usize = 5;

const FRAME_TEXTS: [&str; 4] = [schema::FUNCTION, schema::FILE, schema::MODULE, schema::BUILD_ID];

impl Columns {
    fn open(source: (&Bytes, &RowGroupMetaData), budget: &ValueBudget) -> TableResult<Self> {
        let text = |name: &str| Column::open(source, (name, false), budget);
        let list = |name: &str| Column::open(source, (name, true), budget);
        Ok(Self {
            time: Column::open(source, ("time", false), budget)?,
            duration: Column::open(source, ("duration_us", false), budget)?,
            texts: opened(TEXTS, text)?,
            value: Column::open(source, ("value", false), budget)?,
            label_keys: list(schema::LABEL_KEY)?,
            label_values: list(schema::LABEL_VALUE)?,
            frames: opened(FRAME_TEXTS, list)?,
            lines: Column::open(source, (schema::LINE, true), budget)?,
        })
    }

    /// Reads the next rows of all columns and returns their number, which is that of the values.
    fn advance(&mut self) -> TableResult<usize> {
        let rows = self.value.advance()?.unwrap_or(0);
        let mut others = vec![self.time.advance()?, self.duration.advance()?, self.lines.advance()?];
        for column in self.texts.iter_mut().chain(&mut self.frames) {
            others.push(column.advance()?);
        }
        others.extend([self.label_keys.advance()?, self.label_values.advance()?]);
        if others.into_iter().flatten().all(|other| other == rows) {
            Ok(rows)
        } else {
            Err(super::pages::refused("its columns have different numbers of rows"))
        }
    }
}

/// A column for each name, or the first error.
fn opened<const N: usize>(
    names: [&str; N],
    open: impl Fn(&str) -> TableResult<Column<ByteArrayType>>,
) -> TableResult<[Column<ByteArrayType>; N]> {
    let columns = names.into_iter().map(open).collect::<TableResult<Vec<_>>>()?;
    columns.try_into().map_err(|_| super::pages::refused("its columns have other names"))
}

/// The texts of a frame, and its line.
type FrameKey = ([StringId; FRAME_TEXTS.len()], i32);

struct RowReader<'a> {
    importer: Importer,
    requested: &'a KindSelection,
    labels: &'a LabelSelection<'a>,
    /// Which of the requested labels some row has, and the keys that there are.
    found: Vec<bool>,
    keys: Vec<StringId>,
    texts: KnownTexts<StringId>,
    /// The text that is empty.
    empty: StringId,
    threads: FxHashMap<[StringId; 4], ThreadIndex>,
    modules: FxHashMap<(StringId, StringId), (Option<LibId>, bool)>,
    frames: FxHashMap<FrameKey, FrameId>,
    /// The last stack: its frames, each with the stack that it ends.
    last: Vec<(FrameId, StackId)>,
    /// The time of the last row of each thread, and how much of it is used, in ns.
    clocks: FxHashMap<ThreadIndex, (u64, u64)>,
    /// The times of the first and of the last sample, in ns since 1970.
    range: Option<(u64, u64)>,
    left_out: u64,
    negative: u64,
}

impl<'a> RowReader<'a> {
    fn new(mut importer: Importer, requested: &'a KindSelection, labels: &'a LabelSelection<'a>) -> Self {
        let mut intern = |text: &str| importer.builder().intern_string(text);
        let (empty, keys) = (intern(""), TEXTS[..KIND].iter().map(|key| intern(key)).collect());
        Self {
            importer,
            requested,
            labels,
            found: vec![false; labels.keys().len()],
            keys,
            texts: KnownTexts::new(),
            empty,
            threads: FxHashMap::default(),
            modules: FxHashMap::default(),
            frames: FxHashMap::default(),
            last: Vec::new(),
            clocks: FxHashMap::default(),
            range: None,
            left_out: 0,
            negative: 0,
        }
    }

    fn read_group(
        &mut self,
        file: &Bytes,
        group: &RowGroupMetaData,
        budget: &ValueBudget,
    ) -> TableResult<()> {
        let mut columns = Columns::open((file, group), budget)?;
        loop {
            let rows = columns.advance()?;
            if rows == 0 {
                return Ok(());
            }
            for row in 0..rows {
                if self.labels.keys().is_empty() || self.has_labels(&columns, row) {
                    self.read_row(&columns, row);
                }
            }
        }
    }

    fn has_labels(&mut self, columns: &Columns, row: usize) -> bool {
        let mut has_all = true;
        for (place, (key, values)) in self.labels.keys().iter().enumerate() {
            let mut has_key = false;
            let mut has = false;
            if let Some(column) = TEXTS[..KIND].iter().position(|text| text == key) {
                has_key = true;
                let text = self.text(&columns.texts[column], row, 0);
                has = is_one_of(values, |value| self.importer.text(text) == value);
            }
            for entry in 0..columns.label_keys.list(row).len().min(columns.label_values.list(row).len()) {
                let label = self.text(&columns.label_keys, row, entry);
                if self.importer.text(label) == *key {
                    has_key = true;
                    let text = self.text(&columns.label_values, row, entry);
                    has |= is_one_of(values, |value| self.importer.text(text) == value);
                } else if self.keys.len() < MAX_KINDS && !self.keys.contains(&label) {
                    self.keys.push(label);
                }
            }
            self.found[place] |= has_key;
            has_all &= has;
        }
        has_all
    }

    /// An entry of a row. One that is missing is empty.
    fn text(&mut self, column: &Column<ByteArrayType>, row: usize, place: usize) -> StringId {
        let (importer, empty) = (&mut self.importer, self.empty);
        column
            .list(row)
            .get(place)
            .map_or(empty, |text| self.texts.find(text, |text| importer.builder().intern_string(text)))
    }

    fn read_row(&mut self, columns: &Columns, row: usize) {
        let kind = self.text(&columns.texts[KIND], row, 0);
        let kind = self.importer.text(kind);
        let off_cpu = self.requested.is_cpu && kind == OFF_CPU;
        if *kind != *self.requested.value.name && !off_cpu {
            self.left_out += 1;
            return;
        }
        let value = columns.value.value(row).copied().unwrap_or(0);
        self.negative += u64::from(value < 0);
        let amount = u64::try_from(value).unwrap_or(0).saturating_mul(self.requested.value.factor);
        if amount == 0 {
            return;
        }
        let time = |column: &Column<Int64Type>| {
            let micros = column.value(row).copied().unwrap_or(0);
            u64::try_from(micros).unwrap_or(0).saturating_mul(1000)
        };
        let (start, duration) = (time(&columns.time), time(&columns.duration));
        let thread = self.thread(columns, row);
        let stack = self.stack(columns, row);
        let time = self.time(thread, (start, duration), amount);
        let (first, last) = self.range.unwrap_or((time, 0));
        self.range = Some((first.min(time), last.max(start.saturating_add(duration))));
        if off_cpu {
            self.importer.off_cpu_sample(thread, time, stack, amount);
        } else {
            self.importer.sample(thread, time, stack, amount);
        }
    }

    /// The time of a row's sample. The rows of a thread that begin at one time follow each other, as far as they take
    /// time.
    fn time(&mut self, thread: ThreadIndex, (start, duration): (u64, u64), amount: u64) -> u64 {
        let clock = self.clocks.entry(thread).or_default();
        if clock.0 != start {
            *clock = (start, 0);
        }
        if self.requested.value.unit == Unit::Time {
            clock.1 = clock.1.saturating_add(amount).min(duration);
        }
        start.saturating_add(clock.1)
    }

    fn thread(&mut self, columns: &Columns, row: usize) -> ThreadIndex {
        let [_, process, pid, thread, tid, _] = &columns.texts;
        let key = [process, pid, thread, tid].map(|column| self.text(column, row, 0));
        if let Some(&known) = self.threads.get(&key) {
            return known;
        }
        let [process, pid, thread, tid] = &key.map(|text| self.importer.text(text).to_owned());
        let index = self.importer.thread(ThreadName { pid, process, tid, thread });
        self.threads.insert(key, index);
        index
    }

    /// The stack of a row, of which the first frames are often those of the row before.
    fn stack(&mut self, columns: &Columns, row: usize) -> Option<StackId> {
        let depth = columns.frames[0].list(row).len();
        self.last.truncate(depth);
        for place in 0..depth {
            let frame = self.frame(columns, row, place);
            if self.last.get(place).is_some_and(|(known, _)| *known == frame) {
                continue;
            }
            self.last.truncate(place);
            let stack = self.importer.stack(self.last.last().map(|(_, stack)| *stack), frame);
            self.last.push((frame, stack));
        }
        self.last.last().map(|(_, stack)| *stack)
    }

    fn frame(&mut self, columns: &Columns, row: usize, place: usize) -> FrameId {
        let [function, file, module, build_id] = &columns.frames;
        let texts = [function, file, module, build_id].map(|column| self.text(column, row, place));
        let line = columns.lines.list(row).get(place).copied().unwrap_or(0);
        if let Some(&known) = self.frames.get(&(texts, line)) {
            return known;
        }
        let [name, file, module, build_id] = texts;
        let is_there = |text: &StringId| *text != self.empty;
        let (name, file) = (Some(name).filter(is_there), Some(file).filter(is_there));
        let (lib, is_kernel) = self.module(module, build_id);
        let code = CodePosition { lib, line: u32::try_from(line).ok(), is_kernel, ..CodePosition::default() };
        let frame = self.importer.frame_of(name, file, &code);
        self.frames.insert((texts, line), frame);
        frame
    }

    /// The lib of a module, and whether it is the kernel.
    fn module(&mut self, module: StringId, build_id: StringId) -> (Option<LibId>, bool) {
        if let Some(&known) = self.modules.get(&(module, build_id)) {
            return known;
        }
        let [path, id] = [module, build_id].map(|text| self.importer.text(text).to_owned());
        let lib = (!path.is_empty()).then(|| self.importer.lib(&path, Some(&*id)));
        *self.modules.entry((module, build_id)).or_insert((lib, is_kernel(&path)))
    }

    fn finish(
        mut self,
        interval: Option<u64>,
        product: Option<String>,
    ) -> Result<ImportedProfile, ReadError> {
        if let Some(missing) = self.found.iter().position(|found| !found) {
            let keys = self.keys.iter().map(|&key| self.importer.text(key));
            return Err(unknown(self.labels.keys()[missing].0, keys));
        }
        self.importer.note_left_out(self.negative, "negative values");
        self.importer.note_left_out(self.left_out, "rows of other kinds: import --event NAME reads them");
        let meta = self.importer.meta_mut();
        if let Some((first, last)) = self.range {
            meta.start_time = first / 1000;
            meta.profiling_end = Some(last.saturating_sub(first));
        }
        if let Some(product) = product {
            meta.product = product;
        }
        Ok(self.importer.finish(interval))
    }
}

/// Whether a module is the kernel, or one of its modules.
fn is_kernel(module: &str) -> bool {
    let name = module.rsplit('/').next().unwrap_or(module);
    module.starts_with("[kernel") || name.split('.').skip(1).any(|part| part == "ko")
}
