//! The profile that the page shows, and the other run if two are compared.

use nyquist_profile::Profile;

/// The profile of requests.
pub(crate) struct ViewedProfile {
    pub(crate) profile: Profile,
    /// The other run of a comparison.
    pub(crate) before: Option<Profile>,
    /// For a running recording: its end so far, in ns since the profile's zero.
    pub(crate) until_ns: Option<u64>,
    pub(crate) files: FileNames,
}

impl ViewedProfile {
    /// A profile alone, which is complete.
    pub(crate) fn new(profile: Profile) -> Self {
        Self { profile, before: None, until_ns: None, files: FileNames::default() }
    }
}

/// The names of the files, as far as they are known.
#[derive(Clone, Debug, Default)]
pub(crate) struct FileNames {
    pub(crate) shown: Option<String>,
    /// That of the other run of a comparison.
    pub(crate) before: Option<String>,
}
