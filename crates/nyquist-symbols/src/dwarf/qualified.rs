//! Plain names of functions, qualified with the namespaces, types and functions that they are declared in.

use super::file::DwarfFile;
use super::nesting::Nesting;
use super::origins::{DebugInfoFile, EntryOrigin, NameForm, Origins};
use super::role::Qualifier;
use super::unit::Unit;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The greatest nesting depth of a name. A name that is nested deeper is not qualified.
const MAX_DEPTH: usize = 64;

/// The longest qualifier of a name. A name with a longer qualifier is not qualified.
const MAX_LEN: usize = 16 << 10;

/// An entry that contains others.
type ParentScope = (DebugInfoFile, u64, Qualifier);

/// The attributes of such an entry.
#[derive(Clone, Debug)]
struct ScopeEntry {
    name: Option<Arc<str>>,
    /// The line that it is declared at.
    line: Option<u64>,
    /// The entry around it. `None` if its name is complete.
    around: Option<ParentScope>,
}

/// Qualifies the names of functions of one unit.
#[derive(Default)]
pub(super) struct Qualifiers {
    /// The nesting of the unit's entries, as far as it was needed.
    nesting: Nesting,
    enclosing: FxHashMap<(DebugInfoFile, u64), ScopeEntry>,
}

impl Qualifiers {
    /// A plain name with its qualifiers, as C++ and Rust write it.
    pub(super) fn qualified(
        &mut self,
        origins: &mut Origins<'_>,
        declaration: (DebugInfoFile, u64),
        name: &Arc<str>,
    ) -> Arc<str> {
        self.qualifiers(origins, declaration, name)
            .map_or_else(|| name.clone(), |around| (around + name).into())
    }

    /// The qualifier of a name. `None` if nothing is around it, or too much.
    fn qualifiers(
        &mut self,
        origins: &mut Origins<'_>,
        (place, entry): (DebugInfoFile, u64),
        name: &str,
    ) -> Option<String> {
        let mut next = self.around(origins, place, entry);
        let mut parts: Vec<Arc<str>> = Vec::new();
        while let Some(around) = next {
            let ScopeEntry { name: own, line, around: outer } = self.enclosing(origins, around);
            let inner = parts.last().map_or(name, |part| part);
            parts.push(own.unwrap_or_else(|| unnamed(around.2, inner, line).into()));
            if parts.len() > MAX_DEPTH || parts.iter().map(|part| part.len()).sum::<usize>() > MAX_LEN {
                return None;
            }
            next = outer;
        }
        (!parts.is_empty()).then(|| parts.iter().rev().flat_map(|part| [part, "::"]).collect())
    }

    /// The attributes of an entry that contains others. They are cached, because many functions need the same
    /// entries.
    fn enclosing(&mut self, origins: &mut Origins<'_>, (place, entry, _): ParentScope) -> ScopeEntry {
        if let Some(known) = self.enclosing.get(&(place, entry)) {
            return known.clone();
        }
        // A linkage name has parameters, and may have the return type, so the plain name is used.
        let EntryOrigin { name, line, declaration, .. } = origins.follow((place, entry), NameForm::Plain);
        let is_complete = name.as_ref().is_some_and(|name| name.is_complete);
        let around = declaration.filter(|_| !is_complete);
        let around = around.and_then(|(place, entry)| self.around(origins, place, entry));
        let enclosing = ScopeEntry { name: name.map(|name| name.text), line, around };
        self.enclosing.insert((place, entry), enclosing.clone());
        enclosing
    }

    /// The entry around one.
    fn around(&mut self, origins: &Origins<'_>, place: DebugInfoFile, entry: u64) -> Option<ParentScope> {
        let own = origins.view.unit;
        let (start, found) = if place == DebugInfoFile::Own
            && (own.header.offset..own.header.end).contains(&entry)
        {
            let start = own.header.offset;
            (start, own.has_scopes().then(|| self.nesting.around_next(own, origins.entries, entry - start))?)
        } else {
            let unit = origins.unit_around(place, entry)?;
            let start = unit.header.offset;
            let file = place.file(&origins.view)?;
            (start, nesting(file, &unit)?.around(entry - start))
        };
        found.map(|(distance, qualifier)| (place, start + distance, qualifier))
    }
}

/// The nesting of the entries of a unit that others refer to. It is kept with the file.
fn nesting(file: &DwarfFile, unit: &Unit) -> Option<Arc<Nesting>> {
    let header = unit.header;
    if !unit.has_scopes() {
        return None;
    }
    file.origin_nestings.get(header.offset).unwrap_or_else(|| {
        let mut bytes = Vec::new();
        let entries = file.sections.info.slice(header.offset..header.end, &mut bytes);
        let nesting = entries.map(|entries| Nesting::of(unit, entries, |nodes| file.has_room_for(nodes)));
        file.origin_nestings.keep(header.offset, nesting.map(Arc::new))
    })
}

/// The stand-in for a missing name.
fn unnamed(qualifier: Qualifier, inner: &str, line: Option<u64>) -> String {
    let kind = match qualifier {
        Qualifier::Namespace => return "(anonymous namespace)".to_owned(),
        Qualifier::Function => "unnamed function",
        // The number of a lambda in its linkage name is not known. The line also distinguishes the lambdas of
        // a function.
        Qualifier::Type if inner.starts_with("operator()") => "lambda",
        Qualifier::Type => "unnamed type",
    };
    line.map_or_else(|| format!("{{{kind}}}"), |line| format!("{{{kind}:{line}}}"))
}
