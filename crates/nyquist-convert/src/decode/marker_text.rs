//! samply's marker files: text files of lines `START END NAME`, in nanoseconds of CLOCK_MONOTONIC, named
//! `marker-PID.txt` or `marker-PID-TID.txt` (samply, `marker_file.rs`).

use crate::decode::marker_file::Period;
use crate::event::{Event, EventKind, Marker, MarkerTiming, Pid, Tid, Timestamp, Track};

/// The process and the thread that a path of one of samply's marker files names, by the program's own
/// numbers.
pub fn owner_in_path(path: &str) -> Option<(Pid, Tid)> {
    let name = path.strip_suffix(" (deleted)").unwrap_or(path).rsplit('/').next()?;
    let numbers = name.strip_prefix("marker-")?.strip_suffix(".txt")?;
    let number = |digits: &str| {
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
    };
    let (pid, tid) = match numbers.split_once('-') {
        Some((pid, tid)) => (number(pid)?, number(tid)?),
        None => (number(numbers)?, number(numbers)?),
    };
    Some((Pid(pid), Tid(tid)))
}

/// Appends the markers of a file's content, and returns how many lines could not be parsed.
pub fn decode(content: &[u8], owner: (Pid, Tid), period: Period, events: &mut Vec<Event>) -> u64 {
    let mut unreadable = 0;
    for line in content.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        match interval(line, period).filter(|(_, end, _)| *end <= period.until) {
            Some((start, end, name)) if end >= period.since => events.push(event(owner, start, end, name)),
            Some(_) => {}
            None => unreadable += 1,
        }
    }
    unreadable
}

fn interval(line: &[u8], period: Period) -> Option<(Timestamp, Timestamp, &str)> {
    let line = std::str::from_utf8(line).ok()?;
    let mut fields = line.splitn(3, ' ');
    let mut time = || fields.next()?.parse().ok().map(|time| period.time(time));
    let (start, end) = (time()?, time()?);
    let name = fields.next().filter(|name| !name.is_empty())?;
    (start <= end).then_some((start, end, name))
}

fn event((pid, tid): (Pid, Tid), start: Timestamp, end: Timestamp, name: &str) -> Event {
    let marker = Marker {
        pid,
        track: Track::Thread(tid),
        name: name.into(),
        timing: if start == end { MarkerTiming::Instant } else { MarkerTiming::Interval { start } },
        schema: None,
        values: Vec::new(),
        category: None,
    };
    Event { time: end, cpu: None, kind: EventKind::Marker(Box::new(marker)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_name_says_whose_it_is() {
        let check = |path: &str, expected: Option<(u32, u32)>| {
            assert_eq!(owner_in_path(path), expected.map(|(pid, tid)| (Pid(pid), Tid(tid))), "{path}");
        };
        check("/tmp/x/marker-12-34.txt", Some((12, 34)));
        check("marker-12.txt", Some((12, 12)));
        check("/tmp/marker-12-34.txt (deleted)", Some((12, 34)));
        check("/tmp/marker-12-34.text", None);
        check("/tmp/my-marker-12-34.txt", None);
        check("/tmp/marker--1.txt", None);
        check("/tmp/marker-+1.txt", None);
        check("/tmp/marker-99999999999.txt", None);
    }

    #[test]
    fn lines_are_intervals_and_others_are_counted() {
        let content = b"150 200 load the index\n\n150 150 now\nx 3 y\n3\n150 200 \n300 200 back\n150 9999 later\n1 99 old\n\xff\n";
        let (mut events, period) =
            (Vec::new(), Period { since: Timestamp(100), until: Timestamp(1000), ahead_ns: 0 });
        assert_eq!(decode(content, (Pid(1), Tid(2)), period, &mut events), 6);
        let found: Vec<_> = events
            .iter()
            .map(|event| match &event.kind {
                EventKind::Marker(marker) => (&*marker.name, marker.timing, event.time.0),
                other => panic!("{other:?}"),
            })
            .collect();
        let interval = MarkerTiming::Interval { start: Timestamp(150) };
        assert_eq!(found, [("load the index", interval, 200), ("now", MarkerTiming::Instant, 150)]);
    }
}
