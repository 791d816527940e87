//! A recording that is controlled while it runs: it keeps its last part, pauses, and is saved on request and by
//! triggers.
//!
//! All of this happens on the converter's thread, between two chunks, which come at least every tenth of a second.
//! Another thread looks up names and writes files, so that the recording goes on meanwhile.

mod conditions;
mod saver;
mod saves;

use crate::args::{CtlAction, RecordArgs};
use crate::ctl::{ControlSocket, CtlAnswer, CtlRequest};
use crate::failure::Failure;
use crate::printer::Printer;
use conditions::{Conditions, Met};
use nyquist_convert::event::{Event, Timestamp};
use nyquist_convert::{ConversionResult, Converter, Statistics};
use nyquist_profile::Profile;
use nyquist_record::linux::signals::SaveRequests;
use nyquist_record::linux::{PauseHandle, now};
use saver::{SaveJob, Saver};
use saves::SavePolicy;
use std::time::Duration;

/// The shortest time between two looks whether a wait that has ended is one that a trigger names. Each takes a copy of
/// the recording and its names.
const BETWEEN_LOOKS: Duration = Duration::from_secs(2);

/// The longest time that is dropped at once, as a part of the time that is kept: dropping costs as much as what stays.
const DROPPED_AT_ONCE: u64 = 4;

/// The signal that asks for a save. It is taken over before there are other threads.
#[derive(Debug)]
pub(crate) struct SaveSignal(SaveRequests);

impl SaveSignal {
    /// Takes over the signal, if the recording is one that can be saved while it runs.
    pub(crate) fn take_over(args: &RecordArgs) -> Result<Option<Self>, Failure> {
        let requests = args.flight.is_controlled().then(SaveRequests::take_over).transpose();
        let requests = requests.map_err(|error| Failure::because("cannot take over SIGUSR1", &error))?;
        Ok(requests.map(Self))
    }
}

/// What controls a running recording.
pub(crate) struct FlightRecorder {
    printer: Printer,
    /// How much is kept.
    last: Option<Duration>,
    counts_waits: bool,
    signal: SaveSignal,
    socket: Option<ControlSocket>,
    pause: Option<PauseHandle>,
    is_paused: bool,
    /// When a recording that begins paused begins by itself.
    begins_at: Option<Timestamp>,
    delay: Option<Duration>,
    conditions: Conditions,
    policy: SavePolicy,
    saver: Saver,
    /// What has to be saved as soon as the saver is free.
    due: Option<DueSave>,
    /// The profile's zero.
    zero: Timestamp,
    /// Nothing older is kept.
    kept_since: Timestamp,
    looked_at: Timestamp,
}

/// A save that was requested.
struct DueSave {
    met: Option<Met>,
    reason: String,
    requests: Vec<CtlRequest>,
}

impl FlightRecorder {
    /// The control of a recording, which has not begun.
    pub(crate) fn new(args: &RecordArgs, signal: SaveSignal, printer: Printer) -> Result<Self, Failure> {
        let flight = &args.flight;
        check(args)?;
        let socket = ControlSocket::open(&args.target.numbers());
        let socket = socket
            .inspect_err(|reason| {
                printer.warn(format_args!("`nyquist ctl` cannot reach this recording: {reason}"));
            })
            .ok();
        Ok(Self {
            printer,
            last: flight.last,
            counts_waits: args.off_cpu,
            signal,
            socket,
            pause: None,
            is_paused: flight.begins_paused(),
            begins_at: None,
            delay: flight.delay,
            conditions: Conditions::new(&flight.trigger),
            policy: SavePolicy::new(&args.output, flight.save_pause, flight.max_saves),
            saver: Saver::start(args, printer)?,
            due: None,
            zero: Timestamp(0),
            kept_since: Timestamp(0),
            looked_at: Timestamp(0),
        })
    }

    /// The recording has begun. `zero` is the profile's.
    pub(crate) fn begin(&mut self, pause: PauseHandle, zero: Timestamp, converter: &mut Converter) {
        (self.zero, self.kept_since) = (zero, zero);
        self.begins_at =
            self.delay.take().map(|delay| Timestamp(now().0.saturating_add(delay.as_nanos() as u64)));
        if self.is_paused {
            // The events are disabled already. Only the converter does not know.
            converter.push(pause.begun_paused());
        }
        self.pause = Some(pause);
        self.say_how();
    }

