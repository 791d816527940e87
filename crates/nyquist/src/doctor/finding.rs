//! Findings: a grade, a sentence, and fixes; as text and as JSON.

use crate::text::{Screen, Style, Text, one_line};
use serde_json::{Value, json};

/// The quality of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// No improvement is possible.
    Ok,
    /// It works, and could be improved.
    Better,
    /// Something does not work.
    Problem,
}

impl Level {
    /// The word in text, all of one width.
    fn label(self) -> &'static str {
        match self {
            Self::Ok => "ok     ",
            Self::Better => "better ",
            Self::Problem => "problem",
        }
    }

    /// The word in JSON.
    fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Better => "could_be_better",
            Self::Problem => "problem",
        }
    }

    fn style(self) -> Style {
        match self {
            Self::Ok => Style::Good,
            Self::Better => Style::Warm,
            Self::Problem => Style::Hot,
        }
    }
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// Its subject: a stable word for scripts.
    pub(crate) topic: &'static str,
    pub(crate) level: Level,
    /// One sentence without a full stop.
    pub(crate) text: String,
    /// Fixes, a line each.
    pub(crate) hints: Vec<String>,
    /// The sources of the finding, a line each.
    pub(crate) details: Vec<String>,
}

impl Finding {
    pub(crate) fn new(topic: &'static str, level: Level, text: impl Into<String>) -> Self {
        Self { topic, level, text: text.into(), hints: Vec::new(), details: Vec::new() }
    }

    pub(crate) fn ok(topic: &'static str, text: impl Into<String>) -> Self {
        Self::new(topic, Level::Ok, text)
    }

    pub(crate) fn better(topic: &'static str, text: impl Into<String>) -> Self {
        Self::new(topic, Level::Better, text)
    }

    pub(crate) fn problem(topic: &'static str, text: impl Into<String>) -> Self {
        Self::new(topic, Level::Problem, text)
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    pub(crate) fn hints(mut self, hints: impl IntoIterator<Item = String>) -> Self {
        self.hints.extend(hints);
        self
    }

    pub(crate) fn details(mut self, details: impl IntoIterator<Item = String>) -> Self {
        self.details.extend(details);
        self
    }

    fn write(&self, text: &mut Text, screen: Screen, shows_details: bool) {
        *text += "  ";
        *text += self.level.style().paint(self.level.label(), screen);
        *text += format!("  {}\n", one_line(&self.text));
        for hint in &self.hints {
            let line = format!("           hint: {}\n", one_line(hint));
            // A fix for several libraries is printed once.
            if !text.as_str().contains(&line) {
                text.push(line);
            }
        }
        if shows_details {
            for detail in &self.details {
                *text += "           ";
                *text += Style::Dim.paint(&one_line(detail), screen) + "\n";
            }
        }
    }

    fn json(&self) -> Value {
        json!({
            "topic": self.topic,
            "level": self.level.name(),
            "text": self.text,
            "hints": self.hints,
            "details": self.details,
        })
    }
}

/// The findings about one subject: the machine, a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Section {
    /// The kind of subject: `machine`, `process`, `program` or `libraries`.
    pub(crate) kind: &'static str,
    /// Its name, or path.
    pub(crate) name: String,
    pub(crate) findings: Vec<Finding>,
}

/// Everything that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Report {
    /// Whether recording is possible; with a process, whether that process can be recorded.
    pub(crate) can_record: bool,
    pub(crate) sections: Vec<Section>,
}

impl Report {
    /// For people.
    pub(crate) fn text(&self, screen: Screen, verbose: bool) -> Text {
        let mut text = Text::default();
        for section in &self.sections {
            text += if text.as_str().is_empty() { "" } else { "\n" };
            text += Style::Bold.paint(&one_line(&section.name), screen) + "\n";
            for finding in &section.findings {
                // If something is missing, the searched places explain why. For many libraries that is too
                // much output.
                let explains = section.kind != "libraries" && finding.level != Level::Ok;
                finding.write(&mut text, screen, verbose || explains);
            }
        }
        text
    }

    /// For programs: docs/report-json.md.
    pub(crate) fn json(&self) -> Value {
        let section = |section: &Section| {
            let findings: Vec<_> = section.findings.iter().map(Finding::json).collect();
            json!({ "kind": section.kind, "name": section.name, "findings": findings })
        };
        let sections: Vec<_> = self.sections.iter().map(section).collect();
        json!({ "schema": "nyquist-doctor/1", "can_record": self.can_record, "sections": sections })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Asserts that each finding that is not good has a fix. All examples in the tests of findings use this.
    pub(in super::super) fn assert_mendable<'a>(findings: impl IntoIterator<Item = &'a Finding>) {
        for finding in findings {
            assert!(finding.level == Level::Ok || !finding.hints.is_empty(), "nothing mends {finding:?}");
        }
    }

    fn report() -> Report {
        let fine = Finding::ok("a", "it is fine").details(["looked here".to_owned()]);
        let poor = Finding::better("b", "it is poor").hint("do this").details(["looked there".to_owned()]);
        let section =
            Section { kind: "machine", name: "This machine".to_owned(), findings: vec![fine, poor] };
        Report { can_record: true, sections: vec![section] }
    }

    #[test]
    fn a_finding_is_a_line_and_its_remedy() {
        let check =
            |verbose, expected: &str| assert_eq!(report().text(Screen::PLAIN, verbose).as_str(), expected);
        let head = "This machine\n  ok       it is fine\n";
        let rest = "  better   it is poor\n           hint: do this\n           looked there\n";
        check(false, &format!("{head}{rest}"));
        check(true, &format!("{head}           looked here\n{rest}"));
    }

    #[test]
    fn programs_read_all_of_it() {
        let json = report().json();
        assert_eq!(json["schema"], "nyquist-doctor/1");
        assert_eq!(json["sections"][0]["findings"][1]["level"], "could_be_better");
        assert_eq!(json["sections"][0]["findings"][0]["details"][0], "looked here");
    }
}
