//! Reads the code tables, shared or of one thread, into the builder's.

use super::breakpad_id::is_breakpad_id;
use super::flag::Flag;
use super::raw::{
    RawFrames, RawFuncs, RawIndex, RawLib, RawLocations, RawNativeSymbols, RawResources, RawSources,
    RawStacks, RawTables,
};
use super::read_error::{Inconsistency, ReadError};
use crate::builder::ProfileBuilder;
use crate::category::CategoryPair;
use crate::code::{Frame, Func, FuncKind, Lib, NativeSymbol, Source};
use crate::id::{CategoryId, FrameId, FuncId, LibId, NativeSymbolId, SourceId, StackId, StringId};
use crate::profile::Profile;

/// A table whose columns are being read: its name for errors, and its number of rows.
#[derive(Clone, Copy)]
pub(super) struct TableReader {
    name: &'static str,
    pub(super) length: usize,
}

impl TableReader {
    /// The table of that name. Its length is `length`, or that of its main column if `length` is missing.
    pub(super) fn new(name: &'static str, length: Option<usize>, main_column: usize) -> Self {
        Self { name, length: length.unwrap_or(main_column) }
    }

    /// The error that reports `problem` in a column.
    pub(super) fn error(
        self,
        column: &'static str,
        row: Option<usize>,
        problem: impl Into<String>,
    ) -> ReadError {
        Inconsistency { table: self.name, column, row, problem: problem.into() }.into()
    }

    /// The column, checked to be as long as the table.
    pub(super) fn column<T>(self, column: &'static str, values: Vec<T>) -> Result<Vec<T>, ReadError> {
        if values.len() == self.length {
            return Ok(values);
        }
        Err(self.error(column, None, format!("has {} rows, but the table has {}", values.len(), self.length)))
    }

    /// The column, if it exists; it must be as long as the table.
    pub(super) fn optional<T>(
        self,
        name: &'static str,
        values: Option<Vec<T>>,
    ) -> Result<Option<Vec<T>>, ReadError> {
        values.map(|values| self.column(name, values)).transpose()
    }

    /// The element of `target` at a mandatory index.
    pub(super) fn get<T: Copy>(
        self,
        column: &'static str,
        row: usize,
        index: RawIndex,
        target: &[T],
    ) -> Result<T, ReadError> {
        let value = index.get().and_then(|index| target.get(index as usize));
        value.copied().ok_or_else(|| self.out_of_range(column, row, index, target.len()))
    }

    /// The element of `target` at an optional index.
    pub(super) fn get_optional<T: Copy>(
        self,
        column: &'static str,
        row: usize,
        index: Option<RawIndex>,
        target: &[T],
    ) -> Result<Option<T>, ReadError> {
        match index {
            Some(index) if index.get().is_some() => self.get(column, row, index, target).map(Some),
            _ => Ok(None),
        }
    }

    fn out_of_range(self, column: &'static str, row: usize, index: RawIndex, length: usize) -> ReadError {
        let index = index.get().map_or("none".to_owned(), |index| index.to_string());
        self.error(column, Some(row), format!("is {index}, but its target has {length} rows"))
    }
}

/// The value in a row of an optional column.
fn at<T: Copy>(column: Option<&Vec<T>>, row: usize) -> Option<T> {
    column.and_then(|column| column.get(row)).copied()
}

fn number_at(column: Option<&Vec<RawIndex>>, row: usize) -> Option<u32> {
    at(column, row).and_then(RawIndex::get)
}

/// The strings of a string array, interned on first use. The names of resources are not interned, because
/// these come from the libs.
#[derive(Default)]
pub(super) struct StringArray {
    texts: Vec<String>,
    ids: Vec<Option<StringId>>,
}

impl StringArray {
    /// Interns the strings in their order, except for the names of resources.
    fn new(builder: &mut ProfileBuilder, texts: Vec<String>, resource_names: &[RawIndex]) -> Self {
        let mut is_resource = vec![false; texts.len()];
        for index in resource_names.iter().filter_map(|index| index.get()) {
            if let Some(flag) = is_resource.get_mut(index as usize) {
                *flag = true;
            }
        }
        let ids = texts
            .iter()
            .zip(is_resource)
            .map(|(text, is_resource)| (!is_resource).then(|| builder.intern_string(text)))
            .collect();
        Self { texts, ids }
    }

