//! A query's answer: facts and rows of the schema, as text and as JSON.

use super::cells::cell;
use crate::number::{grouped, percent};
use crate::text::{Column, Screen, Table, Text, one_line};
use nyquist_analysis::schema::List;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// The maximum indentation of the text of a tree.
const MAX_INDENTATION: u64 = 60;

/// An answer to a query.
#[derive(Clone, Debug, Default)]
pub(super) struct Answer {
    /// The members of the JSON.
    members: Map<String, Value>,
    /// What the text begins with.
    facts: Vec<(&'static str, Value)>,
    tables: Vec<RowTable>,
    /// Notes about missing parts, and about other matches.
    pub(super) notes: Vec<String>,
    /// Commands for further queries.
    pub(super) next: Vec<String>,
}

/// The rows of a list, and their columns in the text.
#[derive(Clone, Debug)]
struct RowTable {
    name: &'static str,
    columns: &'static [&'static str],
    rows: Vec<Value>,
    /// The number of all rows, including those beyond the limit.
    count: usize,
}

impl Answer {
    /// Adds the members of an object to the JSON.
    pub(super) fn add(&mut self, object: &impl Serialize) {
        if let Ok(Value::Object(members)) = serde_json::to_value(object) {
            self.members.extend(members);
        }
    }

    /// Adds a line to the text, and a member to the JSON unless it has one of that name.
    pub(super) fn fact(&mut self, name: &'static str, value: impl Into<Value>) {
        self.facts.push((name, value.into()));
    }

    /// Adds lines with members of the JSON to the text.
    pub(super) fn facts(&mut self, names: &[&'static str]) {
        let members = Value::Object(self.members.clone());
        self.facts.extend(names.iter().map(|&name| (name, cell(&members, name))));
    }

    /// Adds a list, with these columns in the text.
    pub(super) fn list<T: Serialize>(&mut self, list: &List<T>, columns: &'static [&'static str]) {
        self.add(list);
        let rows = self.members.get(list.name).and_then(Value::as_array).cloned().unwrap_or_default();
        self.tables.push(RowTable { name: list.name, columns, rows, count: list.count });
    }

    /// The JSON: the members, and for one version those that the text is made of, which were its members before.
    pub(super) fn json(&self, question: &str) -> Value {
        let mut json = self.members.clone();
        for (name, value) in &self.facts {
            json.entry(*name).or_insert_with(|| value.clone());
        }
        for table in &self.tables {
            json.insert(
                table.name.to_owned(),
                table.rows.iter().map(|row| table.with_old_names(row)).collect(),
            );
            json.insert(format!("{}_count", table.name), json!(table.count));
        }
        json.insert("schema".into(), json!("nyquist-query/2"));
        json.insert("question".into(), json!(question));
        json.insert("notes".into(), json!(self.notes));
        json.insert("next".into(), json!(self.next));
        let mut json = Value::Object(json);
        round_shares(&mut json);
        json
    }

    /// The text: each fact in a line, then the lists as tables.
    pub(super) fn text(&self, screen: Screen) -> Text {
        let mut text = String::new();
        let facts = self.facts.iter().filter(|(_, value)| !value.is_null());
        text.extend(
            facts.map(|(name, value)| format!("{}: {}\n", name.replace('_', " "), format_value(name, value))),
        );
        text.extend(self.notes.iter().map(|note| format!("note: {}\n", one_line(note))));
        let mut text = Text::from(text);
        for table in &self.tables {
            text.push(table.text(screen));
        }
        if !self.next.is_empty() {
            text.push("\nnext:\n");
            self.next.iter().for_each(|command| text.push(format!("  {}\n", one_line(command))));
        }
        text
    }
}

impl RowTable {
    /// A row with the cells of the text as members, as far as it has no members of these names.
    fn with_old_names(&self, row: &Value) -> Value {
        let mut with_old = row.clone();
        if let Some(members) = with_old.as_object_mut() {
            for column in self.columns {
                members.entry(*column).or_insert_with(|| cell(row, column));
            }
        }
        with_old
    }

