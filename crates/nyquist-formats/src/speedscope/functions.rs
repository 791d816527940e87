//! The frames of speedscope's files. There, each is a function: lines that differ would be rows of their own.

use std::borrow::Cow;

use nyquist_profile::{FrameId, FuncId, Profile};
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::{SourcePaths, source_path};

/// The name of the frame of samples without a stack. In the format, a sample without frames is a gap.
pub(super) const NO_STACK: &str = "(no stack)";

/// The functions of a profile, without those of equal name and place.
pub(super) struct Functions<'a> {
    pub(super) rows: Vec<FunctionOut<'a>>,
    /// The row of samples without a stack: the last one.
    pub(super) no_stack: usize,
    /// The index of each function's row.
    row_of: Vec<usize>,
}

#[derive(Clone, PartialEq, Eq, Hash, Serialize)]
pub(super) struct FunctionOut<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    col: Option<u32>,
}

impl<'a> Functions<'a> {
    /// O(functions).
    pub(super) fn new(profile: &'a Profile, paths: SourcePaths<'_>) -> Self {
        let mut rows = Vec::new();
        let mut known: FxHashMap<FunctionOut<'a>, usize> = FxHashMap::default();
        let funcs = (0..profile.funcs().len()).map(FuncId::from_index);
        let row_of = funcs.map(|func| {
            let row = function_out(profile, paths, func);
            *known.entry(row).or_insert_with_key(|row| {
                rows.push(row.clone());
                rows.len() - 1
            })
        });
        let row_of = row_of.collect();
        let no_stack = rows.len();
        rows.push(FunctionOut { name: NO_STACK, file: None, line: None, col: None });
        Self { rows, no_stack, row_of }
    }

    /// The row of a frame's function.
    pub(super) fn row(&self, profile: &Profile, frame: FrameId) -> usize {
        self.row_of[profile.frame(frame).func.index()]
    }
}

/// A function. Without a source file, it has the name of its lib there, as from speedscope's own importers.
fn function_out<'a>(profile: &'a Profile, paths: SourcePaths<'_>, func: FuncId) -> FunctionOut<'a> {
    let func = profile.func(func);
    let source = func.source.map(|source| source_path(profile, source, paths));
    let lib = func.lib.map(|lib| profile.lib(lib).path.as_str());
    let (line, col) = source.as_ref().map_or((None, None), |_| (func.line, func.column));
    FunctionOut {
        name: profile.string(func.name),
        file: source.or(lib.map(Cow::Borrowed)).filter(|file| !file.is_empty()),
        line,
        col,
    }
}