    fn say_how(&self) {
        let own = std::process::id();
        if let Some(last) = self.last {
            self.printer.say(format_args!(
                "The last {} are kept; `kill -USR1 {own}` or `nyquist ctl save` saves them while the recording goes on",
                time_text(last)
            ));
        }
        if self.is_paused {
            let text = match self.begins_at {
                Some(_) => "Nothing is recorded before the delay is over".to_owned(),
                None => format!("Nothing is recorded before `nyquist ctl {own} start`"),
            };
            self.printer.say(text);
        }
    }

    /// Looks at the events of a chunk.
    pub(crate) fn notice(&mut self, events: &[Event]) {
        for event in events {
            self.conditions.notice(event);
        }
    }

    /// Does what is due. The recording is complete up to `until`.
    pub(crate) fn attend(&mut self, converter: &mut Converter, until: Timestamp) {
        self.begin_in_time(converter);
        for saved in self.saver.take_saved() {
            self.policy.note_saved(saved, until);
        }
        for request in self.socket.as_mut().map(ControlSocket::take).unwrap_or_default() {
            self.obey(request, converter);
        }
        if self.signal.0.take() {
            self.request_save("SIGUSR1".to_owned(), None);
        }
        self.look_at_conditions(converter, until);
        self.save_if_due(converter, until);
        self.drop_old(converter, until);
    }

    fn begin_in_time(&mut self, converter: &mut Converter) {
        if self.begins_at.is_some_and(|begins_at| now() >= begins_at) {
            self.begins_at = None;
            self.set_paused(false, converter);
        }
    }

    fn set_paused(&mut self, paused: bool, converter: &mut Converter) {
        let Some(pause) = self.pause.as_ref().filter(|_| self.is_paused != paused) else { return };
        converter.push(if paused { pause.pause() } else { pause.resume() });
        self.is_paused = paused;
        self.printer.say(if paused { "The recording pauses" } else { "The recording goes on" });
    }

    fn obey(&mut self, request: CtlRequest, converter: &mut Converter) {
        match request.action() {
            CtlAction::Start => {
                self.begins_at = None;
                self.set_paused(false, converter);
            }
            CtlAction::Stop => {
                self.begins_at = None;
                self.set_paused(true, converter);
            }
            CtlAction::Save => return self.request_save("nyquist ctl save".to_owned(), Some(request)),
            CtlAction::Status => {}
        }
        request.answer(&self.answer(None));
    }

    /// What this recording does.
    fn answer(&self, error: Option<String>) -> CtlAnswer {
        let recorded = now().0.saturating_sub(self.zero.0);
        CtlAnswer {
            schema: CtlAnswer::SCHEMA.to_owned(),
            pid: std::process::id(),
            state: if self.is_paused { "paused" } else { "recording" }.to_owned(),
            seconds: recorded as f64 / 1e9,
            keeps_seconds: self.last.map(|last| last.as_secs_f64()),
            saves: self.policy.made(),
            saved: None,
            error,
        }
    }

    /// Saves as soon as the saver is free. A request that comes before is answered with the same file.
    fn request_save(&mut self, reason: String, request: Option<CtlRequest>) {
        if let Some(denied) = self.policy.denied() {
            match request {
                Some(request) => request.answer(&self.answer(Some(denied))),
                None => self.printer.warn(denied),
            }
            return;
        }
        let due = self.due.get_or_insert(DueSave { met: None, reason, requests: Vec::new() });
        // A person's request is saved whatever names say.
        due.met = None;
        due.requests.extend(request);
    }

    fn look_at_conditions(&mut self, converter: &Converter, until: Timestamp) {
        let met = self.conditions.look(converter.tables());
        if self.is_paused || self.due.is_some() || !self.policy.allows_trigger(until) {
            return;
        }
        let Some(met) = met else { return };
        if met.needs_names() && until.0.saturating_sub(self.looked_at.0) < BETWEEN_LOOKS.as_nanos() as u64 {
            return self.conditions.look_again(met);
        }
        self.looked_at = until;
        self.due = Some(DueSave { reason: met.text().to_owned(), met: Some(met), requests: Vec::new() });
    }

