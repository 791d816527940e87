//! The formats that pprof had before `profile.proto`: CPU profiles of gperftools in binary, and profiles of
//! gperftools, of Go (`debug=1`) and of Java as text.
//!
//! They are described in <https://gperftools.github.io/gperftools/cpuprofile-fileformat.html>, and by the
//! source of Go's `runtime/pprof`.

mod cpu;
mod java;
mod maps;
mod stacks;
#[cfg(test)]
mod tests;
mod text;
mod threads;

pub(crate) use cpu::is_cpu;
pub use cpu::read_cpu;
pub(crate) use text::is_text;
pub use text::read_text;
