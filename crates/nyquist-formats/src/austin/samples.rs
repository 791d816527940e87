//! Common code for both forms of Austin's files: which value is read, and samples by thread.

use nyquist_profile::{Measure, StackId, ThreadIndex, Unit};
use rustc_hash::FxHashMap;

use crate::error::{ImportedProfile, Note, ReadError};
use crate::import::{Importer, ThreadName};
use crate::values::{SampleQueue, SampleValueKind, choose};

/// What the samples count, by the file's metadata `mode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum AustinMode {
    #[default]
    Wall,
    Cpu,
    Memory,
    /// Three values for each sample: its length, whether the thread was idle, and the growth of memory.
    Full,
}

impl AustinMode {
    /// The mode with this name in the metadata. Austin's default is wall time.
    pub(super) fn of(name: &str) -> Self {
        match name.trim() {
            "cpu" => Self::Cpu,
            "memory" => Self::Memory,
            "full" => Self::Full,
            _ => Self::Wall,
        }
    }
}

/// The value that is read of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SampleValue {
    /// The time, on or off the CPU according to the sample.
    Cpu,
    /// The time, independent of what the thread did.
    Time,
    Memory,
}

/// The value that is read of a file of this mode, given the name of the requested value, and its measure.
///
/// # Errors
/// The file has no such value.
pub(super) fn requested(mode: AustinMode, name: Option<&str>) -> Result<(SampleValue, Measure), ReadError> {
    let cpu = |requested| (requested, SampleValueKind::new("cpu", Unit::Time));
    let wall = (SampleValue::Time, SampleValueKind::new("wall", Unit::Time));
    let memory = (SampleValue::Memory, SampleValueKind::new("memory", Unit::Bytes));
    let values = match mode {
        AustinMode::Wall => vec![wall],
        AustinMode::Cpu => vec![cpu(SampleValue::Time)],
        AustinMode::Memory => vec![memory],
        AustinMode::Full => vec![cpu(SampleValue::Cpu), wall, memory],
    };
    let (kinds, values): (Vec<_>, Vec<_>) = values.into_iter().unzip();
    let at = choose(&values, name, 0)?;
    let measure = match &*values[at].name {
        "cpu" => Measure::default(),
        "wall" => Measure { name: "wall time".into(), unit: Unit::Time },
        _ => Measure { name: "memory growth".into(), unit: Unit::Bytes },
    };
    Ok((kinds[at], measure))
}

/// The samples of a file, which follow each other on their threads.
pub(super) struct AustinSamples {
    pub importer: Importer,
    /// The number of ns or bytes of one unit.
    factor: u64,
    threads: FxHashMap<ThreadIndex, SampleQueue>,
    count: u64,
    freed: u64,
}

impl AustinSamples {
    pub(super) fn new(measure: Measure) -> Self {
        let factor = if measure.unit == Unit::Time { 1000 } else { 1 };
        let mut importer = Importer::new("Python", "Austin");
        importer.meta_mut().measure = measure;
        Self { importer, factor, threads: FxHashMap::default(), count: 0, freed: 0 }
    }

    /// Adds a sample of a thread: its stack, whether it is waiting, and its amount in µs or bytes.
    pub(super) fn add(&mut self, (pid, tid): (&str, &str), stack: (Option<StackId>, bool), amount: i64) {
        self.count += 1;
        self.freed += u64::from(amount < 0);
        let amount = u64::try_from(amount).unwrap_or(0).saturating_mul(self.factor);
        let importer = &mut self.importer;
        let thread = importer.thread(ThreadName { pid, process: "Python", tid, thread: "Python" });
        let queue = self.threads.entry(thread).or_insert_with(|| SampleQueue::new(thread));
        queue.add_with(importer, stack, amount);
    }

    /// The profile, with a note on where the file ends early, and a note on each of the `others` that are no
    /// samples.
    ///
    /// # Errors
    /// If there is no sample.
    pub(super) fn finish(
        self,
        format: &'static str,
        cut: Option<String>,
        others: &[(u64, &str)],
    ) -> Result<ImportedProfile, ReadError> {
        let Self { mut importer, count, freed, .. } = self;
        if count == 0 {
            let problem = match cut {
                Some(place) => format!("it is cut off or damaged at {place}, before its first sample"),
                None => "it has no sample".into(),
            };
            return Err(ReadError::Malformed { format, problem });
        }
        if let Some(place) = cut {
            importer.note(Note::Cut { place });
        }
        importer.note_left_out(freed, "samples in which memory was freed");
        for &(count, what) in others {
            importer.note_left_out(count, what);
        }
        Ok(importer.finish(None))
    }
}
