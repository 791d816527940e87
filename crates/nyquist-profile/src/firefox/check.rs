//! Checks a document against every structural rule of the format that the front end relies on.
//!
//! The reader accepts everything that it can interpret. This checker accepts only documents that
//! profiler.firefox.com shows correctly. It supports versions 49 and 66, which are the written ones.

use std::collections::HashMap;
use std::io::{self, Read};

use flate2::read::MultiGzDecoder;
use serde_json::Value;

use super::breakpad_id::is_breakpad_id;
use super::check_tables::{TableSizes, check_code_tables};
use super::check_threads::{check_counters, check_threads};
use super::checker::{Checker, Context, Violation};
use crate::category::CategoryColor;
use crate::marker::{MarkerDisplay, MarkerFormat, MarkerSchema};

/// All violated rules of a document, but only the first one per column. A valid profile has none.
pub fn check(profile: &Value) -> Vec<Violation> {
    let mut checker = Checker::default();
    checker.check(profile);
    checker.violations
}

/// The same as [`check`], for a file's bytes, compressed with gzip or not.
///
/// # Errors
/// If the bytes are neither gzip nor JSON.
pub fn check_bytes(bytes: &[u8]) -> io::Result<Vec<Violation>> {
    let mut json = Vec::new();
    if bytes.starts_with(&[0x1f, 0x8b]) {
        MultiGzDecoder::new(bytes).read_to_end(&mut json)?;
    } else {
        json.extend_from_slice(bytes);
    }
    Ok(check(&serde_json::from_slice(&json)?))
}

impl Checker {
    fn check(&mut self, profile: &Value) {
        let version = profile.get("meta").and_then(|meta| meta.get("preprocessedProfileVersion"));
        let is_v66 = match version.and_then(Value::as_u64) {
            Some(49) => false,
            Some(66) => true,
            _ => return self.violation("meta.preprocessedProfileVersion", "is neither 49 nor 66"),
        };
        let meta = &profile["meta"];
        self.check_meta(profile);
        let categories = self.check_categories(meta);
        let schemas = self.check_marker_schemas(meta, is_v66);
        let libs = self.check_libs(profile);
        let context = Context { is_v66, categories, schemas, libs };
        let shared = is_v66.then(|| self.check_shared(profile, &context));
        self.rule(is_v66 || profile.get("shared").is_none(), "shared", "does not exist in version 49");
        check_threads(self, profile, &context, shared.as_ref());
        check_counters(self, profile, &context);
    }

    fn check_shared(&mut self, profile: &Value, context: &Context<'_>) -> TableSizes {
        let Some(shared) = profile.get("shared") else {
            self.violation("shared", "is missing");
            return TableSizes::default();
        };
        check_code_tables(self, "shared", shared, context)
    }

    fn check_meta(&mut self, profile: &Value) {
        let meta = &profile["meta"];
        self.members(
            "meta",
            meta,
            &[
                ("version", "a number", Value::is_u64),
                ("interval", "a positive number", |value| {
                    value.as_f64().is_some_and(|interval| interval > 0.0)
                }),
                ("startTime", "a number", Value::is_number),
                ("processType", "a number", Value::is_u64),
                ("product", "a string", Value::is_string),
                ("stackwalk", "a number", Value::is_u64),
                ("symbolicated", "a boolean", Value::is_boolean),
            ],
        );
        self.check_sample_units(profile);
        let libs = profile["libs"].as_array().map_or(&[][..], Vec::as_slice);
        let can_ask = libs.iter().any(|lib| symbolication_key(lib).is_some());
        self.rule(
            meta["symbolicated"] != false || can_ask || meta["symbolicationNotSupported"] == true,
            "meta.symbolicationNotSupported",
            "is not set, but there is no lib that symbols could be requested for",
        );
    }

    fn check_sample_units(&mut self, profile: &Value) {
        let threads = profile["threads"].as_array().map_or(&[][..], Vec::as_slice);
        let has_deltas = threads.iter().any(|thread| thread["samples"].get("threadCPUDelta").is_some());
        let units = profile["meta"].get("sampleUnits");
        let is_known = units.is_some_and(|units| {
            units["time"] == "ms"
                && units["eventDelay"] == "ms"
                && (units["threadCPUDelta"] == "ns" || units["threadCPUDelta"] == "µs")
        });
        self.rule(
            is_known || (!has_deltas && units.is_none()),
            "meta.sampleUnits",
            "does not say ms and ns or µs",
        );
    }

