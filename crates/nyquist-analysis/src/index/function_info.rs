//! Names and places of functions, and of the functions that stand for collapsed libs.

use nyquist_profile::{FuncId, Profile};

/// The name and the place of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct FunctionInfo<'p> {
    /// The function in the profile. An id beyond the profile's functions stands for a collapsed lib.
    pub func: FuncId,
    /// Its name.
    pub name: &'p str,
    /// The name of its lib.
    pub lib: Option<&'p str>,
    /// The file that defines it.
    pub file: Option<&'p str>,
    /// The line in that file where it begins.
    pub line: Option<u32>,
}

impl<'p> FunctionInfo<'p> {
    /// Reads a function, or the lib that it stands for, from a profile.
    pub(crate) fn new(profile: &'p Profile, id: FuncId) -> Self {
        if let Some(lib) = id.index().checked_sub(profile.funcs().len()) {
            let lib = &profile.libs()[lib];
            return Self { func: id, name: &lib.name, lib: Some(&lib.name), file: None, line: None };
        }
        let func = profile.func(id);
        Self {
            func: id,
            name: profile.string(func.name),
            lib: func.lib.map(|lib| profile.lib(lib).name.as_str()),
            file: func.source.map(|source| profile.string(profile.source(source).filename)),
            line: func.line,
        }
    }
}

/// The number of functions, with one more for each lib, which stands for the collapsed lib.
pub(crate) fn function_count(profile: &Profile) -> usize {
    profile.funcs().len() + profile.libs().len()
}
