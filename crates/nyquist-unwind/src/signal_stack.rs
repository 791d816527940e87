//! The stack of its own on which a thread handles signals (`sigaltstack`).

use nyquist_object::Avma;

/// The stack of its own on which a thread handles signals (`sigaltstack`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignalStack {
    /// The first address.
    pub start: Avma,
    /// The first address behind it.
    pub end: Avma,
    /// Where the kernel saves the stack pointer of the code that it interrupts. It is the same place for each
    /// signal that arrives while the thread is on its usual stack.
    pub pointer_at: Avma,
}

impl SignalStack {
    /// Whether a stack pointer is on this stack.
    pub fn holds(&self, stack_pointer: Avma) -> bool {
        self.start <= stack_pointer && stack_pointer < self.end
    }
}
