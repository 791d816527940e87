//! The cells of a query's text: members of a row, times in ms, and the first of a list.

use serde_json::{Value, json};

/// What the text shows of a row under a heading.
pub(super) fn cell(row: &Value, heading: &str) -> Value {
    match heading {
        // The first of the places, of which the row has the longest first.
        "place" if row["places"].is_array() => row["places"][0]["function"].clone(),
        "handle" if row["places"].is_array() => row["places"][0]["handle"].clone(),
        "place" => json!(format!("{}:{}", row["file"].as_str().unwrap_or_default(), row["line"])),
        "held_by" | "woken_by" => row[heading][0]["thread"].clone(),
        // Amounts in the profile's own unit.
        "self" | "total" => row[format!("{heading}_amount")].clone(),
        _ => match heading.strip_suffix("_ms") {
            Some(name) => {
                let time =
                    [format!("{name}_amount"), format!("{name}_ns")].iter().find_map(|it| row[it].as_u64());
                time.map_or(Value::Null, milliseconds)
            }
            None => row[heading].clone(),
        },
    }
}

/// A time in ms with three decimals.
pub(super) fn milliseconds(nanoseconds: u64) -> Value {
    json!((nanoseconds as f64 / 1e3).round() / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_members_times_and_first_items() {
        let wait = json!({"total_ns": 2_500_000, "held_by": [{"thread": "a"}, {"thread": "b"}],
            "woken_by": [], "places": [{"function": "f", "handle": "f-1"}]});
        let cells =
            ["total_ms", "held_by", "woken_by", "place", "handle"].map(|heading| cell(&wait, heading));
        assert_eq!(cells, [json!(2.5), json!("a"), Value::Null, json!("f"), json!("f-1")]);
        let line = json!({"file": "a.c", "line": 5, "self": 3, "self_amount": 30});
        assert_eq!(
            ["place", "self", "line"].map(|heading| cell(&line, heading)),
            [json!("a.c:5"), json!(30), json!(5)]
        );
    }
}
