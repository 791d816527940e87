//! The measures of a profile that the page can show: what its samples measure, and each recorded event.

use nyquist_profile::{Measure, Profile};
use serde::Serialize;

use crate::viewed_profile::ViewedProfile;

/// The measures of a profile as it was recorded, whichever of them is shown.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct RecordedMeasures {
    /// The name of what samples measure.
    samples: String,
    /// The names of the events that were recorded besides.
    events: Vec<String>,
    /// The names of the markers that have stacks.
    #[serde(skip)]
    markers: Vec<String>,
}

/// What stands before the name of a kind of markers.
const MARKER: &str = "marker:";

impl RecordedMeasures {
    /// The measures of a profile. O(markers).
    pub(crate) fn of(profile: &Profile) -> Self {
        let Measure { name, .. } = &profile.meta().measure;
        let owned = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect();
        Self {
            samples: name.clone(),
            events: owned(profile.recorded_events()),
            markers: owned(profile.markers_with_stacks()),
        }
    }

    /// Whether an event of this name was recorded, or markers as `marker:NAME`.
    pub(crate) fn has_event(&self, name: &str) -> bool {
        self.events.iter().any(|event| event == name)
            || name.strip_prefix(MARKER).is_some_and(|marker| self.has_marker(marker))
    }

    /// Whether markers of this name have stacks.
    pub(crate) fn has_marker(&self, name: &str) -> bool {
        self.markers.iter().any(|marker| marker == name)
    }
}

/// The same profiles with the occurrences of an event, or with markers, instead of samples. `None` if it was not
/// recorded. A run to compare with is left out if it has no such event. O(stacks + markers × log markers).
pub(crate) fn of_event(viewed: &ViewedProfile, event: &str) -> Option<ViewedProfile> {
    let derived = |profile: &Profile| {
        let profile = profile.without_samples();
        match event.strip_prefix(MARKER) {
            Some(name) => profile.with_markers_as_samples(name),
            None => profile.with_event_as_samples(event),
        }
    };
    Some(ViewedProfile {
        profile: derived(&viewed.profile)?,
        before: viewed.before.as_ref().and_then(derived),
        until_ns: viewed.until_ns,
        files: viewed.files.clone(),
    })
}
