//! What a process belongs to, for formats that distinguish services.

/// The service of a process, and further labels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessLabels {
    /// The service.
    pub service: String,
    /// Keys and values.
    pub labels: Vec<(String, String)>,
}
