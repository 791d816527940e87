//! Markers that need no events of their own: intervals on CPUs, and functions made just in time.

use super::Pipeline;
use crate::account::on_cpu::IntervalStart;
use crate::account::switch_reason::SwitchReason;
use crate::build::marker_kinds::{CONTEXT_SWITCH, JIT_FUNCTION, ON_CPU};
use crate::event::{FieldValue, Marker, MarkerTiming, Pid, RELEASED_TID, Tid, Timestamp, Track};
use std::sync::Arc;

/// The idle task of every CPU.
const IDLE: Tid = Tid(0);

impl Pipeline {
    /// A thread came to a CPU.
    pub(super) fn switch_in(&mut self, now: Timestamp, cpu: Option<u32>, tid: Tid) {
        self.end_wait(tid, now);
        self.off_cpu.arrive(tid);
        if let (true, Some(cpu)) = (self.shape.switch_markers, cpu) {
            self.on_cpu.arrive(cpu, tid, now);
        }
    }

    /// A thread left the CPU.
    pub(super) fn end_on_cpu_interval(
        &mut self,
        now: Timestamp,
        cpu: Option<u32>,
        id: (Pid, Tid),
        why: SwitchReason,
    ) {
        let (true, Some(cpu)) = (self.shape.switch_markers, cpu) else { return };
        let began = self.on_cpu.leave(cpu, id.1);
        // A thread that has ended, and may have released its number, leaves its CPU shortly afterwards.
        if id.1 == RELEASED_TID || id.1 == IDLE {
            return;
        }
        let start = match began {
            Some(IntervalStart::At(start)) => start,
            Some(IntervalStart::BeforeAll) => self.processes.thread(now, id).start.max(self.recorded_since),
            None => return,
        };
        self.add_on_cpu_interval((start, now), cpu, id, why);
    }

    /// Ends all intervals on CPUs at the end of the recording.
    pub(super) fn end_all_on_cpu(&mut self) {
        let why = SwitchReason::RecordingEnded;
        for (cpu, tid, start) in self.on_cpu.leave_all() {
            if let Some(pid) = self.processes.process_of(tid).filter(|_| tid != IDLE) {
                self.add_on_cpu_interval((start, self.last_time), cpu, (pid, tid), why);
            }
        }
    }

    fn add_on_cpu_interval(
        &mut self,
        (start, end): (Timestamp, Timestamp),
        cpu: u32,
        id: (Pid, Tid),
        why: SwitchReason,
    ) {
        if !self.is_kept(id.0, end) || !self.selects(id, Some(cpu), end) || self.sink.is_left_out(id) {
            return;
        }
        let cpu_name: Arc<str> = format!("CPU {cpu}").into();
        let why: Arc<str> = why.text().into();
        let mut marker = Marker {
            pid: id.0,
            track: Track::Thread(id.1),
            name: "Running on CPU".into(),
            timing: MarkerTiming::Interval { start },
            schema: Some(Arc::clone(&ON_CPU)),
            values: vec![FieldValue::String(Arc::clone(&cpu_name)), FieldValue::String(Arc::clone(&why))],
            category: None,
        };
        self.sink.add_marker(end, &marker, &mut self.processes);
        if let Some((_, label)) = self.sink.cpu_track(end, Some(cpu), id, &mut self.processes) {
            marker.name = cpu_name;
            marker.schema = Some(Arc::clone(&CONTEXT_SWITCH));
            marker.values = vec![FieldValue::String(label.into()), FieldValue::String(why)];
            self.sink.add_cpu_marker((start, end), cpu, &marker);
        }
    }

    /// Makes markers of the functions that were made before a time up to which all events were converted.
    /// Later functions are left for the next call, because it is not known yet whether their processes are
    /// requested.
    pub(super) fn mark_jit_functions(&mut self, before: Timestamp) {
        if !self.shape.jit_markers {
            return;
        }
        for (pid, time, name) in self.processes.take_new_functions(before) {
            if time >= self.recorded_since
                && self.is_kept(pid, time)
                && self.selects((pid, Tid(pid.0)), None, time)
            {
                let marker = Marker {
                    pid,
                    track: Track::Thread(Tid(pid.0)),
                    name: "JitFunctionAdd".into(),
                    timing: MarkerTiming::Instant,
                    schema: Some(Arc::clone(&JIT_FUNCTION)),
                    values: vec![FieldValue::String(name.into())],
                    category: None,
                };
                self.sink.add_marker(time, &marker, &mut self.processes);
            }
        }
    }
}
