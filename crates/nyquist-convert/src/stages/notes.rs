//! Markers that are made of what the source tells anyway: stays on CPUs, and functions made just in time.

use super::Stages;
use crate::account::on_cpu::Began;
use crate::event::{FieldValue, Marker, MarkerTiming, NAMELESS, Pid, Tid, Timestamp, Track};
use crate::processes::process::Process;
use nyquist_profile::{self as profile, MarkerDisplay, MarkerField, MarkerFormat, MarkerSchema};
use std::sync::{Arc, LazyLock};

/// Why a thread left its CPU.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reason {
    /// It waits for something.
    Blocked,
    /// Another one was to run.
    Preempted,
    /// It has ended.
    Ended,
    /// It did not; the recording has ended.
    RecordingEnded,
}

impl Reason {
    fn text(self) -> &'static str {
        match self {
            Self::Blocked => "blocked",
            Self::Preempted => "preempted",
            Self::Ended => "ended",
            Self::RecordingEnded => "recording ended",
        }
    }
}

/// A stay on a CPU, on the thread's row.
static ON_CPU: LazyLock<Arc<MarkerSchema>> = LazyLock::new(|| {
    Arc::new(schema(
        "OnCpu",
        &[("cpu", "CPU", MarkerFormat::String), ("outwhy", "Switch-out reason", MarkerFormat::String)],
        ["{marker.data.cpu}", "{marker.name} - {marker.data.cpu}, switch-out reason: {marker.data.outwhy}"],
        "A thread ran on a CPU until it left it.",
    ))
});

/// The same on the CPU's row.
static CONTEXT_SWITCH: LazyLock<Arc<MarkerSchema>> = LazyLock::new(|| {
    Arc::new(schema(
        "ContextSwitch",
        &[("thread", "Thread", MarkerFormat::String), ("outwhy", "Switch-out reason", MarkerFormat::String)],
        ["{marker.data.thread}", "{marker.name} - {marker.data.thread}"],
        "A CPU ran a thread until it switched to another one.",
    ))
});

/// Code that was made just in time.
static JIT_FUNCTION: LazyLock<Arc<MarkerSchema>> = LazyLock::new(|| {
    let label = "{marker.data.n}";
    let description = "Emitted when a JIT function is added to the process.";
    let fields = [("n", "Function", MarkerFormat::String)];
    Arc::new(schema("JitFunctionAdd", &fields, [label, label], description))
});

/// A kind of marker; `fields` are their keys, labels and formats, `labels` are that of the chart and the tooltip, and that of the table.
pub(super) fn schema(
    name: &str,
    fields: &[(&str, &str, MarkerFormat)],
    labels: [&str; 2],
    description: &str,
) -> MarkerSchema {
    let [label, table_label] = labels.map(|label| Some(label.to_owned()));
    let field = |(key, label, format): &(&str, &str, MarkerFormat)| MarkerField {
        key: (*key).to_owned(),
        label: Some((*label).to_owned()),
        format: *format,
    };
    MarkerSchema {
        name: name.to_owned(),
        display: vec![MarkerDisplay::Chart, MarkerDisplay::Table],
        fields: fields.iter().map(field).collect(),
        tooltip_label: label.clone(),
        table_label,
        chart_label: label,
        description: Some(description.to_owned()),
        is_stack_based: false,
    }
}

/// The CPU's idle task, of every CPU.
const IDLE: Tid = Tid(0);

impl Stages {
    /// A thread came to a CPU.
    pub(super) fn switched_in(&mut self, now: Timestamp, cpu: Option<u32>, tid: Tid) {
        if let (true, Some(cpu)) = (self.shape.switch_markers, cpu) {
            self.on_cpu.arrive(cpu, tid, now);
        }
    }

    /// A thread left the CPU.
    pub(super) fn switched_out(&mut self, now: Timestamp, cpu: Option<u32>, id: (Pid, Tid), why: Reason) {
        let (true, Some(cpu)) = (self.shape.switch_markers, cpu) else { return };
        let began = self.on_cpu.leave(cpu, id.1);
        // A thread that has ended, and whose number is perhaps gone, leaves its CPU some moments later.
        if id.1 == NAMELESS || id.1 == IDLE {
            return;
        }
        let start = match began {
            Some(Began::At(start)) => start,
            Some(Began::BeforeAll) => self.processes.thread(now, id).start.max(self.options.start),
            None => return,
        };
        self.add_stay((start, now), cpu, id, why);
    }

    /// Ends all stays with the recording.
    pub(crate) fn end_all_stays(&mut self) {
        for (cpu, tid, start) in self.on_cpu.leave_all() {
            let lives = |process: &Process| process.threads.get(&tid).is_some_and(|it| it.end.is_none());
            let process =
                self.processes.tracker.processes().find(|(_, process)| lives(process)).map(|(pid, _)| *pid);
            if let Some(pid) = process.filter(|_| tid != IDLE) {
                self.add_stay((start, self.last_time), cpu, (pid, tid), Reason::RecordingEnded);
            }
        }
    }

    fn add_stay(&mut self, (start, end): (Timestamp, Timestamp), cpu: u32, id: (Pid, Tid), why: Reason) {
        if !self.is_kept(id.0, end) || !self.wants(id, Some(cpu), end) || self.is_left_out(id) {
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
        self.marker(end, &marker);
        if let Some((_, label)) = self.cpu_track(end, Some(cpu), id) {
            marker.name = cpu_name;
            marker.schema = Some(Arc::clone(&CONTEXT_SWITCH));
            marker.values = vec![FieldValue::String(label.into()), FieldValue::String(why)];
            let timing = profile::MarkerTiming::Interval(self.profile_time(start), self.profile_time(end));
            for row in self.cpus.rows(&mut self.builder, cpu) {
                self.markers.add(&mut self.builder, row, (&marker).into(), timing);
            }
        }
    }

    /// Makes markers of the functions that were made before a time up to which all events were converted: a jitdump can be read
    /// before it is known whether its process is wanted.
    pub(crate) fn mark_jit_functions(&mut self, before: Timestamp) {
        if !self.shape.jit_markers {
            return;
        }
        for (pid, time, name) in self.processes.dumps.take_new_functions(before) {
            if time >= self.options.start
                && self.is_kept(pid, time)
                && self.wants((pid, Tid(pid.0)), None, time)
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
                self.marker(time, &marker);
            }
        }
    }
}
