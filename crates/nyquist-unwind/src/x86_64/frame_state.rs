//! The state of a function's frame, as its instructions change it.

use super::saved_stack_pointer::SavedStackPointer;
use crate::rule::{CfaKind, Rule, SavedFramePointer};

/// Bytes of a word.
const WORD: i64 = 8;

/// The state of a function's frame before one of its instructions. Distances are in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameState {
    /// The distance from the stack pointer to the CFA, unless the stack pointer was computed.
    pub(super) above_sp: Option<i64>,
    /// The distance from the frame pointer to the CFA, if the frame pointer is set up.
    pub(super) above_fp: Option<i64>,
    /// How far below the CFA the caller's frame pointer is saved. If `None`, it is still in its register.
    pub(super) saved: Option<i64>,
    /// Where the caller's stack pointer is kept while neither distance is known.
    pub(super) saved_sp: SavedStackPointer,
}

impl FrameState {
    /// The state at a function's first instruction.
    pub(crate) const ENTRY: Self =
        Self { above_sp: Some(1), above_fp: None, saved: None, saved_sp: SavedStackPointer::NONE };

    /// Whether only the return address is on the stack.
    #[inline]
    pub(super) fn is_entered(self) -> bool {
        self.above_sp == Self::ENTRY.above_sp
    }

    /// The rule that finds the caller's frame from this state.
    #[inline]
    pub(super) fn rule(self) -> Rule {
        let above = |kind, words: i64| {
            let operand = i32::try_from(words.checked_mul(WORD)?).ok()?;
            (words > 0).then_some((kind, operand))
        };
        let cfa = match (self.above_sp, self.above_fp) {
            (Some(words), _) => above(CfaKind::StackPointer, words),
            (None, Some(words)) => above(CfaKind::FramePointer, words),
            (None, None) => self.saved_sp.cfa(),
        };
        let rule = cfa.and_then(|(kind, operand)| match self.saved {
            None => Rule::new(kind, operand, SavedFramePointer::InRegister, 0),
            Some(words) => Rule::new(kind, operand, SavedFramePointer::FromCfa, words.checked_mul(-WORD)?),
        });
        rule.unwrap_or(Rule::UNCOVERED)
    }

    /// Lowers the stack pointer by bytes, or raises it if they are negative.
    #[inline]
    pub(super) fn lower(&mut self, bytes: i64) {
        let words = (bytes % WORD == 0).then_some(bytes / WORD);
        self.above_sp = self.above_sp.zip(words).and_then(|(above, words)| above.checked_add(words));
        self.saved_sp.lower(bytes);
    }

    /// The stack pointer is computed.
    #[inline]
    pub(super) fn lose_sp(&mut self) {
        self.above_sp = None;
        self.saved_sp.lose();
    }

    /// The stack pointer is aligned.
    pub(super) fn align_sp(&mut self) {
        self.above_sp = None;
        self.saved_sp.align();
    }

    /// Sets the stack pointer to an address so many words below the CFA, if that is known.
    pub(super) fn set_sp(&mut self, above: Option<i64>) {
        self.saved_sp.lose();
        self.above_sp = above;
    }

    /// Applies a push; `is_fp` is whether of the frame pointer.
    #[inline]
    pub(super) fn push(&mut self, is_fp: bool) {
        self.lower(WORD);
        if is_fp && self.saved.is_none() && self.above_fp.is_none() {
            self.saved = self.above_sp;
        }
    }

    /// Applies a pop; `is_fp` is whether into the frame pointer.
    #[inline]
    pub(super) fn pop(&mut self, is_fp: bool) {
        // A pop at another place only removes an unused word.
        if is_fp && (self.above_sp.is_none() || self.above_sp == self.saved) {
            (self.saved, self.above_fp) = (None, None);
        }
        self.lower(-WORD);
    }

    /// Sets the stack pointer to the frame pointer plus a displacement.
    #[inline]
    pub(super) fn sp_from_fp(&mut self, displacement: i64) {
        self.set_sp(self.above_fp);
        self.lower(-displacement);
    }
}
