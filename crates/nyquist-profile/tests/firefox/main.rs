//! The Firefox Profiler's format: written, read and refused files.

mod bad_input;
mod check;
mod gecko;
mod javascript;
mod old_versions;
mod round_trip;
mod samply;
mod view;
