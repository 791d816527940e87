//! Translates a selection of one profile to another one, by the names of functions.

use std::collections::HashMap;

use nyquist_analysis::{Selection, Transform, comparable_name};
use nyquist_profile::{CategoryId, FuncId, LibId, Profile};

/// The selection of `to` with the same meaning as `selection` in `from`. Threads and times have no
/// counterpart in another run, so all are selected. O(functions), if transforms refer to functions.
pub(crate) fn translated(selection: &Selection, from: &Profile, to: &Profile) -> Selection {
    let mut translated = Selection { threads: None, processes: None, range: None, ..selection.clone() };
    if !selection.transforms.is_empty() {
        let names = FunctionNames::new(from, to);
        translated.transforms =
            selection.transforms.iter().filter_map(|transform| names.transform(transform)).collect();
    }
    translated
}

struct FunctionNames<'a> {
    from: &'a Profile,
    to: &'a Profile,
    functions: HashMap<String, FuncId>,
}

impl<'a> FunctionNames<'a> {
    fn new(from: &'a Profile, to: &'a Profile) -> Self {
        let mut functions = HashMap::new();
        for (index, func) in to.funcs().iter().enumerate() {
            functions.entry(comparable(to.string(func.name))).or_insert(FuncId::from_index(index));
        }
        Self { from, to, functions }
    }

    /// The function of the same name. If there is none, a function that is in no stack.
    fn func(&self, func: FuncId) -> FuncId {
        let nowhere = FuncId::from_index(self.to.funcs().len() + self.to.libs().len());
        match self.from.funcs().get(func.index()) {
            Some(known) => self.functions.get(&comparable(self.from.string(known.name))).copied(),
            // It stands for a collapsed lib.
            None => {
                let lib = self.lib(LibId::from_index(func.index() - self.from.funcs().len()));
                lib.map(|lib| FuncId::from_index(self.to.funcs().len() + lib.index()))
            }
        }
        .unwrap_or(nowhere)
    }

    fn lib(&self, lib: LibId) -> Option<LibId> {
        let name = &self.from.libs().get(lib.index())?.name;
        self.to.libs().iter().position(|lib| lib.name == *name).map(LibId::from_index)
    }

    fn category(&self, category: CategoryId) -> Option<CategoryId> {
        let name = &self.from.category(category).name;
        self.to.categories().iter().position(|category| category.name == *name).map(CategoryId::from_index)
    }

    /// `None` if there is nothing to change.
    fn transform(&self, transform: &Transform) -> Option<Transform> {
        let func = |func: &FuncId| self.func(*func);
        let path = |path: &[FuncId]| path.iter().map(|one| self.func(*one)).collect();
        Some(match transform {
            Transform::MergeFunction(one) => Transform::MergeFunction(func(one)),
            Transform::MergeCallNode(one) => Transform::MergeCallNode(path(one)),
            Transform::FocusFunction(one) => Transform::FocusFunction(func(one)),
            Transform::FocusSelf(one) => Transform::FocusSelf(func(one)),
            Transform::FocusSubtree(one) => Transform::FocusSubtree(path(one)),
            Transform::FocusInvertedSubtree(one) => Transform::FocusInvertedSubtree(path(one)),
            Transform::CollapseRecursion(one) => Transform::CollapseRecursion(func(one)),
            Transform::CollapseDirectRecursion(one) => Transform::CollapseDirectRecursion(func(one)),
            Transform::CollapseFunctionSubtree(one) => Transform::CollapseFunctionSubtree(func(one)),
            Transform::DropFunction(one) => Transform::DropFunction(func(one)),
            Transform::FocusCategory(one) => Transform::FocusCategory(self.category(*one)?),
            Transform::DropCategory(one) => Transform::DropCategory(self.category(*one)?),
            Transform::CollapseLib(one) => Transform::CollapseLib(self.lib(*one)?),
            Transform::OwnCode => Transform::OwnCode,
            Transform::MergeInlined => Transform::MergeInlined,
        })
    }
}

/// The name that identifies a function in both profiles.
fn comparable(name: &str) -> String {
    comparable_name(name).map_or_else(|| name.to_owned(), std::borrow::Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use nyquist_profile::{Func, ProfileBuilder};

    use super::*;

    fn profile(names: &[&str]) -> Profile {
        let mut builder = ProfileBuilder::new(nyquist_profile::Meta::default());
        for name in names {
            let name = builder.intern_string(name);
            builder.intern_func(Func::new(name, None));
        }
        builder.finish()
    }

    #[test]
    fn functions_are_those_of_the_same_names() {
        let (from, to) = (profile(&["a", "f::h0123456789abcdef"]), profile(&["f::hfedcba9876543210"]));
        let func = |index| FuncId::from_index(index);
        let selection = Selection {
            range: Some(3..4),
            transforms: vec![Transform::FocusFunction(func(1)), Transform::DropFunction(func(0))],
            ..Selection::default()
        };
        let expected = [Transform::FocusFunction(func(0)), Transform::DropFunction(func(1))];
        let translated = translated(&selection, &from, &to);
        assert_eq!((translated.range, &*translated.transforms), (None, &expected[..]));
    }
}
