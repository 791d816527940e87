//! Properties of every profile, checked on generated profiles; and comparisons of generated recordings.

mod compare;
mod memory;
mod properties;
