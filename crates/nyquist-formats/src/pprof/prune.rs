//! Frames that a pprof profile wants to be left out (`drop_frames`, `keep_frames`): allocators of a heap profile, which would
//! be the innermost function of every sample.

use regex::{Regex, RegexBuilder};

/// No pattern that a program writes is larger when it is compiled.
const SIZE_LIMIT: usize = 1 << 20;

/// Which functions are dropped.
#[derive(Debug, Default)]
pub(super) struct Prune {
    drop: Option<Regex>,
    keep: Option<Regex>,
}

/// What is dropped of a stack's frames at one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pruned {
    /// Nothing.
    None,
    /// All that is called from the first so many frames, the outermost of the address.
    From(usize),
}

impl Prune {
    /// The patterns of a file; an empty one is none. The number is that of those that are no regular expressions.
    pub(super) fn new(drop: &str, keep: &str) -> (Self, u64) {
        let (drop, keep) = (pattern(drop), pattern(keep));
        let invalid = u64::from(drop.is_err()) + u64::from(keep.is_err());
        (Self { drop: drop.unwrap_or_default(), keep: keep.unwrap_or_default() }, invalid)
    }

    /// Whether a function is dropped with all that it calls. Its arguments do not count.
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

/// A name of C++ without what stands in its last parentheses.
fn without_arguments(name: &str) -> &str {
    let Some(open) = name.find('(').filter(|&open| open > 0) else { return name };
    // A method of Go has its type in parentheses: `runtime.(*mheap).alloc`.
    if name[..open].ends_with('.') || name[..open].ends_with("::") { name } else { &name[..open] }
}

/// The locations of a stack, from the outermost to the innermost, with what is dropped at each: how many of them are kept
/// whole, and how many frames of the one after these. Nothing is dropped before the first location that is kept, so that no
/// stack is dropped whole.
pub(super) fn kept(locations: impl Iterator<Item = Pruned>) -> Option<(usize, usize)> {
    let mut has_kept = false;
    for (place, pruned) in locations.enumerate() {
        match pruned {
            Pruned::None => has_kept = true,
            Pruned::From(frames) if has_kept => return Some((place, frames)),
            Pruned::From(_) => {}
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
        use Pruned::{From, None};
        let check = |locations: &[Pruned], expected| assert_eq!(kept(locations.iter().copied()), expected);
        check(&[None, None], Option::None);
        check(&[None, From(0), None], Some((1, 0)));
        check(&[None, None, From(2)], Some((2, 2)));
        check(&[From(0), From(1)], Option::None);
        check(&[From(0), None, From(1)], Some((2, 1)));
    }
}
