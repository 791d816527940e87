//! The events that were recorded in addition to the samples, and their numbers.

use crate::number::{counted, grouped};
use crate::printer::Printer;
use nyquist_convert::OccurrenceCounts;

/// The maximum number of events that are named.
const NAMED: usize = 12;

/// Prints the number of recorded and of missing occurrences of each event.
pub(super) fn print(printer: Printer, names: &[String], counts: &OccurrenceCounts) {
    if names.is_empty() {
        return;
    }
    printer.say(line(names, counts));
    for name in names {
        let left_out = counts.of(name).left_out;
        if left_out > 0 {
            let records = counted(left_out, "record");
            printer.warn(format_args!(
                "{records} of {name} are counted, but not in the profile, which would be too large: -c N records one of N"
            ));
        }
    }
    if counts.lost > 0 {
        let records = counted(counts.lost, "event record");
        printer
            .warn(format_args!("{records} were dropped, and are not counted: -c N records one of N events"));
    }
}

fn line(names: &[String], counts: &OccurrenceCounts) -> String {
    let mut by_event: Vec<_> = names.iter().map(|name| (name, counts.of(name).count)).collect();
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
    fn events_are_reported_with_their_counts() {
        let names = ["page-faults".to_owned(), "sched:sched_switch".to_owned()];
        let text = line(&names, &OccurrenceCounts::default());
        assert_eq!(text, "Events: page-faults 0 · sched:sched_switch 0");
        let many: Vec<_> = (0..20).map(|number| format!("a:{number}")).collect();
        assert!(
            line(&many, &OccurrenceCounts::default()).ends_with(" · 8 events more"),
            "{}",
            line(&many, &OccurrenceCounts::default())
        );
    }
}
