//! Where to find the files that a written recording names.

use nyquist_symbols::Finder;
use std::path::Path;

/// Where to find the files that the written records name.
#[derive(Clone, Copy, Debug)]
pub struct WriteOptions<'a> {
    /// Finds the binaries of the profile's libs.
    pub finder: &'a Finder,
    /// The folder in which the [stand-ins](super::StandIn) will be. The records contain this path unchanged.
    pub stand_ins: &'a Path,
}
