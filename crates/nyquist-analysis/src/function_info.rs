//! What is known of a function, or of the lib that a function stands for.

use nyquist_profile::{FuncId, Profile};

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

impl<'p> FunctionInfo<'p> {
    /// What a profile says of a function, or of the lib that it stands for.
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

/// How many functions there are, those that stand for collapsed libs included: each lib has such a one.
pub(crate) fn function_count(profile: &Profile) -> usize {
    profile.funcs().len() + profile.libs().len()
}
