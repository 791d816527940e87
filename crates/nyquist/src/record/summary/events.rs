//! The events that were recorded in addition to the samples, and their numbers.

use crate::number::{counted, grouped};
use crate::printer::Printer;
use nyquist_convert::OccurrenceCounts;
use std::collections::BTreeMap;

/// The maximum number of events that are named.
const NAMED: usize = 12;

/// Prints the number of recorded and of missing occurrences of each event.
/// `in_all` has the numbers of those whose records do not add up to them.
pub(super) fn print(
    printer: Printer,
    names: &[String],
    counts: &OccurrenceCounts,
    in_all: &BTreeMap<String, u64>,
) {
    if names.is_empty() {
        return;
    }
    printer.say(line(names, |name| in_all.get(name).copied().unwrap_or_else(|| counts.of(name).count)));
    for name in names {
        if let Some(warning) =
            in_all.get(name).and_then(|all| unrepresented(name, *all, counts.of(name).count))
        {
            printer.warn(warning);
        }
        let left_out = counts.of(name).left_out;
        if left_out > 0 {
            let records = counted(left_out, "record");
            printer.warn(format_args!(
                "{records} of {name} are counted, but not in the profile, which would be too large: -c N records one of N"
            ));
        }
    }
    if counts.lost > 0 {
        printer.warn(dropped(counts.lost));
    }
}

/// A warning of records of events that the kernel dropped.
pub(crate) fn dropped(records: u64) -> String {
    let records = counted(records, "event record");
    format!("{records} were dropped, and are not counted: -c N records one of N events")
}

/// A warning if the samples of an event stand for a part of it. The kernel adapts their rate, and does that too late
/// where many events happen in a short time.
fn unrepresented(name: &str, all: u64, recorded: u64) -> Option<String> {
    let (recorded_of, all_of) = (grouped(recorded), grouped(all));
    (recorded < all / 10 * 9).then(|| {
        format!("the samples of {name} stand for {recorded_of} of {all_of} only, because the kernel chose too low a rate: -c N records one of N")
    })
}

fn line(names: &[String], count: impl Fn(&str) -> u64) -> String {
    let mut by_event: Vec<_> = names.iter().map(|name| (name, count(name))).collect();
    if by_event.len() > NAMED {
        by_event.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    }
    let texts: Vec<_> =
        by_event.iter().take(NAMED).map(|(name, count)| format!("{name} {}", grouped(*count))).collect();
    let more = match by_event.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" · {} more", counted(more as u64, "event")),
    };
    format!("Events: {}{more}", texts.join(" · "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_that_no_record_stands_for_are_said() {
        let warning = unrepresented("page-faults", 30_093, 650).unwrap();
        assert!(
            warning.starts_with("the samples of page-faults stand for 650 of 30,093 only, because"),
            "{warning}"
        );
        assert_eq!(unrepresented("page-faults", 30_093, 29_570), None);
        assert_eq!(unrepresented("page-faults", 5, 5), None);
    }

    #[test]
    fn events_are_reported_with_their_counts() {
        let names = ["page-faults".to_owned(), "sched:sched_switch".to_owned()];
        let text = line(&names, |_| 0);
        assert_eq!(text, "Events: page-faults 0 · sched:sched_switch 0");
        let many: Vec<_> = (0..20).map(|number| format!("a:{number}")).collect();
        assert!(line(&many, |_| 0).ends_with(" · 8 events more"), "{}", line(&many, |_| 0));
    }
}
