//! The tables of a profile, and the Firefox Profiler's format.
