//! The Firefox Profiler's format: what is written, read and refused.

mod round_trip;
mod support;
