//! Rows of functions: alone, as nodes of a tree, and as callers and callees.

use std::borrow::Cow;

use serde::Serialize;

use super::Rows;
use super::amounts::{Amounts, Totals};
use super::list::List;
use crate::query::call_sites::CallSite;
use crate::query::functions::Function;
use crate::query::peek::{Neighbour, Peek};
use crate::query::tree::TreeNode;

/// A function
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FunctionRow<'a> {
    /// Its handle, as `f-12`
    pub handle: String,
    /// Its name
    pub function: Cow<'a, str>,
    /// The library or program that it is in, or null
    pub lib: Option<&'a str>,
    /// Its source file, or null
    pub file: Option<&'a str>,
    /// The line where it begins, or null
    pub line: Option<u32>,
    /// What it takes.
    #[serde(flatten)]
    pub amounts: Amounts,
    /// The standard error of `self_amount`, at most, if it is an estimate from sampled allocations, or null
    pub self_error: Option<f64>,
    /// The standard error of `total_amount`, or null
    pub total_error: Option<f64>,
}

/// A function with its callers and callees.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionDetails<'a> {
    /// The function.
    pub function: FunctionRow<'a>,
    /// Its callers, the most time first.
    pub callers: List<NeighborRow<'a>>,
    /// The functions that it calls, the most time first.
    pub callees: List<NeighborRow<'a>>,
}

/// A caller of a function, or a function that it calls
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NeighborRow<'a> {
    /// Its handle; null where the stack begins
    pub handle: Option<String>,
    /// Its name; `(root)` where the stack begins
    pub function: Cow<'a, str>,
    /// The library or program that it is in, or null
    pub lib: Option<&'a str>,
    /// What the calls take.
    #[serde(flatten)]
    pub totals: Totals,
}

/// A line that calls a function
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CallSiteRow<'a> {
    /// The handle of the caller
    pub handle: String,
    /// The file of the call, or null
    pub file: Option<&'a str>,
    /// The line of the call, or null
    pub line: Option<u32>,
    /// What the calls take.
    #[serde(flatten)]
    pub totals: Totals,
}

/// A node of a call tree, or of an inverted tree, in which a node's children are its callers
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NodeRow<'a> {
    /// The level, from 0; the parent is the last node before it of one level less
    pub depth: usize,
    /// The handle of the function
    pub handle: String,
    /// The name of the function
    pub function: Cow<'a, str>,
    /// The library or program that it is in, or null
    pub lib: Option<&'a str>,
    /// Whether it is inlined into its caller
    pub inlined: bool,
    /// Whether it has children, shown or not
    pub has_children: bool,
    /// What it takes at this place. In an inverted tree, only roots have self weight.
    #[serde(flatten)]
    pub amounts: Amounts,
}

/// A node of a tree that is opened node by node
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PathNodeRow<'a> {
    /// The numbers of the functions from the root to it, as `4.17`
    pub path: String,
    /// The node.
    #[serde(flatten)]
    pub node: NodeRow<'a>,
}

impl<'a> Rows<'a> {
    /// A function.
    pub fn function(&self, function: &Function<'a>) -> FunctionRow<'a> {
        let (own, total) = (function.self_amount.weight, function.total.weight);
        FunctionRow {
            handle: self.handle(function.func),
            function: (self.name)(function.name),
            lib: function.lib,
            file: function.file,
            line: function.line,
            amounts: self.whole.amounts(own, total),
            self_error: self.whole.standard_error(own),
            total_error: self.whole.standard_error(total),
        }
    }

    /// A function with its callers and callees, at most so many of each.
    pub fn details(&self, peek: &Peek<'a>, limit: usize) -> FunctionDetails<'a> {
        let row = |neighbor: &Neighbour<'a>| self.neighbor(neighbor);
        FunctionDetails {
            function: self.function(&peek.function),
            callers: List::new("caller", "callers", limit, &peek.callers, row),
            callees: List::new("callee", "callees", limit, &peek.callees, row),
        }
    }

    fn neighbor(&self, neighbor: &Neighbour<'a>) -> NeighborRow<'a> {
        NeighborRow {
            handle: neighbor.func.map(|func| self.handle(func)),
            function: neighbor.name.map_or(Cow::Borrowed("(root)"), self.name),
            lib: neighbor.lib,
            totals: self.whole.totals(neighbor.total.weight),
        }
    }

    /// A line that calls a function.
    pub fn call_site(&self, site: &CallSite<'a>) -> CallSiteRow<'a> {
        CallSiteRow {
            handle: self.handle(site.caller),
            file: site.file,
            line: site.line,
            totals: self.whole.totals(site.total.weight),
        }
    }

    /// A node of a tree.
    pub fn node<'v>(&self, depth: usize, node: &TreeNode<'v>) -> NodeRow<'v> {
        NodeRow {
            depth,
            handle: self.handle(node.func),
            function: (self.name)(node.name),
            lib: node.lib,
            inlined: node.is_inlined,
            has_children: node.has_children,
            amounts: self.whole.amounts(node.self_amount.weight, node.total.weight),
        }
    }
}
