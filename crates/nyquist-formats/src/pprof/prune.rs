//! Drops frames that a pprof profile marks (`drop_frames`, `keep_frames`). An example are allocators in a
//! heap profile, which would be the innermost functions of all samples.

use regex::{Regex, RegexBuilder};

/// The maximum size of a compiled pattern, which no real pattern exceeds.
const SIZE_LIMIT: usize = 1 << 20;

/// The functions that are dropped.
#[derive(Debug, Default)]
pub(super) struct Prune {
    drop: Option<Regex>,
    keep: Option<Regex>,
}

/// The frames of a stack at one address that are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PrunedFrames {
    /// Nothing.
    None,
    /// All frames after this number of outermost frames of the address, and their callees.
    From(usize),
}

impl Prune {
    /// The patterns of a file. An empty one is ignored. Also returns the number of invalid regular
    /// expressions.
    pub(super) fn new(drop: &str, keep: &str) -> (Self, u64) {
        let (drop, keep) = (pattern(drop), pattern(keep));
        let invalid = u64::from(drop.is_err()) + u64::from(keep.is_err());
        (Self { drop: drop.unwrap_or_default(), keep: keep.unwrap_or_default() }, invalid)
    }

    /// Whether a function is dropped with its callees. Its arguments are ignored.
    pub(super) fn drops(&self, name: &str) -> bool {
        let Some(drop) = &self.drop else { return false };
        let name = without_arguments(name);
        !name.is_empty() && drop.is_match(name) && !self.keep.as_ref().is_some_and(|keep| keep.is_match(name))
    }
}

/// A pattern that matches whole names.
fn pattern(text: &str) -> Result<Option<Regex>, regex::Error> {
    if text.is_empty() {
        return Ok(None);
    }
    RegexBuilder::new(&format!("^(?:{text})$")).size_limit(SIZE_LIMIT).build().map(Some)
}

/// A C++ name without its last parentheses and their contents.
fn without_arguments(name: &str) -> &str {
    let Some(open) = name.find('(').filter(|&open| open > 0) else { return name };
    // A Go method has its type in parentheses: `runtime.(*mheap).alloc`.
    if name[..open].ends_with('.') || name[..open].ends_with("::") { name } else { &name[..open] }
}

/// Given the drops of a stack's locations, from the outermost to the innermost: how many locations are kept
/// completely, and how many frames of the next one. Nothing is dropped before the first location that is
/// kept, so that no stack is dropped completely.
pub(super) fn kept_part(locations: impl Iterator<Item = PrunedFrames>) -> Option<(usize, usize)> {
    let mut has_kept = false;
    for (place, pruned) in locations.enumerate() {
        match pruned {
            PrunedFrames::None => has_kept = true,
            PrunedFrames::From(frames) if has_kept => return Some((place, frames)),
            PrunedFrames::From(_) => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_of_whole_names() {
        let (prune, invalid) = Prune::new(r"malloc|operator new.*|runtime\..*", r"runtime\.panic");
        assert_eq!(invalid, 0);
        for name in ["malloc", "malloc(unsigned long)", "operator new[]", "runtime.(*mheap).alloc"] {
            assert!(prune.drops(name), "{name}");
        }
        for name in ["my_malloc", "mallocs", "runtime.panic", "runtime", "", "(anonymous)"] {
            assert!(!prune.drops(name), "{name}");
        }
        let (none, invalid) = Prune::new("(", "");
        assert!(invalid == 1 && !none.drops("("));
    }

    #[test]
    fn callees_of_a_dropped_function_are_dropped_too() {
        use PrunedFrames::{From, None};
        let check =
            |locations: &[PrunedFrames], expected| assert_eq!(kept_part(locations.iter().copied()), expected);
        check(&[None, None], Option::None);
        check(&[None, From(0), None], Some((1, 0)));
        check(&[None, None, From(2)], Some((2, 2)));
        check(&[From(0), From(1)], Option::None);
        check(&[From(0), None, From(1)], Some((2, 1)));
    }
}
