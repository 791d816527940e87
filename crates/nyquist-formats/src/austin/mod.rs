//! Austin's samples of Python programs, as text and in its binary form (MOJO).

mod events;
mod mojo;
mod samples;
mod text;

pub(crate) use mojo::is_mojo;
pub use mojo::read_value as read_mojo;
pub(crate) use text::is_sample;
pub use text::{read, read_value};
