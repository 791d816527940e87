//! The rules that were found for single addresses of code that is made at run time.

use crate::rule::Rule;
use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

/// The most rules that are found for one piece of code. So a program whose code is made to be searched costs a limited
/// time.
const MAX_RULES: usize = 8192;

/// The rules of one piece of code, by relative address: [`Rule::UNCOVERED`] if none was found.
#[derive(Debug, Default)]
pub(crate) struct FoundRules(RwLock<BTreeMap<u32, Rule>>);

impl FoundRules {
    /// The rule at an address. `find` finds it, if it is not known, and if not too many were found before.
    pub(crate) fn get(&self, address: u32, find: impl FnOnce() -> Option<Rule>) -> Option<Rule> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner).get(&address).copied();
        let rule = known.unwrap_or_else(|| self.add(address, find));
        Some(rule).filter(|rule| *rule != Rule::UNCOVERED)
    }

    fn add(&self, address: u32, find: impl FnOnce() -> Option<Rule>) -> Rule {
        let mut rules = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if rules.len() >= MAX_RULES {
            return Rule::UNCOVERED;
        }
        *rules.entry(address).or_insert_with(|| find().unwrap_or(Rule::UNCOVERED))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_found_once() {
        let rules = FoundRules::default();
        assert_eq!(rules.get(7, || Some(Rule::FRAME_RECORD)), Some(Rule::FRAME_RECORD));
        assert_eq!(rules.get(7, || unreachable!("it is known")), Some(Rule::FRAME_RECORD));
        assert_eq!(rules.get(8, || None), None);
        assert_eq!(rules.get(8, || unreachable!("it is known")), None);
    }

    #[test]
    fn rules_are_found_for_a_limited_number() {
        let rules = FoundRules::default();
        for address in 0..MAX_RULES as u32 {
            rules.get(address, || Some(Rule::FRAME_RECORD));
        }
        assert_eq!(rules.get(u32::MAX, || unreachable!("there are enough")), None);
        assert_eq!(rules.get(0, || unreachable!("it is known")), Some(Rule::FRAME_RECORD));
    }
}
