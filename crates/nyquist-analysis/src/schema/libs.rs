//! Rows of libs, and of other groups of functions.

use serde::Serialize;

use super::Rows;
use super::amounts::Amounts;
use crate::query::function_groups::FunctionGroup;
use crate::query::groups;

/// A library or program
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LibRow<'a> {
    /// Its name; null for code that is in none
    pub lib: Option<&'a str>,
    /// Its path, or null
    pub path: Option<&'a str>,
    /// What its functions take.
    #[serde(flatten)]
    pub amounts: Amounts,
}

/// The functions of a file, of a crate, namespace or package, or of a lib
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GroupRow<'a> {
    /// Its name; null for functions that have none
    pub name: Option<&'a str>,
    /// What its functions take.
    #[serde(flatten)]
    pub amounts: Amounts,
}

impl<'a> Rows<'a> {
    /// A lib.
    pub fn lib(&self, lib: &groups::LibRow<'a>) -> LibRow<'a> {
        let amounts = self.whole.amounts(lib.self_amount.weight, lib.total.weight);
        LibRow { lib: lib.name, path: lib.path, amounts }
    }

    /// A group of functions.
    pub fn group(&self, group: &FunctionGroup<'a>) -> GroupRow<'a> {
        let amounts = self.whole.amounts(group.self_amount.weight, group.total.weight);
        GroupRow { name: group.name, amounts }
    }
}
