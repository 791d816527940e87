//! What holds for every profile, on profiles that are made by a generator; and comparisons of made recordings.

mod compare;
mod generator;
mod properties;
mod random;
