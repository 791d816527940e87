//! What is worked out once for a profile, before anything is asked.

use std::sync::OnceLock;

use nyquist_profile::{FuncId, Profile, ThreadIndex};

use crate::forest::Forest;
use crate::orders::{FunctionOrder, LineOrder};
use crate::prefix_sums::Tally;
use crate::sums::IndexedSums;

/// What is worked out once for a profile, for all questions that follow.
#[derive(Debug)]
pub struct Index<'p> {
    pub(crate) profile: &'p Profile,
    /// All stacks.
    pub(crate) forest: Forest,
    /// The node of each stack.
    pub(crate) node_of_stack: Vec<u32>,
    pub(crate) sums: IndexedSums,
    functions: OnceLock<FunctionOrder>,
    lines: OnceLock<LineOrder>,
}

impl<'p> Index<'p> {
    /// Prepares a profile for questions. O(stacks + samples).
    pub fn new(profile: &'p Profile) -> Self {
        let (forest, node_of_stack) = Forest::of_stacks(profile);
        let sums = IndexedSums::new(profile, &node_of_stack);
        Self { profile, forest, node_of_stack, sums, functions: OnceLock::new(), lines: OnceLock::new() }
    }

    /// The order of the functions, worked out when first asked for. O(nodes + functions × log functions).
    pub(crate) fn functions(&self) -> &FunctionOrder {
        self.functions.get_or_init(|| FunctionOrder::new(self))
    }

    /// The order of the lines, worked out when first asked for. O(nodes + frames × log frames).
    pub(crate) fn lines(&self) -> &LineOrder {
        self.lines.get_or_init(|| LineOrder::new(self.profile, &self.forest))
    }

    /// What the samples of a thread before that position sum to.
    pub(crate) fn tally_before(&self, thread: ThreadIndex, position: usize) -> Tally {
        self.sums.tallies[thread.index()].before(position, self.profile, self.profile.thread(thread))
    }

    /// The profile.
    pub fn profile(&self) -> &'p Profile {
        self.profile
    }

    /// How many functions there are, those that stand for collapsed libs included: each lib has such a one.
    pub(crate) fn function_count(&self) -> usize {
        self.profile.funcs().len() + self.profile.libs().len()
    }

    /// What is known of a function, or of the lib that it stands for.
    pub fn function(&self, id: FuncId) -> FunctionInfo<'p> {
        let profile = self.profile;
        if let Some(lib) = id.index().checked_sub(profile.funcs().len()) {
            let lib = &profile.libs()[lib];
            return FunctionInfo { func: id, name: &lib.name, lib: Some(&lib.name), file: None, line: None };
        }
        let func = profile.func(id);
        FunctionInfo {
            func: id,
            name: profile.string(func.name),
            lib: func.lib.map(|lib| profile.lib(lib).name.as_str()),
            file: func.source.map(|source| profile.string(profile.source(source).filename)),
            line: func.line,
        }
    }
}

/// What is known of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct FunctionInfo<'p> {
    /// The function in the profile; beyond its functions, one that stands for a collapsed lib.
    pub func: FuncId,
    /// Its name.
    pub name: &'p str,
    /// The name of its lib.
    pub lib: Option<&'p str>,
    /// The file that it is defined in.
    pub file: Option<&'p str>,
    /// The line in that file where it begins.
    pub line: Option<u32>,
}
