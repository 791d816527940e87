//! A query's answer: facts and tables, with the same content as text and as JSON.

use crate::number::{grouped, percent};
use crate::text::{Column, Screen, Table, Text, one_line};
use serde_json::{Map, Value, json};

/// An answer to a query.
#[derive(Clone, Debug, Default)]
pub(super) struct Answer {
    facts: Vec<(&'static str, Value)>,
    tables: Vec<Rows>,
    /// Notes about missing parts, and about other matches.
    pub(super) notes: Vec<String>,
    /// Commands for further queries.
    pub(super) next: Vec<String>,
}

/// A list of items of one kind.
#[derive(Clone, Debug)]
pub(super) struct Rows {
    name: &'static str,
    columns: &'static [&'static str],
    shown: Vec<Vec<Value>>,
    /// The number of all items, including those beyond the limit.
    count: usize,
}

impl Rows {
    /// The first rows.
    pub(super) fn new<T>(
        name: &'static str,
        columns: &'static [&'static str],
        limit: usize,
        all: &[T],
        row: impl FnMut(&T) -> Vec<Value>,
    ) -> Self {
        Self { name, columns, shown: all.iter().take(limit).map(row).collect(), count: all.len() }
    }
}

impl Answer {
    /// Adds a fact.
    pub(super) fn fact(&mut self, name: &'static str, value: impl Into<Value>) {
        self.facts.push((name, value.into()));
    }

    /// Adds a list.
    pub(super) fn rows(&mut self, rows: Rows) {
        self.tables.push(rows);
    }

    /// The JSON: facts are members, lists are arrays of objects, with their full length as another member.
    pub(super) fn json(&self, question: &str) -> Value {
        let mut json = Map::new();
        json.insert("schema".into(), json!("nyquist-query/1"));
        json.insert("question".into(), json!(question));
        json.extend(self.facts.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        for table in &self.tables {
            let object = |row: &Vec<Value>| {
                let members = table.columns.iter().zip(row);
                Value::Object(members.map(|(name, value)| ((*name).to_owned(), value.clone())).collect())
            };
            json.insert(table.name.to_owned(), table.shown.iter().map(object).collect());
            json.insert(format!("{}_count", table.name), json!(table.count));
        }
        json.insert("notes".into(), json!(self.notes));
        json.insert("next".into(), json!(self.next));
        Value::Object(json)
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

impl Rows {
    fn text(&self, screen: Screen) -> Text {
        if self.shown.is_empty() {
            return format!("\n{}: none\n", self.name).into();
        }
        let last = self.columns.len() - 1;
        let columns = self.columns.iter().enumerate().map(|(index, &name)| match index {
            index if index == last => Column::Main(name),
            _ if name == "lib" || name == "process" => Column::Minor(name),
            _ if self.shown.iter().all(|row| row[index].is_number() || row[index].is_null()) => {
                Column::Number(name)
            }
            _ => Column::Text(name),
        });
        let mut table = Table::new(columns.collect());
        for row in &self.shown {
            let cells = self.columns.iter().zip(row).map(|(name, value)| format_value(name, value).into());
            table.add(cells.collect());
        }
        let more = self.count.saturating_sub(self.shown.len());
        let more =
            if more > 0 { format!("({} more: --limit)\n", grouped(more as u64)) } else { String::new() };
        Text::from(format!("\n{}:\n", self.name)) + table.render(screen) + more
    }
}

/// A value as text: shares in per cent.
fn format_value(name: &str, value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => one_line(text).into_owned(),
        Value::Number(number) if name.ends_with("_share") || name == "share" => {
            percent(number.as_f64().unwrap_or_default())
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer() -> Answer {
        let mut answer = Answer::default();
        answer.fact("user_share", 0.25);
        answer.fact("function_name", "a_b");
        answer.fact("file", Value::Null);
        answer.notes.push("no source".into());
        let row = |name: &&str| vec![json!(0.5), json!(name)];
        answer.rows(Rows::new("functions", &["self_share", "function"], 2, &["a", "b", "c"], row));
        answer.next.push("nyquist query p function f-1".into());
        answer
    }

    #[test]
    fn text_says_per_cent_and_how_much_is_left_out() {
        let expected = "user share: 25.0%\nfunction name: a_b\nnote: no source\n\nfunctions:\nself_share  function\n     50.0%  a\n     50.0%  b\n(1 more: --limit)\n\n\
                        next:\n  nyquist query p function f-1\n";
        assert_eq!(answer().text(Screen::PLAIN).as_str(), expected);
    }

    #[test]
    fn json_has_the_same() {
        let expected = json!({
            "schema": "nyquist-query/1",
            "question": "functions",
            "user_share": 0.25,
            "function_name": "a_b",
            "file": null,
            "notes": ["no source"],
            "functions": [{"self_share": 0.5, "function": "a"}, {"self_share": 0.5, "function": "b"}],
            "functions_count": 3,
            "next": ["nyquist query p function f-1"],
        });
        assert_eq!(answer().json("functions"), expected);
    }
}
