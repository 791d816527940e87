//! The names of source files in other formats.

use nyquist_profile::{Profile, SourceId};
use std::borrow::Cow;

/// The names of a profile's source files in other formats: this path if there is one, otherwise the name in
/// the profile. The Firefox Profiler has names for published files that other tools would treat as paths
/// (`cargo:REGISTRY:NAME-VERSION:PATH`).
pub type SourcePaths<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Keeps the profile's names of source files.
pub fn as_named(_: &str) -> Option<String> {
    None
}

/// The path of a source file of a profile.
pub(crate) fn source_path<'a>(
    profile: &'a Profile,
    source: SourceId,
    paths: SourcePaths<'_>,
) -> Cow<'a, str> {
    let named = profile.string(profile.source(source).filename);
    paths(named).map_or(Cow::Borrowed(named), Cow::Owned)
}
