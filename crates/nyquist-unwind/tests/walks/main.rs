//! Walks over handmade and random stacks and unwind information.

mod aarch64;
mod compiled_at_run_time;
mod hostile;
mod macho;
mod object;
mod pe;
mod pe_aarch64;
mod pe_image;
mod stepping;
