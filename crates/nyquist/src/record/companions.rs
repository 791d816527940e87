//! What goes along with a recording, and has events of its own: markers and counters.

use super::subject::ancestors;
use crate::markers;
use crate::printer::Printer;
use nyquist_convert::Converter;
use nyquist_convert::event::{Event, Pid};
use nyquist_record::linux::counters::Counters;
use nyquist_record::linux::markers::Markers;
use nyquist_record::linux::{Companion, Target};

/// The companions of a recording.
#[derive(Debug)]
pub(super) struct Companions {
    markers: Option<Markers>,
    counters: Option<Counters>,
}

impl Companions {
    /// Those that there are before the recording begins.
    pub(super) fn new(markers: Option<Markers>) -> Self {
        Self { markers, counters: None }
    }

    /// Counts what the processes use that are recorded, from now on. A recording without that is better than none.
    pub(super) fn count(&mut self, target: &Target, printer: Printer) {
        // Of all processes of a machine or a container too few could be looked at often enough.
        if !matches!(target, Target::Child(_) | Target::Attach(_)) {
            return;
        }
        let pids: Vec<_> = ancestors(target).into_iter().map(Pid).collect();
        match Counters::of(&pids, matches!(target, Target::Child(_))) {
            Ok(counters) => self.counters = Some(counters),
            Err(error) => {
                printer.detail(format_args!("what the program uses is not counted: {error}"));
            }
        }
    }

    fn each(&mut self) -> impl Iterator<Item = &mut dyn Companion> {
        let markers = self.markers.as_mut().map(|markers| markers as &mut dyn Companion);
        let counters = self.counters.as_mut().map(|counters| counters as &mut dyn Companion);
        markers.into_iter().chain(counters)
    }

    /// Lets each hear of the events of a chunk.
    pub(super) fn notice(&mut self, events: &[Event]) {
        self.each().for_each(|companion| events.iter().for_each(|event| companion.notice(event)));
    }

    /// Appends what each has seen so far.
    pub(super) fn collect(&mut self, events: &mut Vec<Event>) {
        self.each().for_each(|companion| companion.collect(events));
    }

    /// Takes over what is left, and says what was lost.
    pub(super) fn finish(self, converter: &mut Converter, printer: Printer) {
        if let Some(counters) = self.counters {
            let mut events = Vec::new();
            counters.finish(&mut events);
            for event in events {
                converter.push(event);
            }
        }
        if let Some(markers) = self.markers {
            markers::finish(markers, converter, printer);
        }
    }
}
