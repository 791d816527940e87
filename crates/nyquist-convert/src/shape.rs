//! The shape of a profile: its threads, their names, and the markers that are made for them.

/// The threads of a profile, their names, and the markers that are made for them. The default is one thread
/// for each thread that was sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own, named after what it does")]
pub struct Shape {
    /// Threads of the same name in one process, and processes of the same name, share a row if one begins
    /// after the other's end.
    pub reuse_threads: bool,
    /// Equal frames at the root of a stack are folded into one. They come from a recursion whose beginning
    /// was not reached. Stacks that only differ in its depth then become one.
    pub fold_recursive_prefix: bool,
    /// Each CPU also has its own thread, in a process [`CPU`](nyquist_profile::well_known::CPU_PROCESS), with
    /// all samples of that CPU.
    pub cpu_threads: bool,
    /// Only main threads are kept.
    pub main_threads_only: bool,
    /// How many of a program's arguments its process's name has. They are read from `/proc`, which only has
    /// those of living processes.
    pub program_arguments: usize,
    /// Each stay of a thread on a CPU becomes a marker, if the source reports context switches.
    pub switch_markers: bool,
    /// The time that threads are off the CPU is also shown, if the source reports context switches. It
    /// becomes samples of waiting, and markers if it is long.
    pub waits: bool,
    /// Each function that a just-in-time compiler has written to a jitdump becomes a marker on its process's
    /// main thread.
    pub jit_markers: bool,
}
