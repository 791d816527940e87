//! The user that a command runs as.

/// A user with its groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// The user.
    pub uid: u32,
    /// The user's primary group.
    pub gid: u32,
    /// The supplementary groups.
    pub groups: Vec<u32>,
}
