//! The memory budget of the answers of one look-up. Hostile debug info can give each address a thousand
//! inlined calls, each with its own long name.

use crate::SourceFrame;
use crate::debug_answer::DebugAnswer;
use nyquist_resources::Charge;
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// Texts that are longer than this are counted once if answers share them. Shorter texts are counted each
/// time, which is faster.
const MIN_SHARED_LEN: usize = 1 << 10;

/// The memory that one thread may put into answers.
#[derive(Debug, Default)]
pub(crate) struct Allowance {
    /// The budget that all threads share. Without it, any amount is allowed.
    charge: Option<Arc<Charge>>,
    /// The addresses of the long texts that were counted.
    counted: FxHashSet<usize>,
}

impl Allowance {
    /// From now on, uses the rest of the charge that threads share for the answers of one module.
    pub(crate) fn charge_to(&mut self, charge: Option<&Arc<Charge>>) {
        self.charge = charge.cloned();
    }

    /// Whether the frames of one address fit into the budget.
    pub(crate) fn admits(&mut self, frames: &[SourceFrame]) -> bool {
        let Some(charge) = self.charge.clone() else { return true };
        let texts = frames.iter().flat_map(|frame| [&frame.function, &frame.file, &frame.declared_in]);
        let texts: usize = texts.flatten().map(|text| self.size(text)).sum();
        charge.take((size_of_val(frames) + texts) as u64)
    }

    /// The answer for an address, or an empty one if the allowance is used up.
    pub(crate) fn admitted(&mut self, found: DebugAnswer) -> DebugAnswer {
        if self.admits(&found.frames) { found } else { DebugAnswer::default() }
    }

    /// Whether one more name fits into the budget.
    pub(crate) fn admits_name(&mut self, name: &Arc<str>) -> bool {
        let size = self.size(name) as u64;
        self.charge.as_ref().is_none_or(|charge| charge.take(size))
    }

    fn size(&mut self, text: &Arc<str>) -> usize {
        if text.len() <= MIN_SHARED_LEN || self.counted.insert(text.as_ptr() as usize) {
            text.len()
        } else {
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nyquist_resources::Budget;

    #[test]
    fn long_names_are_counted_once() {
        let budget = Budget::new(100_000);
        let mut allowance = Allowance::default();
        allowance.charge_to(Some(&Arc::new(budget.charge())));
        let frame =
            |name: &Arc<str>| [SourceFrame { function: Some(name.clone()), ..SourceFrame::default() }];
        let long: Arc<str> = "x".repeat(60_000).into();
        assert!((0..100).all(|_| allowance.admits(&frame(&long))));
        let other: Arc<str> = "y".repeat(60_000).into();
        assert!(!allowance.admits(&frame(&other)));
        assert!(budget.was_refused());
        assert!(Allowance::default().admits(&frame(&other)));
    }
}
