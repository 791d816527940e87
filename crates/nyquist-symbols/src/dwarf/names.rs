//! The names of functions: linkage names, or qualified plain names.

use super::function_name::FunctionName;
use super::origins::{DebugInfoFile, EntryOrigin, NameForm, Origins};
use super::qualified::Qualifiers;
use super::ranges::UnitView;
use rustc_hash::FxHashMap;

/// Names the functions of one unit.
pub(crate) struct UnitNames<'a> {
    origins: Origins<'a>,
    qualifiers: Qualifiers,
    known: FxHashMap<u64, Option<FunctionName>>,
}

impl<'a> UnitNames<'a> {
    pub(crate) fn new(view: UnitView<'a>, entries: &'a [u8]) -> Self {
        let (qualifiers, known) = Default::default();
        Self { origins: Origins::new(view, entries), qualifiers, known }
    }

    /// The name of the function or inlined call whose entry is at `entry` of `.debug_info`.
    pub(crate) fn name(&mut self, entry: u64) -> Option<FunctionName> {
        if let Some(known) = self.known.get(&entry) {
            return known.clone();
        }
        let header = self.origins.view.unit.header;
        let name = if (header.offset..header.end).contains(&entry) {
            self.find(entry).0
        } else {
            self.origin(entry)
        };
        self.known.insert(entry, name.clone());
        name
    }

    /// The name of an entry of another unit, to which many units may refer.
    fn origin(&mut self, entry: u64) -> Option<FunctionName> {
        let origins = &self.origins.view.file.origins;
        if let Some(known) = origins.get(entry) {
            return known;
        }
        match self.find(entry) {
            (name, true) => origins.keep(entry, name),
            (name, false) => name,
        }
    }

    /// The name of an entry, and whether only its own unit was used. Then the name is the same for all
    /// entries that refer to it.
    fn find(&mut self, entry: u64) -> (Option<FunctionName>, bool) {
        let EntryOrigin { name, declaration, is_unique, .. } =
            self.origins.follow((DebugInfoFile::Own, entry), NameForm::Linkage);
        let name = name.map(|name| match declaration {
            Some(declaration) if !name.is_complete => FunctionName {
                text: self.qualifiers.qualified(&mut self.origins, declaration, &name.text),
                ..name
            },
            _ => name,
        });
        (name, is_unique)
    }
}
