//! What `nyquist ctl` and a recording say to each other: a line with the action, and a line of JSON.

use crate::args::CtlAction;
use crate::text::{Text, one_line};
use clap::ValueEnum as _;
use serde::{Deserialize, Serialize};

/// The answer of a recording.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct CtlAnswer {
    /// [`CtlAnswer::SCHEMA`].
    pub(crate) schema: String,
    /// The number of the recording process.
    pub(crate) pid: u32,
    /// `recording` or `paused`.
    pub(crate) state: String,
    /// How long ago it began.
    pub(crate) seconds: f64,
    /// How much of it is kept, if not all.
    pub(crate) keeps_seconds: Option<f64>,
    /// How many profiles were saved while it ran.
    pub(crate) saves: u32,
    /// The profile that was saved now.
    pub(crate) saved: Option<String>,
    /// Why the action was not carried out.
    pub(crate) error: Option<String>,
}

impl CtlAnswer {
    /// The name and version of this form.
    pub(crate) const SCHEMA: &str = "nyquist-ctl/1";

    /// One line for people.
    pub(super) fn text(&self) -> Text {
        if let Some(path) = &self.saved {
            return Text::from(format!("saved {}\n", one_line(path)));
        }
        let state = if self.state == "paused" { "pauses" } else { "records" };
        let retained = self.keeps_seconds.map(|retained| format!(", keeps the last {retained} s"));
        let saves = (self.saves > 0).then(|| format!(", profiles saved so far: {}", self.saves));
        let [retained, saves] = [retained, saves].map(Option::unwrap_or_default);
        Text::from(format!("{} {state}, began {:.1} s ago{retained}{saves}\n", self.pid, self.seconds))
    }
}

/// The action that a line names.
pub(super) fn action(line: &str) -> Option<CtlAction> {
    CtlAction::from_str(line.trim(), false).ok()
}
