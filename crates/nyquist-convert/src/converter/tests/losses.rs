//! Tests of the counts of losses and pauses, and of their markers and samples.

use super::*;

/// Each marker of the first thread as "name values start-end", with times in ms, and how many records were
/// lost.
fn shown(converter: Converter) -> (Vec<String>, u64) {
    let finished = converter.finish();
    let profile = finished.profile;
    assert_eq!(finished.statistics.lost, profile.meta().lost_samples);
    let line = |marker: &profile::Marker| {
        let value = |value: &profile::MarkerValue| match value {
            profile::MarkerValue::String(id) => profile.string(*id).to_owned(),
            profile::MarkerValue::Integer(number) => number.to_string(),
            other => panic!("{other:?}"),
        };
        let values: Vec<_> = marker.values.iter().map(value).collect();
        let time = match marker.timing {
            profile::MarkerTiming::Instant(at) => format!("{}", at / MS),
            profile::MarkerTiming::Interval(start, end) => format!("{}-{}", start / MS, end / MS),
            other => panic!("{other:?}"),
        };
        format!("{} {} {time}", profile.string(marker.name), values.join(" "))
    };
    (profile.threads()[0].markers.iter().map(line).collect(), profile.meta().lost_samples)
}

fn lost_at(time_ms: u64, records: u64) -> Event {
    at(time_ms, EventKind::Lost { records })
}

fn check(events: Vec<Event>, expected: &[&str], lost: u64) {
    let mut converter = converter(true);
    for event in events {
        converter.push(event);
    }
    let (markers, records) = shown(converter);
    assert_eq!((markers.iter().map(String::as_str).collect::<Vec<_>>(), records), (expected.to_vec(), lost));
}

#[test]
fn a_cpu_has_lost_since_its_last_sample() {
    check(
        vec![
            on(3, at(1, sample(1, 1, None, &[1]))),
            on(4, at(2, sample(1, 1, None, &[1]))),
            on(3, lost_at(5, 7)),
            on(4, lost_at(5, 8)),
            on(3, at(6, sample(1, 2, None, &[1]))),
            on(3, lost_at(9, 1)),
        ],
        &["Lost samples 7 CPU 3 1-5", "Lost samples 8 CPU 4 2-5", "Lost samples 1 CPU 3 6-9"],
        16,
    );
}

#[test]
fn losses_before_all_samples_are_shown_too() {
    check(vec![on(3, lost_at(1, 7)), at(2, sample(1, 1, None, &[1]))], &["Lost samples 7 CPU 3 1"], 7);
    let nowhere = Event { cpu: None, ..lost_at(1, 7) };
    check(vec![nowhere, at(2, sample(1, 1, None, &[1]))], &["Lost samples 7 unknown CPU 1"], 7);
}

#[test]
fn losses_are_shown_with_a_main_thread() {
    let mut converter = converter(true);
    converter.push(at(1, sample(1, 2, None, &[1])));
    converter.push(at(2, sample(1, 1, None, &[1])));
    converter.push(lost_at(3, 1));
    let profile = converter.finish().profile;
    let markers: Vec<_> =
        profile.threads().iter().map(|thread| (&*thread.tid, thread.markers.len())).collect();
    assert_eq!(markers, [("2", 0), ("1", 1)]);
}

#[test]
fn losses_are_shown_with_their_cpus_row() {
    let mut converter = shaped(Shape { cpu_threads: true, ..Shape::default() });
    converter.push(on(3, at(1, sample(1, 1, None, &[1]))));
    converter.push(on(3, lost_at(2, 7)));
    let profile = converter.finish().profile;
    let markers: Vec<_> =
        profile.threads().iter().map(|thread| (&*thread.name, thread.markers.len())).collect();
    assert_eq!(markers, [("<1>", 0), ("All CPUs", 1), ("CPU 3", 1)]);
}