    fn text(&self, screen: Screen) -> Text {
        if self.rows.is_empty() {
            return format!("\n{}: none\n", self.name).into();
        }
        let cells: Vec<Vec<Value>> = self
            .rows
            .iter()
            .map(|row| self.columns.iter().map(|column| cell(row, column)).collect())
            .collect();
        let last = self.columns.len() - 1;
        let columns = self.columns.iter().enumerate().map(|(index, &name)| match index {
            index if index == last => Column::Main(name),
            _ if name == "lib" || name == "process" => Column::Minor(name),
            _ if cells.iter().all(|row| row[index].is_number() || row[index].is_null()) => {
                Column::Number(name)
            }
            _ => Column::Text(name),
        });
        let mut table = Table::new(columns.collect());
        for (row, cells) in self.rows.iter().zip(&cells) {
            let depth = row["depth"].as_u64().unwrap_or(0).min(MAX_INDENTATION) as usize;
            let mut cells: Vec<_> =
                self.columns.iter().zip(cells).map(|(name, value)| format_value(name, value)).collect();
            cells[last].insert_str(0, &" ".repeat(depth));
            table.add(cells.into_iter().map(Into::into).collect());
        }
        let more = self.count.saturating_sub(self.rows.len());
        let more =
            if more > 0 { format!("({} more: --limit)\n", grouped(more as u64)) } else { String::new() };
        Text::from(format!("\n{}:\n", self.name)) + table.render(screen) + more
    }
}

/// Rounds shares to a hundredth of a per cent, because the reader is often billed by the digit.
fn round_shares(json: &mut Value) {
    match json {
        Value::Array(items) => items.iter_mut().for_each(round_shares),
        Value::Object(members) => {
            for (name, value) in members {
                match value.as_f64().filter(|_| name.ends_with("_share")) {
                    Some(share) => *value = json!((share * 1e4).round() / 1e4),
                    None => round_shares(value),
                }
            }
        }
        _ => {}
    }
}

/// A value as text: shares in per cent.
fn format_value(name: &str, value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => one_line(text).into_owned(),
        Value::Number(number) if name.ends_with("_share") => percent(number.as_f64().unwrap_or_default()),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer() -> Answer {
        let mut answer = Answer::default();
        answer.fact("user_share", 0.25);
        answer.add(&json!({"function_name": "a_b", "file": null, "total_amount": 1_500_000}));
        answer.facts(&["function_name", "file", "total_ms"]);
        answer.notes.push("no source".into());
        let row = |name: &&str| json!({"self_share": 0.500_001, "self_amount": 2_000_000, "function": name});
        let list = List::new("function", "functions", 2, &["a", "b", "c"], row);
        answer.list(&list, &["self_share", "self_ms", "function"]);
        answer.next.push("nyquist query p function f-1".into());
        answer
    }

    #[test]
    fn text_says_per_cent_and_how_much_is_left_out() {
        let expected = "user share: 25.0%\nfunction name: a_b\ntotal ms: 1.5\nnote: no source\n\nfunctions:\nself_share  self_ms  function\n     50.0%      2.0  a\n     50.0%      2.0  b\n(1 more: --limit)\n\n\
                        next:\n  nyquist query p function f-1\n";
        assert_eq!(answer().text(Screen::PLAIN).as_str(), expected);
    }

    #[test]
    fn json_has_the_rows_and_the_old_names() {
        let row = |name: &str| json!({"self_share": 0.5, "self_amount": 2_000_000, "self_ms": 2.0, "function": name});
        let expected = json!({
            "schema": "nyquist-query/2",
            "question": "functions",
            "user_share": 0.25,
            "function_name": "a_b",
            "file": null,
            "total_amount": 1_500_000,
            "total_ms": 1.5,
            "notes": ["no source"],
            "functions": [row("a"), row("b")],
            "function_count": 3,
            "functions_count": 3,
            "next": ["nyquist query p function f-1"],
        });
        assert_eq!(answer().json("functions"), expected);
    }
}
