//! Checks the code tables, which are shared or belong to one thread.

use std::collections::HashMap;
use std::ops::Range;

use serde_json::Value;

use super::checker::{Checker, Context};

/// A table: an object with columns of length `length`.
pub(super) struct CheckedTable<'a> {
    path: String,
    columns: &'a Value,
    pub(super) length: usize,
}

impl<'a> CheckedTable<'a> {
    /// The member `name` of `object`.
    pub(super) fn new(checker: &mut Checker, parent: &str, object: &'a Value, name: &str) -> Self {
        let path = format!("{parent}.{name}");
        let length = object[name]["length"].as_u64();
        checker.rule(length.is_some(), format!("{path}.length"), "is missing");
        Self { path, columns: &object[name], length: length.unwrap_or(0) as usize }
    }

    /// Checks that a column exists and has the table's length, and that `accepts` accepts all its values.
    pub(super) fn column(
        &self,
        checker: &mut Checker,
        name: &str,
        expected: &str,
        accepts: impl Fn(usize, &Value) -> bool,
    ) {
        let path = format!("{}.{name}", self.path);
        let Some(column) = self.columns.get(name).and_then(Value::as_array) else {
            return checker.violation(path, "is not a column");
        };
        if column.len() != self.length {
            return checker
                .violation(path, format!("has {} rows, but the table has {}", column.len(), self.length));
        }
        if let Some((row, value)) = column.iter().enumerate().find(|(row, value)| !accepts(*row, value)) {
            checker.violation(format!("{path}[{row}]"), format!("is {value}, not {expected}"));
        }
    }

    /// The same as [`column`](Self::column), for indexes into a table of `target` rows.
    pub(super) fn indexes(&self, checker: &mut Checker, name: &str, target: usize) {
        self.column(checker, name, &format!("an index below {target}"), |_, value| is_index(value, target));
    }

    /// The same as [`indexes`](Self::indexes), but null is permitted.
    pub(super) fn optional_indexes(&self, checker: &mut Checker, name: &str, target: usize) {
        self.column(checker, name, &format!("null or an index below {target}"), |_, value| {
            value.is_null() || is_index(value, target)
        });
    }

    /// The rows that any column actually has; the table's length may claim more.
    fn rows_there(&self) -> Range<usize> {
        let columns = self.columns.as_object().into_iter().flat_map(|columns| columns.values());
        let longest = columns.filter_map(Value::as_array).map(Vec::len).max();
        0..self.length.min(longest.unwrap_or(0))
    }

    /// Checks a rule for all rows. Reports the first row that violates it.
    pub(super) fn rows(&self, checker: &mut Checker, problem: &str, holds: impl Fn(usize) -> bool) {
        if let Some(row) = self.rows_there().find(|&row| !holds(row)) {
            checker.violation(format!("{}[{row}]", self.path), problem);
        }
    }

    /// The value in a row of a column; null if it is missing.
    pub(super) fn at(&self, column: &str, row: usize) -> &'a Value {
        &self.columns[column][row]
    }

    /// Whether a column, or another member, of that name exists.
    pub(super) fn has(&self, name: &str) -> bool {
        self.columns.get(name).is_some_and(|value| !value.is_null())
    }

    fn index_at(&self, column: &str, row: usize) -> Option<usize> {
        self.at(column, row).as_u64().map(|index| index as usize)
    }
}

fn is_index(value: &Value, target: usize) -> bool {
    value.as_u64().is_some_and(|index| index < target as u64)
}

fn is_int32(value: &Value, least: i64) -> bool {
    value.as_i64().is_some_and(|value| value >= least && i32::try_from(value).is_ok())
}

fn is_line(value: &Value) -> bool {
    value.is_null() || is_int32(value, 0)
}

/// The numbers of rows of the tables that threads refer to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TableSizes {
    pub(super) stacks: usize,
    pub(super) strings: usize,
}

