//! The symbol source over a profile's libs: what it serves of the disk, and what it knows of a real binary.

mod sources;
