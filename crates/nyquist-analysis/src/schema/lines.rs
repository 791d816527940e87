//! Rows of source lines and instructions.

use std::borrow::Cow;

use serde::Serialize;

use super::Rows;
use super::amounts::Amounts;
use crate::query::positions::LineAmounts;

/// A source line
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LineRow<'a> {
    /// The source file, or null
    pub file: Option<Cow<'a, str>>,
    /// The line's number from 1, or null
    pub line: Option<u32>,
    /// What it takes.
    #[serde(flatten)]
    pub amounts: Amounts,
}

/// A source line with its text
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SourceLineRow<'a> {
    /// The source file
    pub file: Cow<'a, str>,
    /// The line's number, from 1
    pub line: u32,
    /// Its text; null where the file is not here
    pub source: Option<Cow<'a, str>>,
    /// What it takes.
    #[serde(flatten)]
    pub amounts: Amounts,
}

/// An instruction
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InstructionRow<'a> {
    /// The relative address
    pub address: u32,
    /// Its text, in Intel syntax
    pub instruction: Cow<'a, str>,
    /// The source file of the code that it was made of, or null
    pub file: Option<Cow<'a, str>>,
    /// The line in that file, or null
    pub line: Option<u32>,
    /// What it takes.
    #[serde(flatten)]
    pub amounts: Amounts,
}

impl<'a> Rows<'a> {
    /// A source line.
    pub fn line(&self, line: &LineAmounts<'a>) -> LineRow<'a> {
        let amounts = self.whole.amounts(line.self_amount.weight, line.total.weight);
        LineRow { file: line.file.map(Cow::Borrowed), line: line.line, amounts }
    }
}
