//! The symbol source for a profile's libs: the files that it serves, and its symbols of a real binary.

#[cfg(target_os = "linux")]
mod own_binary;
mod sources;
