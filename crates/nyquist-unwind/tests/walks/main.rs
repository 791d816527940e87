//! Walks over stacks and unwind information made by hand, and at random.

mod hostile;
mod object;
mod pe;
mod stepping;
