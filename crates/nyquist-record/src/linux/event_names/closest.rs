//! The names that are nearest to one that nothing has.

/// How many names are told.
const MOST: usize = 5;

/// The names that differ least from a word, nearest first: those that take few changes, and those that have it as a part.
/// Takes time by the product of the lengths, for each name.
pub fn closest<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let word: String = word.chars().take(64).collect::<String>().to_lowercase();
    // A third of its letters may be wrong.
    let most = (word.chars().count() / 3).clamp(1, 4);
    let rank = |name: &str| {
        let lower = name.to_lowercase();
        let distance = distance(&word, &lower, most);
        let part = (word.len() >= 3 && lower.contains(&word)).then_some(most + 1);
        distance.or(part)
    };
    let mut ranked: Vec<_> = names.filter_map(|name| Some((rank(name)?, name))).collect();
    ranked.sort_unstable();
    ranked.dedup();
    ranked.into_iter().take(MOST).map(|(_, name)| name.to_owned()).collect()
}

/// How many letters must be changed, added, removed, or swapped with the next one to make a name of another, if no more
/// than `most` (optimal string alignment).
fn distance(from: &str, to: &str, most: usize) -> Option<usize> {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    if from.len().abs_diff(to.len()) > most {
        return None;
    }
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=to.len()).collect();
    for row in 1..=from.len() {
        let mut next = vec![row];
        for column in 1..=to.len() {
            let is_other = usize::from(from[row - 1] != to[column - 1]);
            let mut least = (last[column] + 1).min(next[column - 1] + 1).min(last[column - 1] + is_other);
            let is_swapped =
                row > 1 && column > 1 && from[row - 1] == to[column - 2] && from[row - 2] == to[column - 1];
            if is_swapped {
                least = least.min(before_last[column - 2] + 1);
            }
            next.push(least);
        }
        before_last = std::mem::replace(&mut last, next);
    }
    last.pop().filter(|distance| *distance <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_counted() {
        let check = |from, to, expected| assert_eq!(distance(from, to, 3), expected, "{from} {to}");
        check("cycles", "cycles", Some(0));
        check("cyclse", "cycles", Some(1));
        check("cylces", "cycles", Some(1));
        check("cycle", "cycles", Some(1));
        check("kitten", "sitting", Some(3));
        check("", "abc", Some(3));
        check("abc", "xyzw", None);
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
