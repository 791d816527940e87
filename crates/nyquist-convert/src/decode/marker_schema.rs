//! The kinds of markers of a marker file, and which schema a marker's values need.

use crate::event::{FieldValue, MarkerCategory, Pid};
use nyquist_profile::{CategoryColor, MarkerDisplay, MarkerField, MarkerFormat, MarkerSchema};
use std::fmt::Write as _;
use std::sync::Arc;

/// The most schemas of one kind whose fields have values of different types from marker to marker.
const MAX_VARIANTS: usize = 4;

/// The texts of a kind of marker, as its record has them. An empty one is left out.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KindTexts<'a> {
    /// The name of the schema.
    pub(crate) name: &'a str,
    /// The name of markers that have none of their own.
    pub(crate) marker_name: &'a str,
    /// The track of its markers.
    pub(crate) track: &'a str,
    pub(crate) category: &'a str,
    pub(crate) description: &'a str,
    pub(crate) table_label: &'a str,
}

/// The texts of a field of a kind of marker.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FieldTexts<'a> {
    pub(crate) key: &'a str,
    pub(crate) label: &'a str,
    /// The name of its format. Without one, the values decide.
    pub(crate) format: &'a str,
}

impl FieldTexts<'_> {
    fn is_flow(&self) -> bool {
        let format = MarkerFormat::from_name(self.format);
        matches!(format, Some(MarkerFormat::FlowId | MarkerFormat::TerminatingFlowId))
    }
}

/// A kind of marker as its file defines it.
#[derive(Debug)]
pub(crate) struct MarkerKind {
    /// The name of markers that have none of their own.
    pub(crate) marker_name: Arc<str>,
    /// The track of its markers, if it is not the thread's.
    pub(crate) track: Option<Arc<str>>,
    pub(crate) category: Option<MarkerCategory>,
    schema: MarkerSchema,
    /// Which fields take their formats from their values.
    open: Vec<bool>,
    variants: Vec<Arc<MarkerSchema>>,
}

impl MarkerKind {
    /// A kind from its texts.
    pub(crate) fn new(texts: KindTexts<'_>, fields: &[FieldTexts<'_>]) -> Self {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let field = |texts: &FieldTexts<'_>| MarkerField {
            key: texts.key.to_owned(),
            label: some(texts.label),
            format: MarkerFormat::from_name(texts.format).unwrap_or(MarkerFormat::String),
        };
        let own_label = some(texts.table_label);
        let chart_label = own_label.clone().or_else(|| label_of_fields(own_fields(fields)));
        let table_label = own_label.or_else(|| label_of_fields(fields));
        Self {
            marker_name: texts.marker_name.into(),
            track: some(texts.track).map(Into::into),
            category: some(texts.category)
                .map(|name| MarkerCategory { color: color_of(&name), name: name.into() }),
            schema: MarkerSchema {
                name: texts.name.to_owned(),
                display: vec![MarkerDisplay::Chart, MarkerDisplay::Table, MarkerDisplay::TimelineOverview],
                fields: fields.iter().map(field).collect(),
                description: some(texts.description),
                tooltip_label: Some("{marker.name}".to_owned()),
                // Without its own label, a bar is empty.
                chart_label: Some(chart_label.unwrap_or_else(|| "{marker.name}".to_owned())),
                table_label,
                ..MarkerSchema::default()
            },
            open: fields.iter().map(|field| MarkerFormat::from_name(field.format).is_none()).collect(),
            variants: Vec::new(),
        }
    }

    /// The number of fields.
    pub(crate) fn fields(&self) -> usize {
        self.schema.fields.len()
    }

    /// Turns numbers of flows into texts that are unique in the profile. 0 means no flow.
    pub(crate) fn name_flows(&self, pid: Pid, values: &mut [FieldValue]) {
        for (field, value) in self.schema.fields.iter().zip(values) {
            if let (MarkerFormat::FlowId | MarkerFormat::TerminatingFlowId, FieldValue::Integer(id)) =
                (field.format, &value)
            {
                *value = match id {
                    0 => FieldValue::Missing,
                    id => FieldValue::String(format!("{}-{id:x}", pid.0).into()),
                };
            }
        }
    }

    /// The schema by which these values are all shown unchanged.
    pub(crate) fn schema(&mut self, values: &[FieldValue]) -> Arc<MarkerSchema> {
        let fits = |schema: &&Arc<MarkerSchema>| {
            schema.fields.iter().zip(values).all(|(field, value)| fits(field.format, value))
        };
        if let Some(known) = self.variants.iter().find(fits) {
            return Arc::clone(known);
        }
        let mut schema = self.schema.clone();
        let texts_only = self.variants.len() + 1 >= MAX_VARIANTS;
        for ((field, value), open) in schema.fields.iter_mut().zip(values).zip(&self.open) {
            if *open && !texts_only {
                field.format = format_of(value);
            }
        }
        let schema = Arc::new(schema);
        if self.variants.len() < MAX_VARIANTS {
            self.variants.push(Arc::clone(&schema));
        }
        schema
    }
}

/// How many fields a label shows.
const LABEL_FIELDS: usize = 6;

