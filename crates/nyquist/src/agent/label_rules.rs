//! Which labels are sent: each label is a series of its own on the other side.

use crate::args::AgentArgs;

/// The rules of `--drop-label` and `--keep-label`.
#[derive(Clone, Debug, Default)]
pub(super) struct LabelRules {
    drop: Vec<String>,
    /// Empty: all.
    keep: Vec<String>,
}

impl LabelRules {
    pub(super) fn of(args: &AgentArgs) -> Self {
        Self { drop: args.drop_label.clone(), keep: args.keep_label.clone() }
    }

    /// Whether a label with this key is sent.
    pub(super) fn allow(&self, key: &str) -> bool {
        let is_in = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, key));
        (self.keep.is_empty() || is_in(&self.keep)) && !is_in(&self.drop)
    }
}

/// Whether a pattern, in which `*` stands for any text, matches all of a key. O(length of both).
fn matches(pattern: &str, key: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == key };
    let (middle, end) = rest.rsplit_once('*').unwrap_or(("", rest));
    let inner = key.strip_prefix(start).and_then(|key| key.strip_suffix(end));
    inner.is_some_and(|inner| contains_in_order(inner, middle.split('*')))
}

fn contains_in_order<'p>(text: &str, mut parts: impl Iterator<Item = &'p str>) -> bool {
    parts.try_fold(text, |text, part| text.split_once(part).map(|(_, rest)| rest)).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, key) in
            [("k8s.*", "k8s.pod.uid"), ("*", ""), ("*", "x"), ("a*b*c", "a1b2c"), ("a**c", "ac"), ("a", "a")]
        {
            assert!(matches(pattern, key), "{pattern} {key}");
        }
        for (pattern, key) in
            [("k8s.*", "k8s"), ("a", "ab"), ("", "a"), ("a*a", "a"), ("a*b*c", "acb"), ("*b*b", "ab")]
        {
            assert!(!matches(pattern, key), "{pattern} {key}");
        }
    }

    #[test]
    fn dropped_labels_are_left_out_of_kept_ones() {
        let rules = |drop: &[&str], keep: &[&str]| {
            let owned = |patterns: &[&str]| patterns.iter().map(|it| (*it).to_owned()).collect();
            LabelRules { drop: owned(drop), keep: owned(keep) }
        };
        assert!(rules(&[], &[]).allow("env"));
        assert!(!rules(&["container.*"], &[]).allow("container.id"));
        let both = rules(&["k8s.pod.uid"], &["k8s.*"]);
        assert_eq!(["k8s.node", "k8s.pod.uid", "env"].map(|key| both.allow(key)), [true, false, false]);
    }
}
