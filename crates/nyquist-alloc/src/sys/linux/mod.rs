//! Recording on Linux.

mod arch;
#[cfg(nyquist_preloaded)]
mod bootstrap;
mod calls;
mod code_map;
mod distance;
#[cfg(nyquist_preloaded)]
mod hooks;
mod known_stacks;
mod last_stack;
#[cfg(nyquist_preloaded)]
mod next;
#[cfg(all(nyquist_preloaded, nyquist_operators))]
mod operators;
mod process;
mod recorder;
mod shared;
mod stack;
mod thread;

#[cfg(not(nyquist_preloaded))]
pub(super) use arch::here;
#[cfg(not(nyquist_preloaded))]
pub(super) use recorder::{allocated, is_off, release, restore};
