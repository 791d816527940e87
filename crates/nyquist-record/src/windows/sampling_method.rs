//! How threads are sampled on Windows.

/// How threads are sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SamplingMethod {
    /// By suspending them, without more rights than those of the user.
    #[default]
    Suspend,
    /// By the kernel's events (ETW), for which Windows asks for an administrator.
    Etw {
        /// Whether context switches are recorded.
        waits: bool,
    },
}
