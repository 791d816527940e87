//! The formats that pprof had before `profile.proto`: CPU profiles of gperftools in binary, and profiles of
//! gperftools and of Go as text (`debug=1`).
//!
//! They are described in <https://gperftools.github.io/gperftools/cpuprofile-fileformat.html>, and by the
//! source of Go's `runtime/pprof`.

mod cpu;
mod maps;
mod stacks;
#[cfg(test)]
mod tests;
mod text;

pub(crate) use cpu::is_cpu;
pub use cpu::read_cpu;
pub(crate) use text::is_text;
pub use text::read_text;
