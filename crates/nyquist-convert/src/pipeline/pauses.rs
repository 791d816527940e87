//! Pauses of the recording that the user requested.

use super::Pipeline;
use crate::account::gap::{Gap, GapCause};
use crate::account::on_cpu::OnCpu;
use crate::event::{EventKind, Timestamp};

impl Pipeline {
    /// Nothing is sampled from now on. What threads were doing ends here, because nothing reports its end.
    pub(super) fn pause_recording(&mut self, now: Timestamp) {
        self.end_all_waits();
        self.end_all_on_cpu();
        self.off_cpu.forget_all();
        self.on_cpu = OnCpu::default();
        self.paused_since.get_or_insert(now);
    }

    /// The pause is over. It becomes a marker.
    pub(super) fn resume_recording(&mut self, now: Timestamp) {
        self.recorded_since = now;
        if let Some(start) = self.paused_since.take() {
            self.sink.add_gap(Gap { start: Some(start), end: now, cpu: None, cause: GapCause::Paused });
        }
    }

    /// Ends a pause that lasts at the end of the recording.
    pub(super) fn end_pause(&mut self) {
        if self.paused_since.is_some() {
            self.resume_recording(self.last_time);
        }
    }

    /// Whether the recording is paused, and an event is not requested then. A source may still have some on their way.
    pub(super) fn leaves_out(&self, kind: &EventKind) -> bool {
        use EventKind::{
            Descheduled, Marker, Occurrence, Sample, SwitchIn, SwitchOut, SwitchStack, Waiting, Wakeup,
        };
        let is_of_samples = matches!(
            kind,
            Sample(_)
                | SwitchOut(_)
                | SwitchIn { .. }
                | Descheduled { .. }
                | Waiting(_)
                | SwitchStack(_)
                | Wakeup(_)
                | Marker(_)
                | Occurrence(_)
        );
        self.paused_since.is_some() && is_of_samples
    }
}