    /// The id of the string at a mandatory index.
    pub(super) fn get(
        &mut self,
        builder: &mut ProfileBuilder,
        table: TableReader,
        column: &'static str,
        row: usize,
        index: RawIndex,
    ) -> Result<StringId, ReadError> {
        let id = index.get().and_then(|index| self.find(builder, index));
        id.ok_or_else(|| table.out_of_range(column, row, index, self.texts.len()))
    }

    /// The id of the string at an index.
    pub(super) fn find(&mut self, builder: &mut ProfileBuilder, index: u32) -> Option<StringId> {
        let text = self.texts.get(index as usize)?;
        let id = self.ids.get_mut(index as usize)?;
        Some(*id.get_or_insert_with(|| builder.intern_string(text)))
    }
}

/// The tables that all threads share: all of them since version 60, the strings since 56, the sources
/// since 58.
pub(super) struct SharedTables {
    pub(super) strings: StringArray,
    sources: Vec<SourceId>,
    /// The ids of the stacks, if stacks are shared.
    pub(super) stacks: Option<Vec<StackId>>,
}

impl SharedTables {
    /// Reads the member `shared`.
    pub(super) fn read(
        builder: &mut ProfileBuilder,
        mut raw: RawTables,
        libs: &[LibId],
    ) -> Result<Self, ReadError> {
        let mut strings =
            StringArray::new(builder, std::mem::take(&mut raw.string_array), &raw.resource_table.name);
        let sources = read_sources(builder, std::mem::take(&mut raw.sources), &mut strings)?;
        let stacks = match raw.stack_table.take() {
            Some(stacks) => Some(read_code(builder, raw, stacks, libs, &mut strings, &sources)?),
            None => None,
        };
        Ok(Self { strings, sources, stacks })
    }

    /// Reads the tables of a thread. Returns its stacks, and its strings if it has its own.
    pub(super) fn read_thread(
        &mut self,
        builder: &mut ProfileBuilder,
        mut raw: RawTables,
        libs: &[LibId],
    ) -> Result<(Vec<StackId>, Option<StringArray>), ReadError> {
        let texts = std::mem::take(&mut raw.string_array);
        let mut own = (self.strings.texts.is_empty())
            .then(|| StringArray::new(builder, texts, &raw.resource_table.name));
        let Some(stacks) = raw.stack_table.take() else { return Ok((Vec::new(), own)) };
        let strings = own.as_mut().unwrap_or(&mut self.strings);
        let stacks = read_code(builder, raw, stacks, libs, strings, &self.sources)?;
        Ok((stacks, own))
    }
}

/// Adds libs. Two libs that are the same for the builder get the same id. An invalid breakpad id is left out,
/// because it cannot find symbols.
pub(super) fn add_libs(builder: &mut ProfileBuilder, raw: Vec<RawLib>) -> Vec<LibId> {
    let lib = |raw: RawLib| Lib {
        name: raw.name,
        path: raw.path,
        // The key for its symbols is split at slashes.
        debug_name: raw.debug_name.rsplit('/').next().unwrap_or_default().to_owned(),
        debug_path: raw.debug_path,
        breakpad_id: Some(raw.breakpad_id).filter(|id| is_breakpad_id(id)).unwrap_or_default(),
        code_id: raw.code_id,
        arch: raw.arch.filter(|arch| !arch.is_empty()),
    };
    raw.into_iter().map(|raw| builder.add_lib(lib(raw))).collect()
}

fn read_sources(
    builder: &mut ProfileBuilder,
    raw: RawSources,
    strings: &mut StringArray,
) -> Result<Vec<SourceId>, ReadError> {
    let table = TableReader::new("sources", raw.length, raw.filename.len());
    let filenames = table.column("filename", raw.filename)?;
    let mut ids = Vec::with_capacity(filenames.len());
    for (row, filename) in filenames.into_iter().enumerate() {
        let filename = strings.get(builder, table, "filename", row, filename)?;
        ids.push(builder.intern_source(Source { filename }));
    }
    Ok(ids)
}

