//! Writes the code tables: stacks, frames, functions, resources, native symbols, sources and strings.

use std::io::Write;

use super::FormatVersion;
use super::json::JsonWriter;
use super::subset::{Subset, int32, written_address, written_symbol};
use super::write_meta::default_category;
use crate::category::CategoryPair;
use crate::code::{Frame, FuncKind};
use crate::id::LibId;
use crate::profile::Profile;

/// The resource type of libs.
const RESOURCE_TYPE_LIBRARY: u64 = 1;

/// Writes the members `stackTable` to `nativeSymbols` of the shared tables (version 66) or of a thread
/// (version 49).
pub(super) fn write_code_tables<W: Write>(
    json: &mut JsonWriter<W>,
    profile: &Profile,
    subset: &Subset<'_>,
    version: FormatVersion,
) {
    json.key("stackTable");
    match version {
        FormatVersion::V49 => write_stacks_v49(json, profile, subset),
        FormatVersion::V66 => write_stacks_v66(json, subset),
    }
    json.key("frameTable");
    write_frames(json, profile, subset, version);
    json.key("funcTable");
    write_funcs(json, profile, subset, version);
    json.key("resourceTable");
    write_resources(json, subset);
    json.key("nativeSymbols");
    write_native_symbols(json, profile, subset);
}

fn write_stacks_v49<W: Write>(json: &mut JsonWriter<W>, profile: &Profile, subset: &Subset<'_>) {
    let categories = subset.stack_categories(default_category(profile));
    json.object(|json| {
        json.column("frame", subset.stack_rows(), |json, (frame, _)| json.integer(frame.into()));
        json.column("prefix", subset.stack_rows(), |json, (_, prefix)| json.optional(prefix));
        json.column("category", &categories, |json, pair| json.optional(category_number(*pair)));
        json.column("subcategory", &categories, |json, pair| json.integer(subcategory_number(*pair)));
        json.key("length").integer(categories.len() as u64);
    });
}

fn write_stacks_v66<W: Write>(json: &mut JsonWriter<W>, subset: &Subset<'_>) {
    json.object(|json| {
        json.column("frame", subset.stack_rows(), |json, (frame, _)| json.integer(frame.into()));
        json.column("prefixOffset", (0..).zip(subset.stack_rows()), |json, (stack, (_, prefix))| {
            json.integer(prefix.map_or(0, |prefix| u64::from(u32::saturating_sub(stack, prefix))));
        });
        json.key("length").integer(subset.stack_count() as u64);
    });
}

fn write_frames<W: Write>(
    json: &mut JsonWriter<W>,
    profile: &Profile,
    subset: &Subset<'_>,
    version: FormatVersion,
) {
    let length = subset.frame_count();
    let frames = || subset.frame_rows();
    json.object(|json| {
        json.column("address", frames(), |json, frame| json.or_minus_one(written_address(profile, &frame)));
        json.column("inlineDepth", frames(), |json, frame| {
            json.integer(frame.inline_depth.min(u16::from(u8::MAX)).into());
        });
        json.column("category", frames(), |json, frame| {
            json.optional(frame.category.and_then(category_number));
        });
        json.column("subcategory", frames(), |json, frame| {
            json.optional(frame.category.map(subcategory_number));
        });
        json.column("func", frames(), |json, frame| json.integer(subset.func(&frame).into()));
        json.column("nativeSymbol", frames(), |json, frame| {
            json.optional(written_symbol(profile, &frame).map(|id| subset.native_symbol(id)));
        });
        json.null_column("innerWindowID", length);
        // A line refers to the function's file; in version 49 there is a function for each file.
        let is_v49 = version == FormatVersion::V49;
        let own = |frame: &Frame, number| int32(number).filter(|_| is_v49 || frame.source.is_none());
        json.column("line", frames(), |json, frame| json.optional(own(&frame, frame.line)));
        json.column("column", frames(), |json, frame| json.optional(own(&frame, frame.column)));
        match version {
            FormatVersion::V49 => json.null_column("implementation", length),
            FormatVersion::V66 => write_locations(json, frames()),
        }
        json.key("length").integer(length as u64);
    });
}

/// The locations in other files than the function's own: indexes into `sourceLocationTable`, in the order
/// of the frames.
fn write_locations<W: Write>(json: &mut JsonWriter<W>, frames: impl Iterator<Item = Frame>) {
    let mut count = 0_u32;
    json.column("originalLocation", frames, |json, frame| {
        json.optional(frame.source.map(|_| count));
        count += u32::from(frame.source.is_some());
    });
}

