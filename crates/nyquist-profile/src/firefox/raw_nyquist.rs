//! What of a file's `meta` is ours: the member `nyquist`.

/// `meta.nyquist`, which is ours.
#[derive(Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawNyquist {
    pub(super) lost_samples: f64,
    /// What samples count, if it is not CPU time.
    pub(super) measure: Option<RawMeasure>,
    /// Whether samples are at the beginnings of exact times.
    pub(super) has_exact_times: bool,
    /// The category that is there for the front end alone.
    pub(super) idle_category: Option<usize>,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct RawMeasure {
    pub(super) name: String,
    pub(super) unit: String,
}
