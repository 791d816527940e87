//! The members of JSON output, compared with the lists in `docs/report-json.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::expect::{Verdict, expect};

/// What is between a list and the row that its objects are.
const OF: &str = " of ";

/// The names of a cell: a list and its row are one.
fn joined<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut joined: Vec<String> = Vec::new();
    let mut goes_on = false;
    for name in names {
        match joined.last_mut() {
            Some(list) if goes_on || name == OF => list.push_str(name),
            _ => joined.push(name.to_owned()),
        }
        goes_on = name == OF;
    }
    joined
}

/// The members in the list of each section of the document.
pub(crate) struct Documents {
    sections: BTreeMap<String, BTreeSet<String>>,
}

impl Documents {
    /// Reads the document.
    pub(crate) fn read() -> Result<Self> {
        let path = crate::paths::root().join("docs/report-json.md");
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Self::parse(&text))
    }

    /// Reads the first column of each section's tables, with names in backquotes. Nested members have a path,
    /// such as `functions[].self`.
    fn parse(text: &str) -> Self {
        let mut sections: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let mut section = String::new();
        for line in text.lines() {
            if let Some(heading) = line.strip_prefix("## ") {
                heading.trim_matches('`').clone_into(&mut section);
            } else if let Some(row) = line.strip_prefix("| `") {
                let cell = row.split('|').next().unwrap_or_default();
                let names = cell.split('`').filter(|name| !name.trim_matches([' ', ',']).is_empty());
                sections.entry(section.clone()).or_default().extend(joined(names));
            }
        }
        Self { sections }
    }

    /// The members that the names of a list stand for.
    fn expanded(&self, names: &BTreeSet<String>) -> BTreeSet<String> {
        let mut members = BTreeSet::new();
        for name in names {
            let (prefix, row) = match name.split_once(OF) {
                Some((list, row)) => (format!("{list}."), row),
                None => (String::new(), name.as_str()),
            };
            let is_row = row.starts_with(char::is_uppercase);
            match self.sections.get(row).filter(|_| is_row) {
                Some(of_row) => {
                    members.extend(self.expanded(of_row).iter().map(|it| format!("{prefix}{it}")));
                }
                None => members.extend([name.clone()]),
            }
        }
        members
    }

    /// Fails unless the JSON has the members in the lists of two sections: the one of the first word, and the
    /// one of all words together.
    pub(crate) fn hold(&self, args: &[&str], json: &Value) -> Verdict {
        let whole = args.join(" ");
        let names = [args.first().copied().unwrap_or_default(), &whole];
        let listed = names.iter().filter_map(|name| self.sections.get(*name)).flatten().cloned().collect();
        let listed = self.expanded(&listed);
        let listed: BTreeSet<&str> = listed.iter().map(String::as_str).collect();
        expect(!listed.is_empty(), format_args!("docs/report-json.md has no section {whole}"))?;
        let mut found = BTreeSet::new();
        collect(json, "", &mut found);
        let found: BTreeSet<&str> = found.iter().map(String::as_str).collect();
        let undocumented: Vec<_> = found.difference(&listed).collect();
        expect(
            undocumented.is_empty(),
            format_args!("{whole}: not in docs/report-json.md: {undocumented:?}"),
        )?;
        // If a list is empty, the members of its objects cannot be checked.
        let is_seen = |name: &&&str| {
            name.rsplit_once("[].")
                .is_none_or(|(list, _)| found.iter().any(|it| it.starts_with(&format!("{list}[]."))))
        };
        let missing: Vec<_> = listed.difference(&found).filter(is_seen).collect();
        expect(missing.is_empty(), format_args!("{whole}: documented and not there: {missing:?}"))
    }
}

/// The paths of all members.
fn collect(json: &Value, path: &str, found: &mut BTreeSet<String>) {
    match json {
        Value::Object(members) => {
            for (name, value) in members {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                collect(value, &path, found);
                found.insert(path);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, &format!("{path}[]"), found)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn members_are_held_against_the_sections() {
        let text = "# t\n## `report`\n| member | meaning |\n|---|---|\n| `a`, `b` | x |\n## report lines\n| `c[].d` | y |\n";
        let documents = Documents::parse(text);
        let holds = |json: Value| documents.hold(&["report", "lines"], &json).is_ok();
        assert!(!holds(json!({"a": 1, "b": 2, "c": []})), "c itself is not listed");
        let text = format!("{text}| `c` | z |\n");
        let documents = Documents::parse(&text);
        let holds = |json: Value| documents.hold(&["report", "lines"], &json).is_ok();
        assert!(holds(json!({"a": 1, "b": 2, "c": []})));
        assert!(holds(json!({"a": 1, "b": 2, "c": [{"d": 1}]})));
        assert!(!holds(json!({"a": 1, "b": 2, "c": [{"e": 1}]})));
        assert!(!holds(json!({"a": 1, "c": []})));
        assert!(documents.hold(&["other"], &json!({})).is_err());
    }

    #[test]
    fn rows_stand_for_their_members() {
        let text = "## a\n| `x`, `x[]` of `Row` | x |\n| `Whole` | y |\n## Row\n| `b` | z |\n| `c`, `c[]` of `Whole` | z |\n## Whole\n| `w` | z |\n";
        let documents = Documents::parse(text);
        let holds = |json: Value| documents.hold(&["a"], &json).is_ok();
        assert!(holds(json!({"w": 1, "x": [{"b": 1, "c": [{"w": 1}]}]})));
        assert!(
            !holds(json!({"w": 1, "x": [{"b": 1, "c": [{"v": 1}]}]})),
            "the row of a row has other members"
        );
        assert!(!holds(json!({"x": [{"b": 1, "c": []}]})), "the whole is missing");
    }
}