    fn check_categories(&mut self, meta: &Value) -> Vec<usize> {
        let categories = self.array("meta", meta, "categories");
        for (index, category) in categories.iter().enumerate() {
            let path = format!("meta.categories[{index}]");
            self.members(
                &path,
                category,
                &[
                    ("name", "a string", Value::is_string),
                    ("color", "a colour of categories", |color| {
                        color.as_str().is_some_and(|color| CategoryColor::from_name(color).is_some())
                    }),
                    ("subcategories", "a list of strings that begins with \"Other\"", |names| {
                        names
                            .as_array()
                            .is_some_and(|names| names.first().is_some_and(|name| name == "Other"))
                    }),
                ],
            );
        }
        let has_grey = categories.iter().any(|category| category["color"] == "grey");
        self.rule(has_grey, "meta.categories", "has no grey category");
        let count = |category: &Value| category["subcategories"].as_array().map_or(0, Vec::len);
        categories.iter().map(count).collect()
    }

    fn check_libs(&mut self, profile: &Value) -> usize {
        let libs = self.array("", profile, "libs");
        let mut keys = HashMap::new();
        for (index, lib) in libs.iter().enumerate() {
            let path = format!("libs[{index}]");
            let text: fn(&Value) -> bool = Value::is_string;
            let members =
                ["arch", "name", "path", "debugName", "debugPath"].map(|name| (name, "a string", text));
            self.members(&path, lib, &members);
            self.members(
                &path,
                lib,
                &[
                    ("breakpadId", "33 hex digits or more, or empty", |id| {
                        id.as_str().is_some_and(is_breakpad_id)
                    }),
                    ("codeId", "a string or null", |id| id.is_string() || id.is_null()),
                ],
            );
            let has_slash = lib["debugName"].as_str().is_some_and(|name| name.contains('/'));
            self.rule(!has_slash, format!("{path}.debugName"), "has a slash, at which its key is split");
            if let Some(first) = symbolication_key(lib).and_then(|key| keys.insert(key, index)) {
                self.violation(path, format!("has the debugName and breakpadId of libs[{first}]"));
            }
        }
        libs.len()
    }

    fn check_marker_schemas<'a>(
        &mut self,
        meta: &'a Value,
        is_v66: bool,
    ) -> HashMap<&'a str, HashMap<&'a str, MarkerFormat>> {
        let mut schemas = HashMap::new();
        for (index, schema) in self.array("meta", meta, "markerSchema").iter().enumerate() {
            let path = format!("meta.markerSchema[{index}]");
            self.members(
                &path,
                schema,
                &[
                    ("name", "a name of its own", |name| {
                        name.as_str().is_some_and(|name| {
                            !name.is_empty() && !MarkerSchema::RESERVED_NAMES.contains(&name)
                        })
                    }),
                    ("display", "a list of places", |places| {
                        let is_known =
                            |place: &Value| place.as_str().and_then(MarkerDisplay::from_name).is_some();
                        places.as_array().is_some_and(|places| places.iter().all(is_known))
                    }),
                ],
            );
            let fields = self.check_fields(&path, schema, if is_v66 { "fields" } else { "data" }, is_v66);
            if schemas.insert(schema["name"].as_str().unwrap_or_default(), fields).is_some() {
                self.violation(path, "has the name of another schema");
            }
        }
        schemas
    }

    fn check_fields<'a>(
        &mut self,
        path: &str,
        schema: &'a Value,
        member: &str,
        is_v66: bool,
    ) -> HashMap<&'a str, MarkerFormat> {
        let mut fields = HashMap::new();
        for (index, field) in self.array(path, schema, member).iter().enumerate() {
            let is_text = !is_v66 && field["label"].is_string() && field["value"].is_string();
            let format = field["format"].as_str().and_then(MarkerFormat::from_name);
            match (field["key"].as_str(), format) {
                (Some(key), Some(format)) => drop(fields.insert(key, format)),
                _ => self.rule(is_text, format!("{path}.{member}[{index}]"), "has no key and known format"),
            }
        }
        fields
    }
}

/// The key for requesting a lib's symbols, if it has one.
fn symbolication_key(lib: &Value) -> Option<(&str, &str)> {
    let (name, id) = (lib["debugName"].as_str()?, lib["breakpadId"].as_str()?);
    (!name.is_empty() && !id.is_empty()).then_some((name, id))
}
