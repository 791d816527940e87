//! The Firefox Profiler's format: what is written, read and refused.

mod bad_input;
mod check;
mod gecko;
mod javascript;
mod old_versions;
mod round_trip;
mod samply;
mod support;
mod view;