/// Reads all parts of stacks, in the order of their references.
fn read_code(
    builder: &mut ProfileBuilder,
    raw: RawTables,
    stacks: RawStacks,
    libs: &[LibId],
    strings: &mut StringArray,
    sources: &[SourceId],
) -> Result<Vec<StackId>, ReadError> {
    let resources = read_resources(raw.resource_table, libs)?;
    let symbols = read_native_symbols(builder, raw.native_symbols, libs, strings)?;
    let funcs = read_funcs(builder, raw.func_table, &resources, strings, sources)?;
    let inherited = frame_categories(&raw.frame_table, &stacks);
    let locations = read_locations(raw.source_location_table, sources)?;
    let frames = FrameTargets { funcs: &funcs, libs, symbols: &symbols, locations: &locations };
    let frames = read_frames(builder, raw.frame_table, inherited.as_deref(), &frames)?;
    read_stacks(builder, stacks, &frames)
}

/// The lib of each resource.
fn read_resources(raw: RawResources, libs: &[LibId]) -> Result<Vec<Option<LibId>>, ReadError> {
    let table =
        TableReader::new("resourceTable", raw.length, raw.lib.as_ref().map_or(raw.name.len(), Vec::len));
    let Some(column) = table.optional("lib", raw.lib)? else { return Ok(vec![None; table.length]) };
    column.into_iter().enumerate().map(|(row, lib)| table.get_optional("lib", row, Some(lib), libs)).collect()
}

fn read_native_symbols(
    builder: &mut ProfileBuilder,
    raw: RawNativeSymbols,
    libs: &[LibId],
    strings: &mut StringArray,
) -> Result<Vec<NativeSymbolId>, ReadError> {
    let table = TableReader::new("nativeSymbols", raw.length, raw.lib_index.len());
    let lib_indexes = table.column("libIndex", raw.lib_index)?;
    let addresses = table.column("address", raw.address)?;
    let names = table.column("name", raw.name)?;
    let sizes = table.optional("functionSize", raw.function_size)?;
    let mut ids = Vec::with_capacity(table.length);
    for (row, (&lib, (&address, &name))) in lib_indexes.iter().zip(addresses.iter().zip(&names)).enumerate() {
        let symbol = NativeSymbol {
            lib: table.get("libIndex", row, lib, libs)?,
            address: address.get().ok_or_else(|| table.error("address", Some(row), "is none"))?,
            size: number_at(sizes.as_ref(), row),
            name: strings.get(builder, table, "name", row, name)?,
        };
        ids.push(builder.intern_native_symbol(symbol));
    }
    Ok(ids)
}

fn read_funcs(
    builder: &mut ProfileBuilder,
    raw: RawFuncs,
    resources: &[Option<LibId>],
    strings: &mut StringArray,
    sources: &[SourceId],
) -> Result<Vec<FuncId>, ReadError> {
    let table = TableReader::new("funcTable", raw.length, raw.name.len());
    let names = table.column("name", raw.name)?;
    let resource_column = table.optional("resource", raw.resource)?;
    let source_column = table.optional("source", raw.source)?;
    let file_names = table.optional("fileName", raw.file_name)?;
    let lines = table.optional("lineNumber", raw.line_number)?;
    let columns = table.optional("columnNumber", raw.column_number)?;
    let mut ids = Vec::with_capacity(table.length);
    for (row, &name) in names.iter().enumerate() {
        let resource = table.get_optional("resource", row, at(resource_column.as_ref(), row), resources)?;
        let mut source = table.get_optional("source", row, at(source_column.as_ref(), row), sources)?;
        if let Some(index) = at(file_names.as_ref(), row).filter(|index| index.get().is_some()) {
            let filename = strings.get(builder, table, "fileName", row, index)?;
            source = Some(builder.intern_source(Source { filename }));
        }
        let name = strings.get(builder, table, "name", row, name)?;
        let is = |column: Option<&Vec<Flag>>| at(column, row).is_some_and(Flag::is_set);
        let kind = match (is(raw.is_js.as_ref()), is(raw.relevant_for_js.as_ref())) {
            (true, _) => FuncKind::JavaScript,
            (false, true) => FuncKind::RelevantForJavaScript,
            (false, false) => FuncKind::Native,
        };
        ids.push(builder.intern_func(Func {
            name,
            lib: resource.flatten(),
            source,
            line: number_at(lines.as_ref(), row),
            column: number_at(columns.as_ref(), row),
            kind,
        }));
    }
    Ok(ids)
}

