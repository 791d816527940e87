//! The description of the rows: tables for the reference, and types for the viewer's page.

use std::fmt::Write as _;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use super::{
    CallSiteRow, CounterRow, FunctionRow, GroupRow, InstructionRow, LibRow, LineRow, MarkerRow, NeighborRow,
    NodeRow, PathNodeRow, ProcessRow, SourceLineRow, Summary, ThreadRow, TimelinePart, WaitPlaceRow, WaitRow,
    WaitStack, WaitThread, Whole,
};

/// The JSON schemas of all rows, in the order of the reference.
fn rows() -> Vec<Value> {
    vec![
        of::<Whole>(),
        of::<Summary<'_>>(),
        of::<CounterRow<'_>>(),
        of::<FunctionRow<'_>>(),
        of::<NeighborRow<'_>>(),
        of::<CallSiteRow<'_>>(),
        of::<NodeRow<'_>>(),
        of::<PathNodeRow<'_>>(),
        of::<LineRow<'_>>(),
        of::<SourceLineRow<'_>>(),
        of::<InstructionRow<'_>>(),
        of::<LibRow<'_>>(),
        of::<GroupRow<'_>>(),
        of::<ThreadRow<'_>>(),
        of::<ProcessRow<'_>>(),
        of::<MarkerRow<'_>>(),
        of::<WaitRow<'_>>(),
        of::<WaitThread<'_>>(),
        of::<WaitPlaceRow<'_>>(),
        of::<WaitStack<'_>>(),
        of::<TimelinePart<'_>>(),
    ]
}

fn of<T: JsonSchema>() -> Value {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>().to_value()
}

/// A section with a table for each row.
pub fn reference() -> String {
    let mut text = String::new();
    for row in rows() {
        let _ =
            write!(text, "\n## {}\n\n{}.\n\n| member | meaning |\n|---|---|\n", title(&row), meaning(&row));
        for (name, member) in members(&row) {
            let items = match item_type(member) {
                Some(item) => format!(", `{name}[]` of `{item}`"),
                None => String::new(),
            };
            let _ = writeln!(text, "| `{name}`{items} | {} |", meaning(member));
        }
    }
    text
}

/// The types of the rows for TypeScript.
pub fn typescript() -> String {
    let mut text = "// The rows of answers, generated from crates/nyquist-analysis/src/schema.\n".to_owned();
    for row in rows() {
        let _ = writeln!(text, "\n/** {} */\nexport interface {} {{", meaning(&row), title(&row));
        let required: Vec<_> =
            row["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        for (name, member) in members(&row) {
            let mark = if required.contains(&name.as_str()) { "" } else { "?" };
            let _ = writeln!(text, "  /** {} */\n  {name}{mark}: {};", meaning(member), type_of(member));
        }
        text.push_str("}\n");
    }
    text
}

fn title(row: &Value) -> &str {
    row["title"].as_str().unwrap_or_default()
}

fn meaning(schema: &Value) -> String {
    schema["description"].as_str().unwrap_or_default().replace('\n', " ")
}

fn members(row: &Value) -> impl Iterator<Item = (&String, &Value)> {
    row["properties"].as_object().into_iter().flat_map(Map::iter)
}

/// The row that the items of a list are.
fn item_type(member: &Value) -> Option<&str> {
    member["items"]["$ref"].as_str()?.strip_prefix("#/$defs/")
}

fn type_of(schema: &Value) -> String {
    let name = |name: &str| match name {
        "integer" => "number".to_owned(),
        "array" => format!("{}[]", type_of(&schema["items"])),
        other => other.to_owned(),
    };
    match (&schema["$ref"], &schema["type"]) {
        (Value::String(target), _) => target.trim_start_matches("#/$defs/").to_owned(),
        (_, Value::String(only)) => name(only),
        (_, Value::Array(several)) => {
            several.iter().filter_map(Value::as_str).map(name).collect::<Vec<_>>().join(" | ")
        }
        _ => "unknown".to_owned(),
    }
}