fn write_funcs<W: Write>(
    json: &mut JsonWriter<W>,
    profile: &Profile,
    subset: &Subset<'_>,
    version: FormatVersion,
) {
    let length = subset.funcs().len();
    let funcs = || subset.funcs();
    json.object(|json| {
        json.column("name", funcs(), |json, func| json.integer(subset.string(func.name).into()));
        for (key, kind) in
            [("isJS", FuncKind::JavaScript), ("relevantForJS", FuncKind::RelevantForJavaScript)]
        {
            json.column(key, funcs(), |json, func| json.boolean(func.kind == kind));
        }
        json.column("resource", funcs(), |json, func| {
            json.or_minus_one(func.lib.map(|lib| subset.resource(lib)));
        });
        match version {
            FormatVersion::V49 => json.column("fileName", funcs(), |json, func| {
                json.optional(func.source.map(|id| subset.string(profile.source(id).filename)));
            }),
            FormatVersion::V66 => json.column("source", funcs(), |json, func| {
                json.optional(func.source.map(|id| subset.source(id)));
            }),
        }
        json.column("lineNumber", funcs(), |json, func| json.optional(int32(func.line)));
        json.column("columnNumber", funcs(), |json, func| json.optional(int32(func.column)));
        if version == FormatVersion::V66 {
            json.null_column("originalLocation", length);
        }
        json.key("length").integer(length as u64);
    });
}

/// A resource for each lib of a function or a native symbol. Its name is a string index, after the
/// profile's own strings.
fn write_resources<W: Write>(json: &mut JsonWriter<W>, subset: &Subset<'_>) {
    let length = subset.libs().len();
    let first_name = subset.strings().len() as u64;
    json.object(|json| {
        json.column("lib", subset.libs(), |json, lib| json.integer(lib.index() as u64));
        json.column("name", 0..length, |json, resource| json.integer(first_name + resource as u64));
        json.null_column("host", length);
        json.column("type", 0..length, |json, _| json.integer(RESOURCE_TYPE_LIBRARY));
        json.key("length").integer(length as u64);
    });
}

fn write_native_symbols<W: Write>(json: &mut JsonWriter<W>, profile: &Profile, subset: &Subset<'_>) {
    let symbols = || subset.native_symbols().map(|id| profile.native_symbol(id));
    json.object(|json| {
        json.column("libIndex", symbols(), |json, symbol| json.integer(symbol.lib.index() as u64));
        json.column("address", symbols(), |json, symbol| json.integer(symbol.address.into()));
        json.column("name", symbols(), |json, symbol| json.integer(subset.string(symbol.name).into()));
        json.column("functionSize", symbols(), |json, symbol| json.optional(int32(symbol.size)));
        json.key("length").integer(symbols().len() as u64);
    });
}

/// Writes the members `sources` and `sourceLocationTable` of the shared tables.
pub(super) fn write_sources<W: Write>(json: &mut JsonWriter<W>, profile: &Profile, subset: &Subset<'_>) {
    let length = subset.sources().len();
    json.key("sources").object(|json| {
        json.null_column("id", length);
        json.column("filename", subset.sources(), |json, id| {
            json.integer(subset.string(profile.source(id).filename).into());
        });
        json.constant_column("startLine", b",1", length);
        json.constant_column("startColumn", b",1", length);
        json.null_column("sourceMapURL", length);
        json.null_column("content", length);
        json.key("length").integer(length as u64);
    });
    let located = || subset.frame_rows().filter_map(|frame| Some((frame.source?, frame)));
    json.key("sourceLocationTable").object(|json| {
        json.column("source", located(), |json, (source, _)| json.integer(subset.source(source).into()));
        json.column("line", located(), |json, (_, frame)| json.optional(int32(frame.line)));
        json.column("column", located(), |json, (_, frame)| json.optional(int32(frame.column)));
        json.key("length").integer(located().count() as u64);
    });
}

/// Writes the member `stringArray`: the strings of the part, then the names of its resources.
pub(super) fn write_string_array<W: Write>(json: &mut JsonWriter<W>, profile: &Profile, subset: &Subset<'_>) {
    let strings = subset.strings().map(|id| profile.string(id));
    let resources = subset.libs().map(|id: LibId| profile.lib(id).name.as_str());
    json.column("stringArray", strings.chain(resources), JsonWriter::string);
}

/// The front end stores categories in bytes; greater numbers become the default category.
fn category_number(pair: CategoryPair) -> Option<u8> {
    u8::try_from(pair.category.index()).ok()
}

fn subcategory_number(pair: CategoryPair) -> u64 {
    pair.subcategory.into()
}
