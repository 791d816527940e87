//! There are no spools on these systems: a recording stays in memory until it ends.

use crate::args::SpoolArgs;
use crate::failure::Failure;
use crate::printer::Printer;
use nyquist_convert::Converter;
use nyquist_convert::event::Timestamp;
use std::convert::Infallible;

/// The spool of a recording, of which there is none here.
pub(crate) struct Spool(Infallible);

impl Spool {
    pub(crate) fn of(
        args: &SpoolArgs,
        _by_default: bool,
        _printer: Printer,
    ) -> Result<Option<Self>, Failure> {
        match args.spool {
            Some(_) => Err(Failure::new("`--spool` is not available on this system")
                .hint("docs/platforms.md says what there is on each system")),
            None => Ok(None),
        }
    }

    pub(crate) fn offer(&self, _converter: &Converter, _until: Timestamp) {
        match self.0 {}
    }

    pub(crate) fn remove(self) {
        match self.0 {}
    }
}
