//! The colours of waits in the front end's marker chart, by what is waited for. Otherwise all markers are blue.

use crate::marker::{Marker, MarkerSchema, MarkerValue};
use crate::profile::Profile;
use crate::well_known;

/// The field with the colour, which exists only in the file.
pub(super) const COLOR_FIELD: &str = "color";

/// The colours by the reason of a wait. All others are grey.
const COLORS: [(&str, &str); 10] = [
    ("lock", "red"),
    ("condition", "magenta"),
    ("CPU", "orange"),
    ("file", "purple"),
    ("page", "purple"),
    ("pipe", "teal"),
    ("network", "teal"),
    ("events", "green"),
    ("child", "yellow"),
    ("thread", "yellow"),
];

/// Whether the markers of a kind have colours.
pub(super) fn has_colors(schema: &MarkerSchema) -> bool {
    schema.name == well_known::WAIT_SCHEMA
}

/// The colour of a marker of such a kind.
pub(super) fn color_of(profile: &Profile, marker: &Marker) -> &'static str {
    let Some(MarkerValue::String(reason)) = marker.values.first() else { return "grey" };
    let reason = profile.string(*reason);
    COLORS.iter().find(|(start, _)| reason.starts_with(start)).map_or("grey", |(_, color)| color)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::ProfileBuilder;
    use crate::category::CategoryColor;
    use crate::firefox::{WriteOptions, read, write};
    use crate::marker::{MarkerField, MarkerFormat, MarkerTiming};
    use crate::meta::Meta;
    use crate::thread::{Process, Thread};

    #[test]
    fn waits_have_colours_only_in_the_file() {
        let mut builder = ProfileBuilder::new(Meta::default());
        let category = builder.add_category("Other", CategoryColor::Grey);
        let process = builder.add_process(Process::default());
        let thread = builder.add_thread(Thread::new(process, "1", "main"));
        let field = MarkerField { key: "reason".into(), label: None, format: MarkerFormat::String };
        let kind = MarkerSchema { name: "Wait".into(), fields: vec![field], ..MarkerSchema::default() };
        let schema = Some(builder.add_marker_schema(kind));
        for reason in ["lock", "sleep"] {
            let name = builder.intern_string("Wait");
            let values = vec![MarkerValue::String(builder.intern_string(reason))];
            let timing = MarkerTiming::Interval(1, 2);
            builder.add_marker(thread, Marker { name, timing, category, schema, values, stack: None });
        }
        let profile = builder.finish();
        let mut document = Vec::new();
        write(&profile, WriteOptions { gzip: false, ..WriteOptions::default() }, &mut document).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&document).unwrap();
        assert_eq!(json["meta"]["markerSchema"][0]["colorField"], "color");
        let data = json["threads"][0]["markers"]["data"].as_array().unwrap();
        assert_eq!((&data[0]["color"], &data[1]["color"]), (&"red".into(), &"grey".into()));
        let again = read(&document[..]).unwrap();
        assert_eq!(again.marker_schemas(), profile.marker_schemas());
        assert_eq!(again.threads()[0].markers[0].values.len(), 1);
    }
}
