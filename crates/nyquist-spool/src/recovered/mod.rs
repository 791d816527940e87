//! Makes a profile of the records of a recording.

use crate::fields::Fields;
use crate::kind::Kind;
use crate::meta::read_meta;
use crate::name_source::{GeneratedCode, NameSource};
use crate::state::State;
use nyquist_profile::{
    CategoryId, CounterId, FrameId, FuncId, LibId, MarkerSchemaId, Meta, ProfileBuilder, StackId, StringId,
};

/// How many rows may be missing in all. Each has a row in their place.
const MAX_MISSING: u64 = 1 << 22;

/// The tables of a recording, as far as its records were read. Records can be read twice: rows that are known are left
/// as they are. Rows that are missing because of damage have rows in their place, so that those behind them keep their
/// indexes.
#[derive(Debug)]
pub struct RecoveredTables {
    /// The profile so far.
    pub(crate) builder: ProfileBuilder,
    /// The ids of rows, by their indexes in the records.
    pub(crate) strings: Vec<StringId>,
    pub(crate) libs: Vec<LibId>,
    pub(crate) funcs: Vec<FuncId>,
    pub(crate) frames: Vec<FrameId>,
    pub(crate) stacks: Vec<StackId>,
    pub(crate) categories: Vec<CategoryId>,
    pub(crate) schemas: Vec<MarkerSchemaId>,
    /// How many samples and markers of each thread were written up to what was read.
    pub(crate) rows: Vec<(usize, usize)>,
    /// How many values of each counter were written up to what was read, and whether it only accompanies samples.
    pub(crate) counters: Vec<(usize, bool)>,
    sources: Vec<(LibId, NameSource)>,
    code: Vec<(LibId, GeneratedCode)>,
    state: Option<State>,
    /// The bytes that were skipped: at least as many as rows are missing.
    skipped: u64,
    missing: u64,
    refused: u64,
    /// Whether only the facts and the state are requested.
    only_facts: bool,
}

/// What was recovered.
#[derive(Debug)]
pub struct Recovered {
    /// The profile without names of functions.
    pub builder: ProfileBuilder,
    /// The ids of stacks, by the indexes that the state has.
    pub stacks: Vec<StackId>,
    /// Where the names of libs come from.
    pub sources: Vec<(LibId, NameSource)>,
    /// The used code of libs that was generated at run time.
    pub code: Vec<(LibId, GeneratedCode)>,
    /// The counters that only accompany samples.
    pub accompanying: Vec<CounterId>,
    /// How far the recording has come.
    pub state: State,
    /// How many records make no sense: none, unless somebody has changed the files.
    pub refused: u64,
}

impl Default for RecoveredTables {
    fn default() -> Self {
        let builder = ProfileBuilder::new(Meta::default());
        Self {
            builder,
            strings: Vec::new(),
            libs: Vec::new(),
            funcs: Vec::new(),
            frames: Vec::new(),
            stacks: Vec::new(),
            categories: Vec::new(),
            schemas: Vec::new(),
            rows: Vec::new(),
            counters: Vec::new(),
            sources: Vec::new(),
            code: Vec::new(),
            state: None,
            skipped: 0,
            missing: 0,
            refused: 0,
            only_facts: false,
        }
    }
}

impl RecoveredTables {
    /// Tables that take only the facts about a recording, and how far it has come.
    pub fn of_facts() -> Self {
        Self { only_facts: true, ..Self::default() }
    }

    /// Takes the next record. `skipped` is the number of bytes before it, in all segments, that could not be read.
    pub fn take(&mut self, record: &[u8], skipped: u64) {
        self.skipped = self.skipped.max(skipped);
        let mut fields = Fields::new(record);
        // A kind of a later version that changes nothing that is known here.
        let Some(kind) = fields.byte().and_then(Kind::of) else { return };
        if self.only_facts && !matches!(kind, Kind::Meta | Kind::State) {
            return;
        }
        if self.read(kind, &mut fields).is_none() {
            self.refused += 1;
        }
    }

    /// How far the recording has come, as far as records were taken.
    pub fn state(&self) -> Option<&State> {
        self.state.as_ref()
    }

    /// The facts about the recording.
    pub fn meta(&self) -> &Meta {
        self.builder.profile().meta()
    }

    /// What was recovered; `None` if no batch was written in full.
    pub fn finish(self) -> Option<Recovered> {
        let accompanying = self.counters.iter().enumerate().filter(|(_, (_, accompanies))| *accompanies);
        Some(Recovered {
            accompanying: accompanying.map(|(index, _)| CounterId::from_index(index)).collect(),
            state: self.state?,
            builder: self.builder,
            stacks: self.stacks,
            sources: self.sources,
            code: self.code,
            refused: self.refused,
        })
    }

    fn read(&mut self, kind: Kind, fields: &mut Fields<'_>) -> Option<()> {
        match kind {
            Kind::Strings => self.read_strings(fields),
            Kind::Libs => self.read_libs(fields),
            Kind::Funcs => self.read_funcs(fields),
            Kind::Frames => self.read_frames(fields),
            Kind::Stacks => self.read_stacks(fields),
            Kind::Category => self.read_category(fields),
            Kind::MarkerSchema => self.read_schema(fields),
            Kind::Processes => self.read_processes(fields),
            Kind::Threads => self.read_threads(fields),
            Kind::Samples => self.read_samples(fields),
            Kind::Markers => self.read_markers(fields),
            Kind::Counter => self.read_counter(fields),
            Kind::CounterSamples => self.read_counter_samples(fields),
            Kind::NameSource => {
                let (lib, source) = NameSource::read(fields)?;
                self.sources.push((*self.libs.get(lib)?, source));
                Some(())
            }
            Kind::GeneratedCode => {
                let (lib, code) = GeneratedCode::read(fields)?;
                self.code.push((*self.libs.get(lib)?, code));
                Some(())
            }
            Kind::Meta => {
                *self.builder.meta_mut() = read_meta(fields)?;
                Some(())
            }
            Kind::State => {
                self.state = Some(State::read(fields)?);
                Some(())
            }
        }
    }

    /// How many rows of a table with `known` rows are missing before a record that begins with row `start`. `None` if
    /// more are missing than were in what was skipped.
    pub(crate) fn missing_before(&mut self, start: usize, known: usize) -> Option<usize> {
        let missing = start.saturating_sub(known);
        let all = self.missing.checked_add(missing as u64)?;
        if all > self.skipped.min(MAX_MISSING) {
            return None;
        }
        self.missing = all;
        Some(missing)
    }
}

#[cfg(test)]
mod tests;
