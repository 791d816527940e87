//! The names that are most similar to an unknown one.

use std::collections::BTreeSet;

use strsim::osa_distance;

/// How many names are returned.
const MAX_NAMES: usize = 5;

/// The names that differ least from a word, nearest first: those within few edits, and those that contain it.
/// The time for each name is proportional to the product of the lengths, and no more than the nearest are kept.
pub fn closest<S: AsRef<str>>(word: &str, names: impl Iterator<Item = S>) -> Vec<String> {
    let word: String = word.chars().take(64).collect::<String>().to_lowercase();
    // A third of its letters may be wrong.
    let most = (word.chars().count() / 3).clamp(1, 4);
    let rank = |name: &str| {
        let lower = name.to_lowercase();
        // A name in a program may have any length.
        let is_near = lower.len().abs_diff(word.len()) <= 4 * most;
        let distance = is_near.then(|| osa_distance(&word, &lower)).filter(|distance| *distance <= most);
        let part = (word.len() >= 3 && lower.contains(&word)).then_some(most + 1);
        distance.or(part)
    };
    let mut nearest = BTreeSet::new();
    for name in names {
        let name = name.as_ref();
        let Some(rank) = rank(name) else { continue };
        nearest.insert((rank, name.to_owned()));
        if nearest.len() > MAX_NAMES {
            nearest.pop_last();
        }
    }
    nearest.into_iter().map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_and_swapped_letters_are_few_changes() {
        let nearest = |word: &str| closest(word, ["cycles", "sitting"].into_iter());
        for word in ["cycles", "cyclse", "cylces", "cycle", "CYCLES"] {
            assert_eq!(nearest(word), ["cycles"], "{word}");
        }
        assert!(nearest("kitten").is_empty(), "three changes of six letters");
    }

    #[test]
    fn the_nearest_comes_first() {
        let names = ["cycles", "ref-cycles", "bus-cycles", "instructions"];
        assert_eq!(closest("cyclse", names.into_iter()), ["cycles"]);
        assert_eq!(closest("cycles", names.into_iter()), ["cycles", "bus-cycles", "ref-cycles"]);
        assert!(closest("zzzzzz", names.into_iter()).is_empty());
        assert!(closest("", names.into_iter()).is_empty());
    }
}