/// A label of a marker's own fields: the value of a single one, otherwise each with its key. `None` if there
/// are none. Numbers of flows are left out, because they only connect markers and mean nothing to users.
fn label_of_fields(fields: &[FieldTexts<'_>]) -> Option<String> {
    // The front end accepts no other characters in the key of a label.
    let can_name =
        |key: &str| !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-');
    let keys = fields.iter().filter(|field| can_name(field.key) && !field.is_flow()).map(|field| field.key);
    let keys: Vec<_> = keys.take(LABEL_FIELDS).collect();
    match keys.as_slice() {
        [] => None,
        [key] => Some(format!("{{marker.data.{key}}}")),
        keys => Some(keys.iter().fold(String::new(), |mut label, key| {
            let space = if label.is_empty() { "" } else { " " };
            // Writing to a string cannot fail.
            let _ = write!(label, "{space}{key}={{marker.data.{key}}}");
            label
        })),
    }
}

/// The fields that the program has given a marker: those before the first number of a flow. The fields behind
/// it are measured values, such as how long a span was busy. A bar is too narrow for them.
fn own_fields<'a, 'b>(fields: &'a [FieldTexts<'b>]) -> &'a [FieldTexts<'b>] {
    let end = fields.iter().position(FieldTexts::is_flow);
    &fields[..end.unwrap_or(fields.len())]
}

/// The colour of a category, the same for the same name in every profile.
fn color_of(name: &str) -> CategoryColor {
    const COLORS: [CategoryColor; 8] = [
        CategoryColor::Blue,
        CategoryColor::Green,
        CategoryColor::Orange,
        CategoryColor::Purple,
        CategoryColor::LightBlue,
        CategoryColor::Magenta,
        CategoryColor::Brown,
        CategoryColor::LightRed,
    ];
    // FNV-1a, so that neighbouring names differ.
    let hash =
        name.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    COLORS[hash as usize % COLORS.len()]
}

fn format_of(value: &FieldValue) -> MarkerFormat {
    match value {
        FieldValue::Integer(_) => MarkerFormat::Integer,
        FieldValue::Number(_) => MarkerFormat::Decimal,
        FieldValue::Missing | FieldValue::String(_) => MarkerFormat::String,
    }
}

/// Whether a field of this format shows the value unchanged. Formats that a file asks for are not checked.
fn fits(format: MarkerFormat, value: &FieldValue) -> bool {
    match format {
        MarkerFormat::Integer => matches!(value, FieldValue::Integer(_) | FieldValue::Missing),
        MarkerFormat::Decimal => !matches!(value, FieldValue::String(_)),
        MarkerFormat::String => matches!(value, FieldValue::String(_) | FieldValue::Missing),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field<'a>(key: &'a str, format: &'a str) -> FieldTexts<'a> {
        FieldTexts { key, label: "", format }
    }

    #[test]
    fn open_formats_follow_the_values() {
        let fields = [field("a", ""), field("b", "bytes"), field("c", "no such format")];
        let mut kind = MarkerKind::new(KindTexts { name: "k", ..KindTexts::default() }, &fields);
        let mut check = |values: [FieldValue; 3], expected: [&str; 3]| {
            let schema = kind.schema(&values);
            let formats: Vec<_> = schema.fields.iter().map(|field| field.format.as_str()).collect();
            assert_eq!(formats, expected, "{values:?}");
        };
        let (integer, number, missing) =
            (FieldValue::Integer(1), FieldValue::Number(0.5), FieldValue::Missing);
        let text = FieldValue::String("x".into());
        check([integer.clone(), integer.clone(), text.clone()], ["integer", "bytes", "string"]);
        check([integer.clone(), text.clone(), missing.clone()], ["integer", "bytes", "string"]);
        check([text.clone(), integer.clone(), number.clone()], ["string", "bytes", "decimal"]);
        check([missing, integer.clone(), integer.clone()], ["string", "bytes", "decimal"]);
        check([number.clone(), integer.clone(), number.clone()], ["decimal", "bytes", "decimal"]);
        // The last variant shows everything.
        check([number, text, integer.clone()], ["decimal", "bytes", "decimal"]);
        check(
            [FieldValue::String("y".into()), integer.clone(), FieldValue::String("z".into())],
            ["string", "bytes", "string"],
        );
    }

    #[test]
    fn labels_show_the_fields() {
        let check = |given: &str, fields: &[FieldTexts<'_>], table: Option<&str>, chart: &str| {
            let texts = KindTexts { name: "span", table_label: given, ..KindTexts::default() };
            let kind = MarkerKind::new(texts, fields);
            assert_eq!(kind.schema.table_label.as_deref(), table, "{fields:?}");
            assert_eq!(kind.schema.chart_label.as_deref(), Some(chart), "{fields:?}");
            assert_eq!(kind.schema.tooltip_label.as_deref(), Some("{marker.name}"));
        };
        check("", &[], None, "{marker.name}");
        check("", &[field("span", "flow-id")], None, "{marker.name}");
        check("", &[field("path", "")], Some("{marker.data.path}"), "{marker.data.path}");
        let both = "path={marker.data.path} bytes={marker.data.bytes}";
        check("", &[field("path", ""), field("bytes", "bytes"), field("a.b", "")], Some(both), both);
        // A bar is too narrow for a span's measured values.
        let task = [field("user", ""), field("span", "terminating-flow-id"), field("busy", "duration")];
        let both = "user={marker.data.user} busy={marker.data.busy}";
        check("", &task, Some(both), "{marker.data.user}");
        check("", &task[1..], Some("{marker.data.busy}"), "{marker.name}");
        check("{marker.data.x}!", &[field("x", "")], Some("{marker.data.x}!"), "{marker.data.x}!");
    }

    #[test]
    fn flows_are_unique_in_the_profile() {
        let kind = MarkerKind::new(KindTexts::default(), &[field("flow", "flow-id"), field("n", "integer")]);
        let mut values = [FieldValue::Integer(255), FieldValue::Integer(255)];
        kind.name_flows(Pid(7), &mut values);
        assert_eq!(values, [FieldValue::String("7-ff".into()), FieldValue::Integer(255)]);
        let mut none = [FieldValue::Integer(0)];
        kind.name_flows(Pid(7), &mut none);
        assert_eq!(none, [FieldValue::Missing]);
    }
}