/// Checks the tables in `object`: `shared` in version 66, a thread in version 49.
pub(super) fn check_code_tables(
    checker: &mut Checker,
    path: &str,
    object: &Value,
    context: &Context<'_>,
) -> TableSizes {
    let mut table = |name| CheckedTable::new(checker, path, object, name);
    let (stacks, frames, funcs) = (table("stackTable"), table("frameTable"), table("funcTable"));
    let (resources, symbols) = (table("resourceTable"), table("nativeSymbols"));
    let strings = checker.array(path, object, "stringArray");
    checker.rule(
        strings.iter().all(Value::is_string),
        format!("{path}.stringArray"),
        "has a value that is not a string",
    );
    let strings = strings.len();
    let [sources, locations] =
        if context.is_v66 { check_sources(checker, path, object, strings) } else { [0; 2] };

    check_resources(checker, &resources, strings, context.libs);
    check_native_symbols(checker, &symbols, strings, context.libs);
    check_funcs(checker, &funcs, [strings, resources.length, sources], context.is_v66);
    check_frames(checker, &frames, [funcs.length, symbols.length, locations], context);
    check_frame_libs(checker, &frames, &funcs, &resources, &symbols);
    check_stacks(checker, &stacks, frames.length, context);
    check_inlining(checker, &stacks, &frames, context.is_v66);
    TableSizes { stacks: stacks.length, strings }
}

/// The numbers of sources and of source locations.
fn check_sources(checker: &mut Checker, path: &str, shared: &Value, strings: usize) -> [usize; 2] {
    let sources = CheckedTable::new(checker, path, shared, "sources");
    let is_text = |_: usize, value: &Value| value.is_null() || value.is_string();
    sources.column(checker, "id", "a string or null", is_text);
    sources.indexes(checker, "filename", strings);
    sources.column(checker, "startLine", "a line from 1", |_, value| is_int32(value, 1));
    sources.column(checker, "startColumn", "a column from 1", |_, value| is_int32(value, 1));
    sources.optional_indexes(checker, "sourceMapURL", strings);
    sources.column(checker, "content", "a string or null", is_text);
    let locations = CheckedTable::new(checker, path, shared, "sourceLocationTable");
    locations.indexes(checker, "source", sources.length);
    locations.column(checker, "line", "a line", |_, value| is_line(value));
    locations.column(checker, "column", "a column", |_, value| is_line(value));
    [sources.length, locations.length]
}

fn check_resources(checker: &mut Checker, resources: &CheckedTable<'_>, strings: usize, libs: usize) {
    resources.optional_indexes(checker, "lib", libs);
    resources.indexes(checker, "name", strings);
    resources.optional_indexes(checker, "host", strings);
    resources.column(checker, "type", "a type", |_, value| is_int32(value, 0));
    resources.rows(checker, "is a library without a lib", |row| {
        *resources.at("type", row) != 1 || !resources.at("lib", row).is_null()
    });
}

fn check_native_symbols(checker: &mut Checker, symbols: &CheckedTable<'_>, strings: usize, libs: usize) {
    symbols.indexes(checker, "libIndex", libs);
    symbols.column(checker, "address", "a 32-bit address", |_, value| is_int32(value, 0));
    symbols.indexes(checker, "name", strings);
    symbols.column(checker, "functionSize", "a size or null", |_, value| is_line(value));
}

fn check_funcs(
    checker: &mut Checker,
    funcs: &CheckedTable<'_>,
    [strings, resources, sources]: [usize; 3],
    is_v66: bool,
) {
    funcs.indexes(checker, "name", strings);
    funcs.column(checker, "isJS", "a boolean", |_, value| value.is_boolean());
    funcs.column(checker, "relevantForJS", "a boolean", |_, value| value.is_boolean());
    funcs
        .column(checker, "resource", "an index or -1", |_, value| *value == -1 || is_index(value, resources));
    funcs.column(checker, "lineNumber", "a line or null", |_, value| is_line(value));
    funcs.column(checker, "columnNumber", "a column or null", |_, value| is_line(value));
    if is_v66 {
        funcs.optional_indexes(checker, "source", sources);
        funcs.optional_indexes(checker, "originalLocation", 0);
    } else {
        funcs.optional_indexes(checker, "fileName", strings);
    }
}

fn check_frames(
    checker: &mut Checker,
    frames: &CheckedTable<'_>,
    [funcs, symbols, locations]: [usize; 3],
    context: &Context<'_>,
) {
    frames.column(checker, "address", "a 31-bit address or -1", |_, value| is_int32(value, -1));
    frames.column(checker, "inlineDepth", "a byte", |_, value| is_index(value, 256));
    frames.indexes(checker, "func", funcs);
    frames.optional_indexes(checker, "nativeSymbol", symbols);
    frames.column(checker, "innerWindowID", "a number or null", |_, value| is_line(value));
    frames.column(checker, "line", "a line or null", |_, value| is_line(value));
    frames.column(checker, "column", "a column or null", |_, value| is_line(value));
    let other = if context.is_v66 { "originalLocation" } else { "implementation" };
    frames.optional_indexes(checker, other, locations);
    check_category_columns(checker, frames, &context.categories, true);
}