#[test]
fn losses_summed_at_the_end_are_counted_once() {
    const REPORTED: [&str; 2] = ["Lost samples 3 CPU 3 1-3", "Lost samples 2 CPU 4 5"];
    let check_counts = |counts: &[(Option<u32>, u64)], unreported: &[&str], lost: u64| {
        let reported = [on(3, at(1, sample(1, 1, None, &[1]))), on(3, lost_at(3, 3)), on(4, lost_at(5, 2))];
        let count = |&(cpu, records)| Event { cpu, ..at(0, EventKind::LostInAll { records }) };
        let mut converter = converter(true);
        for event in reported.into_iter().chain(counts.iter().map(count)) {
            converter.push(event);
        }
        let (mut markers, records) = shown(converter);
        markers.retain(|marker| !REPORTED.contains(&marker.as_str()));
        assert_eq!(
            (markers.iter().map(String::as_str).collect::<Vec<_>>(), records),
            (unreported.to_vec(), lost)
        );
    };
    check_counts(&[(Some(3), 2)], &[], 5);
    check_counts(&[(Some(3), 3), (Some(4), 2)], &[], 5);
    // The last losses of a CPU have no loss record.
    check_counts(&[(Some(3), 1), (Some(3), 6), (Some(4), 1)], &["Lost samples 4 CPU 3 1-5"], 9);
    let both = ["Lost samples 1 CPU 3 1-5", "Lost samples 2 CPU 9 5"];
    check_counts(&[(Some(3), 4), (Some(9), 2)], &both, 8);
    // If the counters' CPUs are not known, they may include loss records of any CPU.
    check_counts(&[(None, 1), (None, 4)], &[], 5);
    check_counts(&[(None, 1), (None, 5)], &["Lost samples 1 unknown CPU 5"], 6);
    let both = ["Lost samples 1 CPU 3 1-5", "Lost samples 4 unknown CPU 5"];
    check_counts(&[(None, 1), (None, 5), (Some(3), 4)], &both, 10);
}

#[test]
fn unwanted_losses_are_counted_and_not_shown() {
    for selection in [
        SampleSelection { cpus: vec![4], ..SampleSelection::default() },
        SampleSelection { time: Some(0..2 * MS), ..SampleSelection::default() },
    ] {
        let mut converter = selecting(selection);
        converter.push(on(4, at(1, sample(1, 1, None, &[1]))));
        converter.push(on(3, lost_at(3, 7)));
        assert_eq!(shown(converter), (Vec::new(), 7));
    }
}

#[test]
fn pauses_last_until_sampling_resumes_or_the_end() {
    check(
        vec![
            on(3, at(1, sample(1, 1, None, &[1]))),
            on(3, at(2, EventKind::Throttled)),
            on(4, at(3, EventKind::Throttled)),
            on(3, at(4, EventKind::Unthrottled)),
            on(3, at(5, EventKind::Unthrottled)),
            on(3, at(6, sample(1, 1, None, &[1]))),
        ],
        &["Sampling paused CPU 3 2-4", "Sampling paused CPU 4 3-6"],
        0,
    );
}

#[test]
fn time_of_lost_samples_is_nobody_elses() {
    let events = |lost: bool| {
        let mut events = vec![
            at(1, sample(1, 1, Some(1), &[1])),
            at(2, sample(1, 2, Some(1), &[2])),
            at(9, sample(1, 1, Some(8), &[3])),
            at(10, sample(1, 1, Some(12), &[4])),
            at(11, sample(1, 2, Some(3), &[5])),
        ];
        events.extend(lost.then(|| lost_at(8, 7)));
        events
    };
    let stacks = |kernel_permitted: bool, lost: bool| {
        let mut converter = converter(kernel_permitted);
        for event in events(lost) {
            converter.push(event);
        }
        folded(&converter.finish().profile)
    };
    let kernel = |weight: u32| format!("[kernel: not permitted] {weight}");
    let first = ["0x1 1".to_owned(), kernel(6), "0x3 1".to_owned(), kernel(3), "0x4 1".to_owned()];
    let second = ["0x2 1".to_owned(), kernel(1), "0x5 1".to_owned()];
    assert_eq!(stacks(false, false), [&first[..], &second].concat());
    // Six intervals of the first thread, none of its time after the loss, and one of the second thread.
    let not_sampled = |weight: u32| format!("[not sampled] {weight}");
    let first = ["0x1 1".to_owned(), not_sampled(6), "0x3 1".to_owned(), kernel(3), "0x4 1".to_owned()];
    let second = ["0x2 1".to_owned(), not_sampled(1), "0x5 1".to_owned()];
    assert_eq!(stacks(false, true), [&first[..], &second].concat());
    // The lost time is also not time of the code that is sampled next.
    assert_eq!(stacks(true, false), ["0x1 1", "0x3 7", "0x4 4", "0x2 1", "0x5 2"]);
    let first = ["0x1 1".to_owned(), not_sampled(6), "0x3 1".to_owned(), "0x4 4".to_owned()];
    assert_eq!(
        stacks(true, true),
        [&first[..], &["0x2 1".to_owned(), not_sampled(1), "0x5 1".to_owned()]].concat()
    );
}

