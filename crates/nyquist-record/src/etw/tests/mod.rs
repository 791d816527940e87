//! Recordings of simulated sessions.

mod simulated;

use std::time::Duration;

use nyquist_convert::event::{Event, EventKind, Pid};

use super::denied::EtwDenied;
use super::recorder::{EtwPlan, SessionResult, StartedSession};
use super::session::{SessionLosses, SessionSettings, StackWalk, interval_within, rate_of};
use super::stale::{name_of, stale};
use crate::end_reason::EndReason;
use simulated::{
    BEGAN, Script, ScriptStep, SimulatedSession, TestDecoder, TestMachine, event, image, process, sample,
};

const SETTINGS: SessionSettings = SessionSettings { interval_ns: 1_000_000, waits: false };

fn plan(named: &[u32]) -> EtwPlan {
    EtwPlan { named: named.to_vec(), duration: None, settings: SETTINGS }
}

/// Records what the script says, and returns the events with the end.
fn record(script: &Script, plan: EtwPlan) -> (Vec<Event>, SessionResult) {
    script.run_already(&plan.named);
    let (session, machine) = (SimulatedSession::of(script), TestMachine::of(script));
    let mut recording =
        StartedSession::open(session, machine, plan).unwrap().record(TestDecoder::of(script), || ()).unwrap();
    let mut events = Vec::new();
    let mut complete_before = 0;
    while let Some(chunk) = recording.next() {
        assert!(chunk.complete_before().0 >= complete_before, "it never goes back");
        complete_before = chunk.complete_before().0;
        chunk.decode(&mut events);
    }
    assert!(events.iter().all(|event| event.time.0 < complete_before), "all is complete at the end");
    (events, recording.join().unwrap())
}

fn samples_of(events: &[Event]) -> Vec<Pid> {
    let pid = |event: &Event| match &event.kind {
        EventKind::Sample(sample) => Some(sample.pid),
        _ => None,
    };
    events.iter().filter_map(pid).collect()
}

fn lost(events: &[Event]) -> u64 {
    let records = |event: &Event| match event.kind {
        EventKind::Lost { records } => records,
        _ => 0,
    };
    events.iter().map(records).sum()
}

#[test]
fn a_command_is_recorded_with_its_children() {
    let script = Script::default();
    script.deliver([
        process(10, 1, BEGAN - 5),
        process(20, 1, BEGAN - 5),
        sample(10, BEGAN + 1),
        process(11, 10, BEGAN + 2),
        sample(11, BEGAN + 3),
        sample(20, BEGAN + 3),
    ]);
    script.then(ScriptStep::EndNamed);
    let (events, end) = record(&script, plan(&[10]));
    assert_eq!(samples_of(&events), [Pid(10), Pid(11)]);
    assert_eq!(end.reason, Some(EndReason::Exited));
    assert!(end.left_running, "process 11 lives on");
    assert_eq!(script.stops(), 1);
}

#[test]
fn children_that_run_already_are_recorded() {
    let script = Script::default();
    script.run_already(&[11]);
    script.deliver([process(11, 10, 5), sample(11, BEGAN + 1), sample(20, BEGAN + 1)]);
    script.then(ScriptStep::Stop);
    let (events, _) = record(&script, plan(&[10]));
    assert_eq!(samples_of(&events), [Pid(11)]);
}

#[test]
fn samples_awaiting_stacks_are_not_late() {
    let script = Script::default();
    script.hold_samples();
    let second = 1_000_000_000;
    script.deliver([sample(10, BEGAN + 1), image(10, BEGAN + 9 * second)]);
    script.then(ScriptStep::Stop);
    let mut recording =
        StartedSession::open(SimulatedSession::of(&script), TestMachine::of(&script), plan(&[]))
            .unwrap()
            .record(TestDecoder::of(&script), || ())
            .unwrap();
    let mut complete_before = 0;
    let mut samples = 0;
    while let Some(chunk) = recording.next() {
        let before = chunk.complete_before().0;
        let mut events = Vec::new();
        chunk.decode(&mut events);
        assert!(events.iter().all(|event| event.time.0 >= complete_before), "{events:?}");
        samples += samples_of(&events).len();
        complete_before = before;
    }
    assert_eq!(samples, 1);
    recording.join().unwrap();
}

