//! The symbol source over a profile's libs: what it serves of the disk, and what it knows of a real binary.

#[cfg(target_os = "linux")]
mod own_binary;
mod sources;
