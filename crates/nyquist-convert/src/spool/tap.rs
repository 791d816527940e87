//! What of a conversion was written to its spool.

use super::generated::UsedCode;
use super::source::stored;
use crate::jit::symbols::JitSymbols;
use crate::modules::lib_source::LibSource;
use nyquist_profile::{CounterId, LibId, Meta, Profile, ProfileBuilder};
use nyquist_spool::{Batch, TableMarks};
use std::time::{Duration, Instant};

/// What of a conversion was written to its spool, so that [`Converter::spool`](crate::Converter::spool) returns only
/// what is new.
#[derive(Debug, Default)]
pub struct SpoolTap {
    marks: TableMarks,
    /// Libs whose source is not known yet.
    unknown: Vec<LibId>,
    used_code: UsedCode,
    epoch: u32,
    /// The processes and threads with the names that were written.
    named: Option<ProfileBuilder>,
    /// Before then only new processes and threads get names.
    names_due: Option<Instant>,
}

/// The pause between looks at all names, as a multiple of what the last one has cost.
const PAUSE: u32 = 25;

/// A profile so far, and where its names come from.
pub(crate) struct Tapped<'a, S, A> {
    pub(crate) profile: &'a Profile,
    /// Its processes and threads with their names and ends.
    pub(crate) named: &'a Profile,
    /// Whether the names of known ones may have changed.
    pub(crate) all_names: bool,
    pub(crate) source: S,
    /// Whether a counter only accompanies samples.
    pub(crate) accompanies: A,
}

impl SpoolTap {
    /// How often the tables were made anew: what was written before does not belong to what is written since.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Looks at all names the next time, because it may be the last.
    pub fn want_names(&mut self) {
        self.names_due = None;
    }

    /// Whether it is time to look at all names. Their number grows with all processes that there have been.
    pub(crate) fn are_names_due(&self) -> bool {
        self.names_due.is_none_or(|due| Instant::now() >= due)
    }

    /// Notes what a look at all names has cost.
    pub(crate) fn note_names(&mut self, cost: Duration) {
        self.names_due = Some(Instant::now() + cost.saturating_mul(PAUSE));
    }

    /// The processes and threads that were kept.
    pub(crate) fn take_named(&mut self) -> ProfileBuilder {
        self.named.take().unwrap_or_else(|| ProfileBuilder::new(Meta::default()))
    }

    /// Keeps processes and threads for the next time.
    pub(crate) fn keep_named(&mut self, named: ProfileBuilder) {
        self.named = Some(named);
    }

    /// Begins from nothing if the tables were made anew.
    pub(crate) fn enter(&mut self, epoch: u32) {
        if epoch != self.epoch {
            *self = Self { epoch, ..Self::default() };
        }
    }

    /// Adds what is new to a batch.
    pub(crate) fn add_new<S, A>(&mut self, tapped: &Tapped<'_, S, A>, batch: &mut Batch)
    where
        S: Fn(LibId) -> Option<LibSource>,
        A: Fn(CounterId) -> bool,
    {
        let Tapped { profile, named, all_names, source, accompanies } = tapped;
        let (first_lib, first_frame) = (self.marks.libs(), self.marks.frames());
        self.marks.add_new((profile, named, *all_names), accompanies, batch);
        let is_due = self.used_code.is_due();
        let mut unnamed = if is_due { std::mem::take(&mut self.unknown) } else { Vec::new() };
        unnamed.extend((first_lib..profile.libs().len()).map(LibId::from_index));
        for lib in unnamed {
            self.add_source(lib, source(lib).as_ref(), batch);
        }
        for frame in &profile.frames()[first_frame..] {
            if let (Some(lib), Some(address)) = (profile.func(frame.func).lib, frame.address) {
                self.used_code.note(lib, address);
            }
        }
        if is_due {
            self.used_code.look_up(|lib| symbols(source(lib)), batch);
        }
    }

    fn add_source(&mut self, lib: LibId, source: Option<&LibSource>, batch: &mut Batch) {
        match source {
            None | Some(LibSource::Unknown) => {
                self.unknown.push(lib);
                // It may turn out to be generated code.
                self.used_code.add_lib(lib);
            }
            Some(source) => {
                if let LibSource::Jit(_) = source {
                    self.used_code.add_lib(lib);
                }
                stored(source).add_to(batch, lib.index());
            }
        }
    }
}

fn symbols(source: Option<LibSource>) -> Option<JitSymbols> {
    match source {
        Some(LibSource::Jit(symbols)) => Some(symbols),
        _ => None,
    }
}
