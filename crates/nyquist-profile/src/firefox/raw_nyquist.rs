//! This program's extension of a file's `meta`: the member `nyquist`.

/// `meta.nyquist`, an extension of this program.
#[derive(Default, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RawNyquist {
    pub(super) lost_samples: f64,
    /// The unit of samples, if it is not CPU time.
    pub(super) measure: Option<RawMeasure>,
    /// Whether samples are at the starts of exact times.
    pub(super) has_exact_times: bool,
    /// The category that exists only for the front end.
    pub(super) idle_category: Option<usize>,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct RawMeasure {
    pub(super) name: String,
    pub(super) unit: String,
}