    fn save_if_due(&mut self, converter: &mut Converter, until: Timestamp) {
        if self.saver.is_busy() {
            return;
        }
        let Some(DueSave { met, reason, requests }) = self.due.take() else { return };
        if self.counts_waits {
            converter.count_lasting_waits(until);
        }
        self.forget_before(self.oldest_kept(until), converter);
        let saved_until = self.policy.saved_until().0.saturating_sub(self.kept_since.0);
        let met = met.map(|met| met.after(saved_until));
        let sources = converter.lib_sources();
        let profile = self.kept_part(converter.snapshot(), until);
        let answer = self.answer(None);
        self.saver.save(SaveJob {
            profile,
            sources,
            path: self.policy.next_path(),
            reason,
            met,
            requests,
            answer,
        });
    }

    /// Nothing before this is kept of a recording up to `until`.
    fn oldest_kept(&self, until: Timestamp) -> Timestamp {
        let oldest = self.last.map_or(0, |last| until.0.saturating_sub(last.as_nanos() as u64));
        Timestamp(oldest).max(self.kept_since)
    }

    fn drop_old(&mut self, converter: &mut Converter, until: Timestamp) {
        let Some(last) = self.last else { return };
        let oldest = self.oldest_kept(until);
        if oldest.0.saturating_sub(self.kept_since.0) >= last.as_nanos() as u64 / DROPPED_AT_ONCE {
            self.forget_before(oldest, converter);
        }
    }

    fn forget_before(&mut self, oldest: Timestamp, converter: &mut Converter) {
        if oldest > self.kept_since {
            // What is new in the tables is looked at before they change.
            if let Some(met) = self.conditions.look(converter.tables()) {
                self.conditions.look_again(met);
            }
            converter.evict(oldest);
            self.kept_since = oldest;
            self.conditions.forget_places(converter.tables());
        }
    }

    /// The profile of what is kept, with its own zero.
    fn kept_part(&self, profile: Profile, until: Timestamp) -> Profile {
        if self.last.is_none() {
            return profile;
        }
        let start = self.kept_since.0.saturating_sub(self.zero.0);
        let start_time = profile.meta().start_time + start / 1000;
        profile.beginning_at(start, start_time, until.0.saturating_sub(self.kept_since.0))
    }

    /// The end of the recording: the profile of what is kept.
    pub(crate) fn finish(mut self, mut converter: Converter) -> ConversionResult {
        let end = now();
        converter.advance(Timestamp(u64::MAX));
        self.forget_before(self.oldest_kept(end), &mut converter);
        if let Some(due) = self.due.take() {
            // The profile at the end has it all.
            let answer = self.answer(Some("the recording has ended, and its profile is saved".to_owned()));
            for request in due.requests {
                request.answer(&answer);
            }
        }
        let finished = converter.finish();
        let statistics = self.kept_statistics(&finished);
        let profile = self.kept_part(finished.profile, end);
        self.saver.finish();
        ConversionResult { profile, statistics, ..finished }
    }
}

impl FlightRecorder {
    /// The counters of what is kept. What was lost is not known by time.
    fn kept_statistics(&self, finished: &ConversionResult) -> Statistics {
        let all = finished.statistics.clone();
        if self.last.is_none() {
            return all;
        }
        let samples = finished.profile.threads().iter().flat_map(|thread| &thread.samples);
        let retained = samples.filter(|sample| !sample.off_cpu).count() as u64;
        Statistics { samples: retained, lost: all.lost, throttled: all.throttled, ..Statistics::default() }
    }
}

/// Fails if a trigger needs what is not recorded.
fn check(args: &RecordArgs) -> Result<(), Failure> {
    let is_of_processes = !args.target.all_cpus && args.target.cgroup.is_none() && args.target.tid.is_none();
    let counts = is_of_processes && !args.no_counters;
    let conditions = || args.flight.trigger.iter();
    if let Some(trigger) = conditions().find(|it| it.condition.needs_counters() && !counts) {
        return Err(Failure::new(format!(
            "the trigger '{}' needs the counters of a command's or -p's processes",
            trigger.text
        ))
        .hint("leave out --no-counters, -a, --cgroup and -t"));
    }
    if let Some(trigger) = conditions().find(|it| it.condition.needs_waits() && !args.off_cpu) {
        return Err(Failure::new(format!("the trigger '{}' needs to know where threads wait", trigger.text))
            .hint("add --off-cpu"));
    }
    Ok(())
}

/// `30 s`, `1.5 s`.
fn time_text(time: Duration) -> String {
    format!("{} s", time.as_secs_f64())
}
