//! Collects the violated rules of a document, and the context of rules.

use std::collections::HashMap;
use std::fmt;

use serde_json::Value;

use crate::marker::MarkerFormat;

/// A violated rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The place, such as `threads[2].samples.stack[7]`.
    pub path: String,
    /// The problem there.
    pub problem: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.problem)
    }
}

/// A member of an object: its name, the expected value in words, and a function that checks the value.
pub(super) type MemberRule<'a> = (&'a str, &'a str, fn(&Value) -> bool);

/// Collects violations.
#[derive(Default)]
pub(super) struct Checker {
    pub(super) violations: Vec<Violation>,
}

/// The things outside of the tables that threads and counters refer to.
pub(super) struct Context<'a> {
    pub(super) is_v66: bool,
    /// The number of subcategories of each category.
    pub(super) categories: Vec<usize>,
    /// The formats of the fields of each marker schema.
    pub(super) schemas: HashMap<&'a str, HashMap<&'a str, MarkerFormat>>,
    pub(super) libs: usize,
}

impl Checker {
    /// Adds a violation.
    pub(super) fn violation(&mut self, path: impl Into<String>, problem: impl Into<String>) {
        self.violations.push(Violation { path: path.into(), problem: problem.into() });
    }

    /// Adds a violation unless `holds`.
    pub(super) fn rule(&mut self, holds: bool, path: impl Into<String>, problem: &str) {
        if !holds {
            self.violation(path, problem);
        }
    }

    /// Checks that members exist and have the expected values.
    pub(super) fn members(&mut self, path: &str, object: &Value, members: &[MemberRule<'_>]) {
        for &(name, expected, accepts) in members {
            match object.get(name) {
                Some(value) if accepts(value) => {}
                Some(value) => {
                    self.violation(format!("{path}.{name}"), format!("is {value}, not {expected}"));
                }
                None => self.violation(format!("{path}.{name}"), "is missing"),
            }
        }
    }

    /// The elements of a member that must be an array.
    pub(super) fn array<'a>(&mut self, path: &str, object: &'a Value, name: &str) -> &'a [Value] {
        if let Some(array) = object.get(name).and_then(Value::as_array) {
            return array;
        }
        self.violation(join(path, name), "is not an array");
        &[]
    }
}

/// The path of a member; the path of the document itself is empty.
fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
