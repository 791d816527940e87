//! Code that is generated at run time: which function is at an address, at a time.
//!
//! Just-in-time compilers describe their code in one of two kinds of files. A *jitdump* holds each piece of
//! code with the time at which it was made or moved. It becomes a lib whose relative addresses are the code's
//! offsets in the file. A *perf map* only has addresses and names, and is read when the recording ends. It
//! becomes a lib for each 2 GiB of addresses that it names.

pub(crate) mod aux_files;
pub(crate) mod dump;
pub(crate) mod dumps;
pub(crate) mod id;
pub(crate) mod instructions;
pub(crate) mod map_file;
pub(crate) mod map_search;
pub(crate) mod naming;
mod runtime;
pub(crate) mod saved;
pub(crate) mod side_file_notes;
pub(crate) mod symbols;
pub(crate) mod unwindable_code;
// Only Linux has jitdumps and perf maps.
#[cfg(all(test, target_os = "linux"))]
pub(crate) mod tests;
