//! The rules that were found for single addresses of code that is made at run time.

use crate::rule::Rule;
use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

/// The most rules that are kept for one piece of code.
const MAX_RULES: usize = 2048;

/// The rules of one piece of code, by relative address. `None` if none was found.
#[derive(Debug, Default)]
pub(crate) struct FoundRules(RwLock<BTreeMap<u32, Option<Rule>>>);

impl FoundRules {
    /// The rule at an address. `find` finds it, if it is not known.
    pub(crate) fn get(&self, address: u32, find: impl FnOnce() -> Option<Rule>) -> Option<Rule> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner).get(&address).copied();
        known.unwrap_or_else(|| {
            let found = find();
            let mut rules = self.0.write().unwrap_or_else(PoisonError::into_inner);
            if rules.len() < MAX_RULES {
                rules.insert(address, found);
            }
            found
        })
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
}
