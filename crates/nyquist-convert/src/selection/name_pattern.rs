//! Patterns of names, with `*` and `?`.

/// A process name in which `*` stands for any characters, and `?` for one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamePattern {
    pattern: Vec<char>,
}

impl NamePattern {
    /// A pattern as it was written.
    pub fn new(pattern: &str) -> Self {
        Self { pattern: pattern.chars().collect() }
    }

    /// The pattern as it was written.
    pub(super) fn to_text(&self) -> String {
        self.pattern.iter().collect()
    }

    /// Whether a whole name matches the pattern. Takes time linear in the name's length for each `*`.
    pub fn matches(&self, name: &str) -> bool {
        let name: Vec<char> = name.chars().collect();
        let (mut at, mut position) = (0, 0);
        // Where the last `*` is, and the end of the text that it matches so far.
        let mut star: Option<(usize, usize)> = None;
        while let Some(&character) = name.get(position) {
            match self.pattern.get(at) {
                Some('*') => {
                    star = Some((at, position));
                    at += 1;
                }
                Some(&requested) if requested == character || requested == '?' => {
                    at += 1;
                    position += 1;
                }
                _ => {
                    let Some((place, reach)) = &mut star else { return false };
                    *reach += 1;
                    (at, position) = (*place + 1, *reach);
                }
            }
        }
        self.pattern.get(at..).is_some_and(|rest| rest.iter().all(|character| *character == '*'))
    }
}

#[cfg(test)]
mod tests {
    use super::NamePattern;

    #[test]
    fn patterns_match_whole_names() {
        let check = |pattern: &str, matching: &[&str], others: &[&str]| {
            let pattern = NamePattern::new(pattern);
            assert_eq!(matching.iter().find(|name| !pattern.matches(name)), None, "{pattern:?}");
            assert_eq!(others.iter().find(|name| pattern.matches(name)), None, "{pattern:?}");
        };
        check("make", &["make"], &["makefile", "gmake", ""]);
        check("cc*", &["cc", "cc1", "cc1plus"], &["gcc", "c"]);
        check("*a*b", &["ab", "xaxbxb", "aabb"], &["abx", "b", "ba"]);
        check("???", &["abc", "äöü"], &["ab", "abcd"]);
        check("*", &["", "x"], &[]);
        check("", &[""], &["x"]);
    }
}