/// The categories of frames in a profile that has categories only on its stacks, as old ones do. Each
/// frame gets the category of its first stack.
fn frame_categories(frames: &RawFrames, stacks: &RawStacks) -> Option<Vec<Option<(RawIndex, RawIndex)>>> {
    let categories = stacks.category.as_ref().filter(|_| frames.category.is_none())?;
    let mut result = vec![None; frames.func.len()];
    for (row, (&frame, &category)) in stacks.frame.iter().zip(categories).enumerate() {
        let place = frame.get().and_then(|frame| result.get_mut(frame as usize));
        if let Some(place @ None) = place {
            *place = at(stacks.subcategory.as_ref(), row).map(|subcategory| (category, subcategory));
        }
    }
    Some(result)
}

/// A source location.
#[derive(Clone, Copy)]
struct Location {
    source: SourceId,
    line: Option<u32>,
    column: Option<u32>,
}

fn read_locations(raw: RawLocations, sources: &[SourceId]) -> Result<Vec<Location>, ReadError> {
    let table = TableReader::new("sourceLocationTable", raw.length, raw.source.len());
    let (lines, columns) = (table.column("line", raw.line)?, table.column("column", raw.column)?);
    let source_column = table.column("source", raw.source)?;
    let read = |(row, &source): (usize, &RawIndex)| {
        let source = table.get("source", row, source, sources)?;
        let (line, column) = (number_at(Some(&lines), row), number_at(Some(&columns), row));
        Ok(Location { source, line, column })
    };
    source_column.iter().enumerate().map(read).collect()
}

/// The tables that frames refer to.
struct FrameTargets<'a> {
    funcs: &'a [FuncId],
    libs: &'a [LibId],
    symbols: &'a [NativeSymbolId],
    locations: &'a [Location],
}

fn read_frames(
    builder: &mut ProfileBuilder,
    raw: RawFrames,
    inherited: Option<&[Option<(RawIndex, RawIndex)>]>,
    targets: &FrameTargets<'_>,
) -> Result<Vec<FrameId>, ReadError> {
    let table = TableReader::new("frameTable", raw.length, raw.func.len());
    let func_column = table.column("func", raw.func)?;
    let addresses = table.optional("address", raw.address)?;
    let depths = table.optional("inlineDepth", raw.inline_depth)?;
    let categories = table.optional("category", raw.category)?;
    let subcategories = table.optional("subcategory", raw.subcategory)?;
    let symbol_column = table.optional("nativeSymbol", raw.native_symbol)?;
    let lines = table.optional("line", raw.line)?;
    let columns = table.optional("column", raw.column)?;
    let located = table.optional("originalLocation", raw.original_location)?;
    let lib_column = table.optional("lib", raw.lib)?;
    let mut ids = Vec::with_capacity(table.length);
    for (row, &func) in func_column.iter().enumerate() {
        let own = (at(categories.as_ref(), row), at(subcategories.as_ref(), row));
        let inherited = inherited.and_then(|inherited| inherited.get(row).copied().flatten());
        let (category, subcategory) =
            inherited.map_or(own, |(category, subcategory)| (Some(category), Some(subcategory)));
        let mut func = table.get("func", row, func, targets.funcs)?;
        if lib_column.is_some() {
            let lib = table.get_optional("lib", row, at(lib_column.as_ref(), row), targets.libs)?;
            // Here, a function belongs to one lib.
            func = builder.intern_func(Func { lib, ..*builder.profile().func(func) });
        }
        let symbol = at(symbol_column.as_ref(), row);
        let symbol = table.get_optional("nativeSymbol", row, symbol, targets.symbols)?;
        let elsewhere = at(located.as_ref(), row);
        let elsewhere = table.get_optional("originalLocation", row, elsewhere, targets.locations)?;
        ids.push(builder.intern_frame(Frame {
            address: number_at(addresses.as_ref(), row),
            inline_depth:
                number_at(depths.as_ref(), row).and_then(|depth| depth.try_into().ok()).unwrap_or(0),
            category: read_category(builder, table, row, category, subcategory)?,
            func,
            native_symbol: symbol.filter(|&symbol| is_of_one_lib(builder.profile(), func, symbol)),
            source: elsewhere.map(|place| place.source),
            line: elsewhere.map_or(number_at(lines.as_ref(), row), |place| place.line),
            column: elsewhere.map_or(number_at(columns.as_ref(), row), |place| place.column),
        }));
    }
    Ok(ids)
}

