//! Properties of every profile, checked on generated profiles; and comparisons of generated recordings.

mod compare;
mod generator;
mod memory;
mod properties;
mod random;
