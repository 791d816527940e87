//! The events that are recorded in addition to the samples.

use crate::args::quantity::whole;
use clap::builder::NonEmptyStringValueParser;
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};

const EVENTS: &str = "events";
const COUNT: &str = "event_count";
const FILTER: &str = "event_filter";

/// The events that are recorded, and how often each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EventArgs {
    pub(crate) requested: Vec<RequestedEvents>,
    /// One sample each so many events.
    pub(crate) count: Option<u64>,
}

/// Events that were requested together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestedEvents {
    /// Their names, separated by commas.
    pub(crate) text: String,
    /// Which occurrences of these tracepoints are requested.
    pub(crate) filter: Option<String>,
}

impl Args for EventArgs {
    fn augment_args(command: Command) -> Command {
        let events = Arg::new(EVENTS)
            .short('e')
            .long("event")
            .value_name("EVENT,...")
            .action(ArgAction::Append)
            .value_parser(NonEmptyStringValueParser::new())
            .help("Also record these events, each with its stack, as `nyquist list` names them: page-faults, sched:sched_switch, libc:malloc");
        let count = Arg::new(COUNT)
            .short('c')
            .long("count")
            .value_name("N")
            .requires(EVENTS)
            .value_parser(|text: &str| whole::<u64>(text, 1..=1 << 62))
            .help("Record one of N events [default: every tracepoint and call; `record` takes other events as often as samples]");
        let filter = Arg::new(FILTER)
            .long("filter")
            .value_name("EXPR")
            .action(ArgAction::Append)
            .requires(EVENTS)
            .value_parser(NonEmptyStringValueParser::new())
            .help(
                "Record the tracepoints that are named before this option only where this is true, as 'count > 4096'",
            );
        command.arg(events).arg(count).arg(filter)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for EventArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut given: Vec<(usize, bool, String)> = Vec::new();
        for (id, is_filter) in [(EVENTS, false), (FILTER, true)] {
            let places = matches.indices_of(id).into_iter().flatten();
            let texts = matches.get_many::<String>(id).into_iter().flatten();
            given.extend(places.zip(texts).map(|(place, text)| (place, is_filter, text.clone())));
        }
        given.sort();
        let mut requested: Vec<RequestedEvents> = Vec::new();
        for (_, is_filter, text) in given {
            if !is_filter {
                requested.push(RequestedEvents { text, filter: None });
                continue;
            }
            let last = requested.last_mut().filter(|last| last.filter.is_none());
            let Some(last) = last else {
                let text = "--filter follows the -e whose tracepoints it selects, at most once for each -e\n";
                return Err(Error::raw(ErrorKind::ArgumentConflict, text));
            };
            last.filter = Some(text);
        }
        Ok(Self { requested, count: matches.get_one::<u64>(COUNT).copied() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(argv: &[&str]) -> Result<EventArgs, Error> {
        let matches =
            EventArgs::augment_args(Command::new("x")).try_get_matches_from([&["x"], argv].concat())?;
        EventArgs::from_arg_matches(&matches)
    }

    #[test]
    fn a_filter_is_for_the_events_before_it() {
        let args =
            parsed(&["-e", "a:b,a:c", "-e", "a:d", "--filter", "x > 1", "-c", "7", "-e", "faults"]).unwrap();
        let requested: Vec<_> =
            args.requested.iter().map(|requested| (&*requested.text, requested.filter.as_deref())).collect();
        assert_eq!(requested, [("a:b,a:c", None), ("a:d", Some("x > 1")), ("faults", None)]);
        assert_eq!(args.count, Some(7));
        assert_eq!(parsed(&[]).unwrap(), EventArgs::default());
    }

    #[test]
    fn what_belongs_to_no_event_is_refused() {
        for argv in [
            &["--filter", "x", "-e", "a:b"][..],
            &["-e", "a:b", "--filter", "x", "--filter", "y"],
            &["-c", "7"],
            &["--filter", "x"],
            &["-e", "a:b", "-c", "0"],
            &["-e", ""],
        ] {
            assert!(parsed(argv).is_err(), "{argv:?}");
        }
    }
}
