//! Where the files are that a written recording names.

use nyquist_symbols::Finder;
use std::path::Path;

/// Where the files are that the written records name.
#[derive(Clone, Copy, Debug)]
pub struct WriteOptions<'a> {
    /// Finds the binaries of the profile's libs.
    pub finder: &'a Finder,
    /// The folder in which the [stand-ins](super::StandIn) will be. The records have its path as it is given here.
    pub stand_ins: &'a Path,
}
