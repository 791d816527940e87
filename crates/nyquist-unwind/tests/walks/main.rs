//! Walks over stacks and unwind information made by hand, and at random.

mod aarch64;
mod hostile;
mod macho;
mod object;
mod pe;
mod pe_aarch64;
mod pe_image;
mod stepping;
