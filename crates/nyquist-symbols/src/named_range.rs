//! Pieces of code with names, from any source.

use std::ops::Range;

/// A piece of code whose name is not in a symbol table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedRange {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// The linker's name.
    pub(crate) name: Vec<u8>,
}

/// Public functions as pieces of code, each up to the next one or to the end of its section.
pub(crate) fn up_to_next(mut functions: Vec<(u64, Vec<u8>)>, sections: &[Range<u64>]) -> Vec<NamedRange> {
    functions.sort();
    let starts: Vec<u64> = functions.iter().map(|(start, _)| *start).collect();
    let mut ranges = Vec::with_capacity(functions.len());
    for (start, name) in functions {
        let next = starts.get(starts.partition_point(|other| *other <= start)).copied();
        let section = sections.iter().find(|section| section.contains(&start)).map(|section| section.end);
        let Some(end) = next.into_iter().chain(section).min() else { continue };
        ranges.push(NamedRange { start, end, name });
    }
    ranges
}