/// Whether a symbol can belong to a function. A symbol of another lib cannot.
fn is_of_one_lib(profile: &Profile, func: FuncId, symbol: NativeSymbolId) -> bool {
    profile.func(func).lib == Some(profile.native_symbol(symbol).lib)
}

fn read_category(
    builder: &ProfileBuilder,
    table: TableReader,
    row: usize,
    category: Option<RawIndex>,
    subcategory: Option<RawIndex>,
) -> Result<Option<CategoryPair>, ReadError> {
    let Some(category) = category.filter(|category| category.get().is_some()) else { return Ok(None) };
    let categories = builder.profile().categories();
    if categories.is_empty() {
        // The list may be missing. Then the numbers refer to an importer's own categories.
        return Ok(None);
    }
    let known = category.get().map(|category| category as usize).filter(|index| *index < categories.len());
    let Some(known) = known.map(CategoryId::from_index) else {
        return Err(table.out_of_range("category", row, category, categories.len()));
    };
    let Some(number) = subcategory.and_then(RawIndex::get) else { return Ok(Some(known.into())) };
    let subcategory = builder.subcategory_of_file(known, number as usize).ok_or_else(|| {
        table.error("subcategory", Some(row), format!("is {number}, which its category does not have"))
    })?;
    Ok(Some(CategoryPair { category: known, subcategory }))
}

fn read_stacks(
    builder: &mut ProfileBuilder,
    raw: RawStacks,
    frames: &[FrameId],
) -> Result<Vec<StackId>, ReadError> {
    let table = TableReader::new("stackTable", raw.length, raw.frame.len());
    let frame_column = table.column("frame", raw.frame)?;
    let prefixes = table.optional("prefix", raw.prefix)?;
    let offsets = table.optional("prefixOffset", raw.prefix_offset)?;
    if prefixes.is_none() && offsets.is_none() && table.length > 0 {
        return Err(table.error("prefix", None, "is missing"));
    }
    let mut ids: Vec<StackId> = Vec::with_capacity(table.length);
    for (row, &frame) in frame_column.iter().enumerate() {
        let offset = number_at(offsets.as_ref(), row).filter(|&offset| offset > 0);
        let prefix = match offset {
            Some(offset) => Some(
                row.checked_sub(offset as usize).and_then(|prefix| ids.get(prefix)).copied().ok_or_else(
                    || table.error("prefixOffset", Some(row), format!("is {offset}, before the first row")),
                )?,
            ),
            // Later stacks are not in `ids` yet, so a parent that comes after its child is an error.
            None => table.get_optional("prefix", row, at(prefixes.as_ref(), row), &ids)?,
        };
        let frame = table.get("frame", row, frame, frames)?;
        let frame = called_unless_inlined(builder, prefix, frame);
        ids.push(builder.intern_stack(prefix, frame));
    }
    Ok(ids)
}

/// The frame, or a frame of a regular call if its parent is not the frame that it claims to be inlined into.
/// The name is kept and the inlining dropped, because the names are more important.
fn called_unless_inlined(builder: &mut ProfileBuilder, prefix: Option<StackId>, id: FrameId) -> FrameId {
    let profile = builder.profile();
    let frame = *profile.frame(id);
    let inlines = |parent: &Frame| {
        let (outer, inner) = (parent.inline_depth, frame.inline_depth);
        // Depths are written as a byte, so all greater depths are the maximum.
        let is_next = outer.checked_add(1) == Some(inner) || (outer, inner) == (255, 255);
        is_next && (parent.address, parent.native_symbol) == (frame.address, frame.native_symbol)
    };
    let parent = prefix.map(|prefix| profile.frame(profile.stack(prefix).frame));
    if frame.inline_depth == 0 || parent.is_some_and(inlines) {
        return id;
    }
    builder.intern_frame(Frame { inline_depth: 0, ..frame })
}