/// Categories are bytes. A subcategory must belong to its category, and exist if there is a category.
fn check_category_columns(
    checker: &mut Checker,
    table: &CheckedTable<'_>,
    categories: &[usize],
    is_optional: bool,
) {
    table.column(checker, "category", "a category", |_, value| {
        (is_optional && value.is_null()) || is_index(value, categories.len().min(256))
    });
    table.column(checker, "subcategory", "a subcategory of its category", |row, value| {
        let count = table.index_at("category", row).and_then(|category| categories.get(category));
        count.map_or(is_optional && is_line(value), |&count| is_index(value, count))
    });
}

/// An address needs a lib. Frames with and without a lib may not share a function, because symbolication
/// would rename it. A symbol must be in the lib of its frame.
fn check_frame_libs(
    checker: &mut Checker,
    frames: &CheckedTable<'_>,
    funcs: &CheckedTable<'_>,
    resources: &CheckedTable<'_>,
    symbols: &CheckedTable<'_>,
) {
    let lib_of = |row: usize| {
        let resource = funcs.index_at("resource", frames.index_at("func", row)?)?;
        resources.index_at("lib", resource)
    };
    let has_address = |row: usize| frames.at("address", row).as_i64().is_some_and(|address| address >= 0);
    frames.rows(checker, "has an address, but its func has no lib", |row| {
        !has_address(row) || lib_of(row).is_some()
    });
    frames.rows(checker, "has a nativeSymbol of another lib than its func", |row| {
        let symbol = frames.index_at("nativeSymbol", row);
        symbol.is_none_or(|symbol| symbols.index_at("libIndex", symbol) == lib_of(row))
    });
    let mut first_with: HashMap<usize, bool> = HashMap::new();
    for row in frames.rows_there() {
        let Some(func) = frames.index_at("func", row) else { continue };
        if *first_with.entry(func).or_insert_with(|| has_address(row)) != has_address(row) {
            let problem = "shares its func with frames that have an address, or those that have none";
            return checker.violation(format!("{}[{row}]", frames.path), problem);
        }
    }
}

fn check_stacks(checker: &mut Checker, stacks: &CheckedTable<'_>, frames: usize, context: &Context<'_>) {
    stacks.indexes(checker, "frame", frames);
    if context.is_v66 {
        stacks.column(checker, "prefixOffset", "an offset to an earlier row, or 0", |row, value| {
            is_index(value, row + 1)
        });
    } else {
        stacks.column(checker, "prefix", "an earlier row, or null", |row, value| {
            value.is_null() || is_index(value, row)
        });
        check_category_columns(checker, stacks, &context.categories, false);
    }
}

/// An inlined frame must be the child of the frame that it is inlined into, with the same address and symbol.
fn check_inlining(checker: &mut Checker, stacks: &CheckedTable<'_>, frames: &CheckedTable<'_>, is_v66: bool) {
    let prefix = |row: usize| {
        if is_v66 {
            stacks
                .index_at("prefixOffset", row)
                .filter(|&offset| offset > 0)
                .and_then(|offset| row.checked_sub(offset))
        } else {
            stacks.index_at("prefix", row)
        }
    };
    let depth = |frame: usize| frames.index_at("inlineDepth", frame).unwrap_or(0);
    stacks.rows(checker, "is an inlined frame that its parent does not inline", |row| {
        let Some(frame) = stacks.index_at("frame", row).filter(|&frame| depth(frame) > 0) else {
            return true;
        };
        let parent = prefix(row).and_then(|prefix| stacks.index_at("frame", prefix));
        parent.is_some_and(|parent| {
            let is_next = depth(parent) + 1 == depth(frame) || (depth(parent), depth(frame)) == (255, 255);
            let is_same = |column| frames.at(column, parent) == frames.at(column, frame);
            is_next && is_same("address") && is_same("nativeSymbol")
        })
    });
}
