//! What the weights of samples count.

/// What the weights of samples count: a name and a unit. The default is CPU time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measure {
    /// Its name, as headings have it: `CPU time`, or as a file calls it, `inuse_space`.
    pub name: String,
    /// What one is: the sampling interval says how many of them a weight of 1 stands for.
    pub unit: Unit,
}

/// What something is counted in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Unit {
    /// Nanoseconds.
    #[default]
    Time,
    /// Bytes.
    Bytes,
    /// Things: objects, events, threads.
    Count,
}

impl Unit {
    /// All of them.
    const ALL: [Self; 3] = [Self::Time, Self::Bytes, Self::Count];

    /// What it is called in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Time => "ns",
            Self::Bytes => "bytes",
            Self::Count => "count",
        }
    }

    /// The unit that is called so.
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
