//! Markers, and their kinds, as fields.

use crate::fields::{Fields, put_bytes, put_float, put_number, put_option, put_optional_text};
use nyquist_profile::{
    CategoryId, Marker, MarkerDisplay, MarkerField, MarkerFormat, MarkerSchema, MarkerSchemaId, MarkerTiming,
    MarkerValue, StackId, StringId,
};

/// The rows that a marker may refer to: their ids in the profile that is made, by their indexes in the records.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known<'a> {
    pub(crate) strings: &'a [StringId],
    pub(crate) stacks: &'a [StackId],
    pub(crate) categories: &'a [CategoryId],
    pub(crate) schemas: &'a [MarkerSchemaId],
}

pub(crate) fn put_marker(out: &mut Vec<u8>, marker: &Marker) {
    put_number(out, marker.name.index() as u64);
    let (kind, first, second) = match marker.timing {
        MarkerTiming::Instant(time) => (0, time, None),
        MarkerTiming::Interval(start, end) => (1, start, Some(end)),
        MarkerTiming::IntervalStart(time) => (2, time, None),
        MarkerTiming::IntervalEnd(time) => (3, time, None),
    };
    out.push(kind);
    put_number(out, first);
    if let Some(end) = second {
        put_number(out, end);
    }
    put_number(out, marker.category.index() as u64);
    put_option(out, marker.schema.map(|schema| schema.index() as u64));
    put_option(out, marker.stack.map(|stack| stack.index() as u64));
    put_number(out, marker.values.len() as u64);
    for value in &marker.values {
        match value {
            MarkerValue::Missing => out.push(0),
            MarkerValue::String(id) => {
                out.push(1);
                put_number(out, id.index() as u64);
            }
            MarkerValue::Integer(number) => {
                out.push(2);
                put_number(out, *number as u64);
            }
            MarkerValue::Number(number) => {
                out.push(3);
                put_float(out, *number);
            }
        }
    }
}

pub(crate) fn read_marker(fields: &mut Fields<'_>, known: Known<'_>) -> Option<Marker> {
    let name = string(fields, known)?;
    let timing = match (fields.byte()?, fields.number()?) {
        (0, time) => MarkerTiming::Instant(time),
        (1, start) => MarkerTiming::Interval(start, fields.number()?),
        (2, time) => MarkerTiming::IntervalStart(time),
        (3, time) => MarkerTiming::IntervalEnd(time),
        _ => return None,
    };
    let category = *known.categories.get(fields.small::<usize>()?)?;
    let schema = match fields.option()? {
        Some(index) => Some(*known.schemas.get(usize::try_from(index).ok()?)?),
        None => None,
    };
    let stack = match fields.option()? {
        Some(index) => Some(*known.stacks.get(usize::try_from(index).ok()?)?),
        None => None,
    };
    let mut values = Vec::new();
    for _ in 0..fields.number()? {
        values.push(match fields.byte()? {
            0 => MarkerValue::Missing,
            1 => MarkerValue::String(string(fields, known)?),
            2 => MarkerValue::Integer(fields.number()? as i64),
            3 => MarkerValue::Number(fields.float()?),
            _ => return None,
        });
    }
    Some(Marker { name, timing, category, schema, values, stack })
}

fn string(fields: &mut Fields<'_>, known: Known<'_>) -> Option<StringId> {
    known.strings.get(fields.small::<usize>()?).copied()
}

pub(crate) fn put_schema(out: &mut Vec<u8>, schema: &MarkerSchema) {
    put_bytes(out, schema.name.as_bytes());
    out.push(schema.is_stack_based.into());
    for text in [&schema.tooltip_label, &schema.table_label, &schema.chart_label, &schema.description] {
        put_optional_text(out, text.as_deref());
    }
    put_number(out, schema.display.len() as u64);
    for place in &schema.display {
        put_bytes(out, place.as_str().as_bytes());
    }
    for MarkerField { key, label, format } in &schema.fields {
        put_bytes(out, key.as_bytes());
        put_optional_text(out, label.as_deref());
        put_bytes(out, format.as_str().as_bytes());
    }
}

pub(crate) fn read_schema(fields: &mut Fields<'_>) -> Option<MarkerSchema> {
    let (name, is_stack_based) = (fields.owned()?, fields.flag()?);
    let [tooltip_label, table_label] = [fields.optional_text()?, fields.optional_text()?];
    let [chart_label, description] = [fields.optional_text()?, fields.optional_text()?];
    let mut display = Vec::new();
    for _ in 0..fields.number()? {
        display.push(MarkerDisplay::from_name(fields.text()?)?);
    }
    let mut rows = Vec::new();
    while !fields.is_empty() {
        let (key, label) = (fields.owned()?, fields.optional_text()?);
        rows.push(MarkerField { key, label, format: MarkerFormat::from_name(fields.text()?)? });
    }
    let labels = MarkerSchema { tooltip_label, table_label, chart_label, ..MarkerSchema::default() };
    Some(MarkerSchema { name, display, fields: rows, description, is_stack_based, ..labels })
}
