//! The table of functions beside a response, with each function that the response refers to by number.

use std::borrow::Cow;
use std::collections::BTreeMap;

use nyquist_analysis::schema::function_number;
use nyquist_analysis::{View, short_name};
use nyquist_profile::{CategoryId, FuncId, Profile};
use serde::Serialize;

/// The categories of functions: that of each function's first frame with one.
#[derive(Debug)]
pub(crate) struct FunctionCategories(Vec<Option<CategoryId>>);

impl FunctionCategories {
    /// Reads all frames of a profile. O(frames).
    pub(crate) fn new(profile: &Profile) -> Self {
        let mut categories = vec![None; profile.funcs().len()];
        for frame in profile.frames() {
            if let Some(slot) = categories.get_mut(frame.func.index()) {
                *slot = slot.or(frame.category.map(|pair| pair.category));
            }
        }
        Self(categories)
    }

    /// The index of a function's category.
    pub(crate) fn of(&self, func: FuncId) -> Option<usize> {
        self.0.get(func.index()).copied().flatten().map(CategoryId::index)
    }
}

/// The description of a function in a response.
#[derive(Debug, Serialize)]
struct FunctionRow<'a> {
    name: &'a str,
    /// The name without arguments, if it has some.
    #[serde(skip_serializing_if = "Option::is_none")]
    short: Option<Cow<'a, str>>,
    lib: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lib_number: Option<usize>,
    category: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

/// The functions that a response refers to, by number.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(crate) struct FunctionTable<'a> {
    rows: BTreeMap<usize, FunctionRow<'a>>,
    #[serde(skip)]
    has_places: bool,
}

impl<'a> FunctionTable<'a> {
    /// A table without functions.
    pub(crate) fn new() -> Self {
        Self { rows: BTreeMap::new(), has_places: false }
    }

    /// A table whose functions include the file and line where they begin.
    pub(crate) fn with_places() -> Self {
        Self { has_places: true, ..Self::new() }
    }

    /// The number of a function, which is added to the table.
    pub(crate) fn number(&mut self, view: &View<'a>, categories: &FunctionCategories, func: FuncId) -> usize {
        let has_places = self.has_places;
        let number = function_number(func, view.profile());
        self.rows.entry(number).or_insert_with(|| {
            let info = view.function(func);
            FunctionRow {
                name: info.name,
                short: Some(short_name(info.name)).filter(|short| *short != info.name),
                lib: info.lib,
                lib_number: lib_of(view.profile(), func),
                category: categories.of(func),
                file: info.file.filter(|_| has_places),
                line: info.line.filter(|_| has_places),
            }
        });
        number
    }
}

/// The lib of a function. `None` for functions that stand for collapsed libs.
fn lib_of(profile: &Profile, func: FuncId) -> Option<usize> {
    profile.funcs().get(func.index()).and_then(|func| func.lib).map(nyquist_profile::LibId::index)
}