#[test]
fn the_machine_is_recorded_until_it_is_stopped() {
    let script = Script::default();
    script.deliver([sample(10, BEGAN + 1), sample(20, BEGAN + 2)]);
    script.then(ScriptStep::Stop);
    let (events, end) = record(&script, plan(&[]));
    assert_eq!(samples_of(&events), [Pid(10), Pid(20)]);
    assert_eq!((end.reason, end.left_running), (Some(EndReason::Stopped), false));
}

#[test]
fn a_recording_ends_after_its_duration() {
    let script = Script::default();
    let duration = Some(Duration::from_millis(20));
    let (_, end) = record(&script, EtwPlan { duration, ..plan(&[10]) });
    assert_eq!(end.reason, Some(EndReason::Duration));
}

#[test]
fn what_ran_outside_the_recording_is_left_out() {
    let script = Script::default();
    script.deliver([process(10, 1, 5), image(10, 6), sample(10, 7), sample(10, BEGAN + 1)]);
    script.then(ScriptStep::Stop);
    script.deliver_after_stop([sample(10, u64::MAX / 2), image(10, BEGAN + 9)]);
    let (events, _) = record(&script, plan(&[10]));
    assert_eq!(samples_of(&events).len(), 1);
    let images = events.iter().filter(|event| matches!(event.kind, EventKind::Map(_)));
    assert_eq!(images.map(|event| event.time.0).collect::<Vec<_>>(), [BEGAN, BEGAN + 9]);
}

#[test]
fn a_session_that_refuses_leaves_nothing_behind() {
    for refused in ["start", "events", "sample"] {
        let script = Script::default();
        script.refuse(refused);
        let opened = StartedSession::open(SimulatedSession::of(&script), TestMachine::of(&script), plan(&[]));
        assert!(matches!(opened, Err(EtwDenied::NotAdministrator)), "{refused}");
        assert!(!script.runs(), "{refused}");
    }
}

#[test]
fn a_session_that_is_not_recorded_is_stopped() {
    let script = Script::default();
    let ready =
        StartedSession::open(SimulatedSession::of(&script), TestMachine::of(&script), plan(&[])).unwrap();
    assert!(script.runs());
    drop(ready);
    assert!(!script.runs());
}

#[test]
fn lost_events_are_counted_once() {
    let script = Script::default();
    script.lose(SessionLosses { events: 7, buffers: 0 });
    script.deliver([sample(10, BEGAN + 1)]);
    script.then(ScriptStep::Wait(Duration::from_secs(3)));
    script.then(ScriptStep::Lose(SessionLosses { events: 9, buffers: 2 }));
    script.then(ScriptStep::Stop);
    let (events, end) = record(&script, plan(&[]));
    assert_eq!((lost(&events), end.lost_buffers), (9, 2));
}

#[test]
fn images_of_an_ended_process_are_kept() {
    let script = Script::default();
    script.deliver([
        process(10, 1, 5),
        process(11, 10, BEGAN + 1),
        sample(11, BEGAN + 2),
        event(2, 11, 0, BEGAN + 3),
        image(11, BEGAN + 4),
    ]);
    script.then(ScriptStep::End(11));
    script.then(ScriptStep::EndNamed);
    let (events, end) = record(&script, plan(&[10]));
    let is_image = |event: &Event| matches!(&event.kind, EventKind::Map(map) if map.pid == Some(Pid(11)));
    assert!(events.iter().any(is_image));
    assert!(!end.left_running);
}

#[test]
fn pending_buffers_are_taken_after_the_stop() {
    let script = Script::default();
    script.deliver([process(10, 1, 5), sample(10, BEGAN + 1)]);
    script.then(ScriptStep::Stop);
    script.deliver_after_stop([sample(10, BEGAN + 2), sample(10, BEGAN + 3)]);
    let (events, end) = record(&script, plan(&[10]));
    assert_eq!(samples_of(&events).len(), 3);
    assert!(!end.was_cut);
}