#[test]
fn leftover_cpu_time_is_not_sampled_after_losses() {
    let check = |converter: Converter, lost: bool, used_ms: u64, expected: &[&str]| {
        let mut converter = converter;
        converter.push(at(1, sample(1, 1, Some(1), &[1])));
        converter.push(at(3, sample(1, 2, Some(2), &[2])));
        if lost {
            converter.push(lost_at(8, 7));
        }
        converter.push(at(0, EventKind::TotalInAll { cpu_time_ns: used_ms * MS }));
        assert_eq!(folded(&converter.finish().profile), expected, "{lost} {used_ms}");
    };
    let all = || converter(true);
    check(all(), true, 9, &["0x1 1", "[not sampled] 6", "0x2 2"]);
    check(all(), true, 2, &["0x1 1", "0x2 2"]);
    check(all(), false, 9, &["0x1 1", "0x2 2"]);
    // The rows of CPUs have all samples of the CPU a second time.
    let by_cpu = |(lost, used_ms)| {
        let mut converter = shaped(Shape { cpu_threads: true, ..Shape::default() });
        converter.push(on(3, at(1, sample(1, 2, Some(1), &[1]))));
        if lost {
            converter.push(on(3, lost_at(8, 7)));
        }
        converter.push(at(0, EventKind::TotalInAll { cpu_time_ns: used_ms * MS }));
        let profile = converter.finish().profile;
        let weight =
            |row: &nyquist_profile::Thread| row.samples.iter().map(|sample| sample.weight).sum::<u64>();
        profile.threads().iter().map(|row| (row.name.clone(), weight(row))).collect::<Vec<_>>()
    };
    let rows = |of_thread: u64| {
        vec![("<1>".to_owned(), of_thread), ("All CPUs".to_owned(), 1), ("CPU 3".to_owned(), 1)]
    };
    assert_eq!([by_cpu((false, 9)), by_cpu((true, 9))], [rows(1), rows(9)]);
    // Unwanted threads are included.
    let main_threads = Shape { main_threads_only: true, ..Shape::default() };
    check(shaped(main_threads), true, 9, &["0x1 1"]);
    let of_first = SampleSelection { tids: vec![Tid(1)], ..SampleSelection::default() };
    check(selecting(of_first), true, 9, &["0x1 1"]);
}

#[test]
fn leftover_cpu_time_is_at_the_last_loss() {
    let mut converter = converter(true);
    converter.push(at(1, sample(1, 1, Some(1), &[1])));
    converter.push(lost_at(8, 7));
    converter.push(at(0, EventKind::TotalInAll { cpu_time_ns: 9 * MS }));
    // An import does not know the end of a recording.
    converter.note_end(Timestamp(20 * MS));
    let profile = converter.finish().profile;
    let times: Vec<_> = profile.threads()[0].samples.iter().map(|sample| sample.time / MS).collect();
    assert_eq!(times, [1, 8]);
}

#[test]
fn no_more_time_was_lost_than_samples_were() {
    let mut converter = converter(false);
    let events = [
        at(1, sample(1, 1, Some(1), &[1])),
        lost_at(8, 4),
        on(3, at(9, sample(1, 1, Some(3), &[2]))),
        at(10, sample(1, 1, Some(8), &[3])),
    ];
    for event in events {
        converter.push(event);
    }
    // On the other CPU it has lost nothing.
    assert_eq!(
        folded(&converter.finish().profile),
        [
            "0x1 1",
            "[kernel: not permitted] 2",
            "0x2 1",
            "[not sampled] 4",
            "[kernel: not permitted] 2",
            "0x3 1"
        ]
    );
}
