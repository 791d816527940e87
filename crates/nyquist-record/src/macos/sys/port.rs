//! Rights to ports, which are given back when they are dropped.

use super::mach::{Name, mach_port_deallocate, mach_task_self_};

/// A send right to the port of a task or a thread.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Port(Name);

impl Port {
    /// Takes over a right that a call has given. `None` if it gave none: `MACH_PORT_NULL` is 0, and
    /// `MACH_PORT_DEAD` has all bits.
    pub(super) fn take_over(name: Name) -> Option<Self> {
        (name != 0 && name != Name::MAX).then_some(Self(name))
    }

    /// Its name in this process.
    pub(super) fn name(&self) -> Name {
        self.0
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        // SAFETY: the call takes numbers. It gives back one reference of a right, which this value owns; a name
        // that has become a dead name is released likewise.
        unsafe { mach_port_deallocate(mach_task_self_, self.0) };
    }
}
