//! The unit of the weights of samples.

/// What the weights of samples measure: a name and a unit. The default is CPU time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measure {
    /// Its name for headings: `CPU time`, or the name in a file, such as `inuse_space`.
    pub name: String,
    /// Its unit. A weight of 1 stands for as many of them as the sampling interval.
    pub unit: Unit,
}

/// A unit of measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Unit {
    /// Nanoseconds.
    #[default]
    Time,
    /// Bytes.
    Bytes,
    /// Countable items: objects, events, threads.
    Count,
}

impl Unit {
    /// All of them.
    const ALL: [Self; 3] = [Self::Time, Self::Bytes, Self::Count];

    /// The name in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Time => "ns",
            Self::Bytes => "bytes",
            Self::Count => "count",
        }
    }

    /// The unit with that name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|unit| unit.as_str() == name)
    }
}

impl Measure {
    /// Whether it is CPU time, and nothing else.
    pub fn is_cpu_time(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for Measure {
    fn default() -> Self {
        Self { name: "CPU time".into(), unit: Unit::Time }
    }
}
