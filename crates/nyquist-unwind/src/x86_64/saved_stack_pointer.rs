//! Where a function keeps its caller's stack pointer while its own is aligned, as functions in assembly do that
//! need 32 or 64 bytes of alignment.

use crate::rule::{CfaKind, Rule};

/// The numbers of the general registers in DWARF, by their numbers in instructions (System V ABI for AMD64, figure
/// 3.36).
const DWARF_NUMBERS: [i64; 16] = [0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15];

/// The registers that a called function may change, by their numbers in instructions.
const CALLER_SAVED: [u8; 9] = [0, 1, 2, 6, 7, 8, 9, 10, 11];

/// A place that holds an address in the frame, at a known distance from the CFA.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SavedStackPointer {
    /// A register, and how many words below the CFA the address in it is.
    register: Option<(u8, i64)>,
    /// How many bytes the stack pointer is below the place where it was aligned.
    lowered: Option<i64>,
    /// The distance in bytes from that place to a word, and how many words below the CFA the address in it is.
    word: Option<(i64, i64)>,
}

impl SavedStackPointer {
    /// Nothing is kept.
    pub(super) const NONE: Self = Self { register: None, lowered: None, word: None };

    /// The stack pointer is copied to a register, at this distance below the CFA, if that is known.
    #[inline]
    pub(super) fn copy(&mut self, to: u8, above_sp: Option<i64>) {
        self.overwrite(to);
        if let Some(words) = above_sp {
            self.register = Some((to, words));
        }
    }

    /// The stack pointer is aligned.
    pub(super) fn align(&mut self) {
        (self.lowered, self.word) = (Some(0), None);
    }

    /// The stack pointer is computed.
    #[inline]
    pub(super) fn lose(&mut self) {
        (self.lowered, self.word) = (None, None);
    }

    /// The stack pointer is lowered by bytes.
    #[inline]
    pub(super) fn lower(&mut self, bytes: i64) {
        self.lowered = self.lowered.and_then(|lowered| lowered.checked_add(bytes));
    }

    /// A register is written to the word at a distance above the stack pointer.
    pub(super) fn store(&mut self, from: u8, above_sp: i64) {
        let Some(at) = self.lowered.and_then(|lowered| above_sp.checked_sub(lowered)) else { return };
        match self.in_register(from) {
            Some(words) => self.word = Some((at, words)),
            None if self.word.is_some_and(|(word, _)| word == at) => self.word = None,
            None => {}
        }
    }

    /// A register gets another value.
    #[inline]
    pub(super) fn overwrite(&mut self, register: u8) {
        if self.register.is_some_and(|(saved_sp, _)| saved_sp == register) {
            self.register = None;
        }
    }

    /// A function is called.
    #[inline]
    pub(super) fn call(&mut self) {
        if self.register.is_some_and(|(saved_sp, _)| CALLER_SAVED.contains(&saved_sp)) {
            self.register = None;
        }
    }

    /// How many words below the CFA the address in a register is, if it is one that is kept.
    pub(super) fn in_register(&self, register: u8) -> Option<i64> {
        self.register.filter(|(saved_sp, _)| *saved_sp == register).map(|(_, words)| words)
    }

    /// The same of the word at a distance above the stack pointer.
    pub(super) fn in_word(&self, above_sp: i64) -> Option<i64> {
        let at = above_sp.checked_sub(self.lowered?)?;
        self.word.filter(|(word, _)| *word == at).map(|(_, words)| words)
    }

    /// How to find the CFA of a rule by the place, and the rule's operand.
    pub(super) fn cfa(&self) -> Option<(CfaKind, i32)> {
        let bytes = |words: i64| words.checked_mul(8);
        match (self.lowered?, self.word, self.register) {
            (lowered, Some((at, words)), _) => {
                let operand = Rule::halves(at.checked_add(lowered)?, bytes(words)?)?;
                Some((CfaKind::AtStackPointer, operand))
            }
            (_, None, Some((register, words))) => {
                let number = *DWARF_NUMBERS.get(usize::from(register))?;
                Some((CfaKind::Register, Rule::halves(bytes(words)?, number)?))
            }
            (_, None, None) => None,
        }
    }
}
