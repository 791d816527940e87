//! The rows of the profile that are new, for its spool.

use super::sink::ProfileSink;
use crate::processes::state::ProcessState;
use crate::spool::tap::{SpoolTap, Tapped};
use nyquist_profile::CounterId;
use nyquist_spool::Batch;
use std::time::Instant;

impl ProfileSink {
    /// Adds the rows that are new since the last call to a batch.
    pub(crate) fn add_new_rows(&self, tap: &mut SpoolTap, processes: &ProcessState, batch: &mut Batch) {
        tap.enter(self.epoch);
        let mut named = tap.take_named();
        let all_names = tap.are_names_due();
        if all_names {
            let began = Instant::now();
            named = self.named_rows(processes);
            tap.note_names(began.elapsed());
        } else {
            self.name_new_rows(&mut named, processes);
        }
        let accompanying = self.counters.accompanying();
        let tapped = Tapped {
            profile: self.builder.profile(),
            named: named.profile(),
            all_names,
            source: |lib| {
                let (_, module) = self.stacks.libs().find(|(known, _)| *known == lib)?;
                Some(processes.lib_source(module))
            },
            accompanies: |counter: CounterId| accompanying.contains(&counter),
        };
        tap.add_new(&tapped, batch);
        tap.keep_named(named);
    }
}
