//! A comparison of two sides, with the verdict on it.

use super::verdict::Verdict;
use crate::args::DiffArgs;
use crate::text::one_line;
use nyquist_analysis::Diff;
use nyquist_profile::Measure;

/// A comparison of two sides.
pub(super) struct Compared<'d, 'a> {
    /// The name of what was compared, if there are several.
    pub(super) name: Option<&'d str>,
    pub(super) diff: &'d Diff<'a>,
    pub(super) measure: &'d Measure,
    /// The verdict, if one was requested.
    pub(super) verdict: Option<Verdict<'d, 'a>>,
}

impl Compared<'_, '_> {
    /// The message about what became slower than is accepted.
    pub(super) fn failure(&self, args: &DiffArgs) -> Option<String> {
        let message = self.verdict.as_ref()?.failure(args.format.names())?;
        Some(match self.name {
            Some(name) => format!("{}: {message}", one_line(name)),
            None => message,
        })
    }
}