#[test]
fn a_delivery_that_never_ends_is_left() {
    let script = Script::default();
    script.then(ScriptStep::Stop);
    script.never_end();
    let (_, end) = record(&script, plan(&[]));
    assert_eq!(end.reason, Some(EndReason::Stopped));
}

#[test]
fn a_session_that_others_stop_ends_the_recording() {
    let script = Script::default();
    script.deliver([sample(10, BEGAN + 1)]);
    script.fail_delivery();
    let (events, end) = record(&script, plan(&[]));
    assert_eq!(samples_of(&events), [Pid(10)]);
    assert!(end.was_cut && end.failure.is_some(), "{end:?}");
    assert!(!script.runs());
}

#[test]
fn the_machines_shortest_interval_is_the_least() {
    assert_eq!(interval_within(1_000_000, &(122_100..=1_000_000_000)), 1_000_000);
    assert_eq!(interval_within(50_000, &(122_100..=1_000_000_000)), 122_100);
    #[expect(clippy::reversed_empty_ranges, reason = "the system may state anything")]
    let reversed = 9..=1;
    assert_eq!(interval_within(50_000, &reversed), 50_000);
}

#[test]
fn switches_have_stacks_if_waits_are_recorded() {
    assert_eq!(SETTINGS.stack_walks(), [StackWalk::Sample]);
    let waits = SessionSettings { waits: true, ..SETTINGS };
    assert_eq!(waits.stack_walks(), [StackWalk::Sample, StackWalk::ContextSwitch]);
}

#[test]
fn sessions_of_ended_recorders_are_stale() {
    let names = ["nyquist-5", "nyquist-6", "nyquist-05", "nyquist-", "Eventlog-System", "nyquist-x"];
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).chain([7, 8].map(name_of)).collect();
    let running = [(6, "Nyquist.exe"), (7, "other.exe"), (8, "nyquist.exe")];
    let running = running.map(|(pid, name)| (pid, name.to_owned()));
    let found = |own_name| stale(names.clone(), (8, own_name), &running);
    // A recorder that was killed had the number that this one has, too.
    assert_eq!(found(Some("nyquist.exe")), [5, 7, 8].map(name_of));
    assert_eq!(found(None), [5, 8].map(name_of), "any program could be a recorder");
}

#[test]
fn rates_are_the_nearest_whole_numbers() {
    assert_eq!(
        [1_000_000, 999_999, 1_000_600, 122_100, 0].map(rate_of),
        [1000, 1000, 999, 8190, 1_000_000_000]
    );
}

#[test]
fn an_idle_target_does_not_hold_up_the_recording() {
    let second = 1_000_000_000;
    let script = Script::default();
    script.deliver([process(10, 1, 5), sample(20, BEGAN + 9 * second)]);
    script.then(ScriptStep::Stop);
    let mut recording =
        StartedSession::open(SimulatedSession::of(&script), TestMachine::of(&script), plan(&[10]))
            .unwrap()
            .record(TestDecoder::of(&script), || ())
            .unwrap();
    let first = recording.next().unwrap();
    assert!(first.complete_before().0 > BEGAN + 6 * second, "{:?}", first.complete_before());
    while recording.next().is_some() {}
    recording.join().unwrap();
}

#[test]
fn refusals_are_a_sentence_with_advice() {
    let denied = EtwDenied::NotAdministrator;
    assert!(denied.to_string().contains("administrator"), "{denied}");
    assert_eq!(denied.advice(false).len(), 1);
    assert!(denied.advice(true).iter().any(|hint| hint.contains("--backend suspend")));
    assert!(EtwDenied::Wine.advice(true).iter().any(|hint| hint.contains("--backend suspend")));
    assert!(EtwDenied::Wine.advice(false).iter().any(|hint| hint.contains("-p")));
    let source = std::io::Error::from(std::io::ErrorKind::InvalidInput);
    let interval = EtwDenied::Interval { requested_ns: 50_000, least_ns: Some(122_100), source };
    assert!(interval.to_string().contains("0.05 ms"), "{interval}");
    assert!(interval.advice(false)[0].contains("0.1221 ms"));
}
