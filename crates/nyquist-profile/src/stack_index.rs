//! Finds a stack by its prefix and its frame.

use crate::code::Stack;
use crate::id::StackId;
use crate::row_index::{RowIndex, hash_of};

/// The indexes of stacks.
///
/// Most stacks have only one child, because deep calls do not branch. This child is found from its prefix
/// without a search. Roots and further children are found by their hashes.
#[derive(Clone, Debug, Default)]
pub(crate) struct StackIndex {
    /// For each stack, its first child. Stacks at the table's end that were appended without this index
    /// may be missing.
    first_children: Vec<Option<StackId>>,
    others: RowIndex,
}

impl StackIndex {
    /// The id of a stack, which is added to `table` if it is new. O(1).
    pub(crate) fn intern(&mut self, table: &mut Vec<Stack>, stack: Stack) -> StackId {
        let new = table.len();
        self.first_children.resize(new, None);
        let place = match stack.prefix {
            Some(prefix) => match &mut self.first_children[prefix.index()] {
                Some(child) if table[child.index()].frame == stack.frame => return *child,
                Some(_) => self.others.find_or_add(hash_of(&stack), new, |place| table[place] == stack),
                first @ None => {
                    *first = Some(StackId::from_index(new));
                    new
                }
            },
            None => self.others.find_or_add(hash_of(&stack), new, |place| table[place] == stack),
        };
        if place == new {
            table.push(stack);
            self.first_children.push(None);
        }
        StackId::from_index(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::FrameId;

    #[test]
    fn a_stack_that_was_appended_may_be_a_prefix() {
        let (mut index, mut table) = (StackIndex::default(), Vec::new());
        let frame = FrameId::from_index(0);
        table.push(Stack { prefix: None, frame });
        let prefix = Some(StackId::from_index(0));
        let child = index.intern(&mut table, Stack { prefix, frame });
        assert_eq!(index.intern(&mut table, Stack { prefix, frame }), child);
        assert_eq!(table.len(), 2);
    }

    #[test]
    fn roots_and_all_children_are_found_again() {
        let (mut index, mut table) = (StackIndex::default(), Vec::new());
        let mut intern =
            |prefix, frame| index.intern(&mut table, Stack { prefix, frame: FrameId::from_index(frame) });
        let mut all = Vec::new();
        for root in 0..3 {
            let root = intern(None, root);
            all.push(root);
            for child in 0..4 {
                let child = intern(Some(root), child);
                all.extend([child, intern(Some(child), 0)]);
            }
        }
        let again: Vec<_> = (0..3)
            .flat_map(|root| {
                let root = intern(None, root);
                let mut found = vec![root];
                for child in 0..4 {
                    let child = intern(Some(root), child);
                    found.extend([child, intern(Some(child), 0)]);
                }
                found
            })
            .collect();
        assert_eq!(again, all);
        assert_eq!(table.len(), 3 * 9);
        assert!(
            table.iter().enumerate().all(|(place, stack)| stack.prefix.is_none_or(|p| p.index() < place))
        );
    }
}
