//! `nyquist list`: the events of this machine, and which of them this process may count.

use crate::args::ListArgs;
use crate::failure::Failure;
use crate::memory;
use crate::number::counted;
use crate::page;
use crate::shell;
use crate::text::{Screen, Style, Text, cut, one_line};
use nyquist_convert::NamePattern;
use nyquist_convert::event::Pid;
use nyquist_record::linux::counting::{CountedScope, EventCounters, MissingCount};
use nyquist_record::linux::event_names::{
    EventGroup, EventSources, ListedEvent, ProbedFile, RequestedEvent, closest, listed, parse,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;

/// The kinds of events with their headings.
const GROUPS: [(EventGroup, &str, &str); 6] = [
    (EventGroup::Software, "software", "Software: counted by the kernel"),
    (EventGroup::Hardware, "hardware", "Hardware: counted by the CPU"),
    (EventGroup::Cache, "cache", "Caches: counted by the CPU"),
    (EventGroup::Unit, "unit", "Counting units of the machine"),
    (EventGroup::Tracepoint, "tracepoint", "Tracepoints: places in the kernel"),
    (EventGroup::UserProbe, "probe", "Probes that the program was built with (USDT)"),
];

/// Runs the subcommand.
pub(crate) fn run(args: &ListArgs) -> Result<(), Failure> {
    let sources = EventSources::of_machine().within_memory(memory::side_files(None).most());
    let file = args.word.as_deref().and_then(|path| ProbedFile::at(path.into())).transpose();
    let file = file.map_err(|error| cannot_read(args, &error))?;
    let all = listed(&sources, file.as_ref());
    let requested: Vec<_> = match &args.word {
        Some(_) if file.is_some() => {
            all.iter().filter(|event| event.group == EventGroup::UserProbe).collect()
        }
        Some(word) => {
            let group = format!("{word}:");
            let of_group: Vec<_> = all.iter().filter(|event| event.name.starts_with(&group)).collect();
            if of_group.is_empty() {
                all.iter().filter(|event| fits(event, word)).collect()
            } else {
                of_group
            }
        }
        None => all.iter().collect(),
    };
    if requested.is_empty() && args.word.is_some() {
        return Err(nothing(args, file.is_some(), &all));
    }
    if args.names {
        let names = requested.iter().flat_map(|event| std::iter::once(&event.name).chain(&event.other_names));
        return page::print(names.map(|name| one_line(name) + "\n").collect::<String>());
    }
    let states = states(&requested, &sources);
    let events: Vec<_> = requested.into_iter().zip(states).collect();
    if args.json {
        return page::print_json(
            &json!({ "schema": "nyquist-list/1", "events": events.iter().map(as_json).collect::<Vec<_>>() }),
        );
    }
    let screen = Screen::of_stdout();
    let mut text = Text::default();
    for (group, _, heading) in GROUPS {
        let of_group: Vec<_> = events.iter().filter(|(event, _)| event.group == group).collect();
        if of_group.is_empty() {
            continue;
        }
        text += Style::Bold.paint(heading, screen) + "\n";
        if group == EventGroup::Tracepoint && args.word.is_none() {
            text += tracepoint_groups(&of_group);
        } else {
            text += rows(&of_group, screen);
        }
        text += "\n";
    }
    if args.word.is_none() {
        text += notes(&sources, &events);
    }
    page::print(text.trim_end() + "\n")
}

/// Whether this process may use an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EventState {
    Usable,
    UserOnly,
    Missing(MissingCount),
    Unknown,
}

impl EventState {
    fn word(self) -> &'static str {
        match self {
            Self::Usable => "usable",
            Self::UserOnly => "user code only",
            Self::Missing(MissingCount::NotPermitted) => "needs more rights",
            Self::Missing(MissingCount::WholeMachineOnly) => "for the whole machine only",
            Self::Missing(_) => "not on this machine",
            Self::Unknown => "unknown",
        }
    }
}

/// Whether a word selects an event: by a pattern, a part of a name, or a kind.
fn fits(event: &ListedEvent, word: &str) -> bool {
    let word = word.to_lowercase();
    let kind = GROUPS.iter().find(|(group, ..)| *group == event.group).map_or("", |(_, kind, _)| kind);
    let names = || std::iter::once(&event.name).chain(&event.other_names);
    if word.contains(['*', '?']) {
        let pattern = NamePattern::new(&word);
        let last = |name: &str| name.rsplit(':').next().unwrap_or_default().to_lowercase();
        return names().any(|name| pattern.matches(&name.to_lowercase()) || pattern.matches(&last(name)));
    }
    kind == word.trim_end_matches('s')
        || names().any(|name| name.to_lowercase().contains(&word))
        || event.about.to_lowercase().contains(&word)
}

fn cannot_read(args: &ListArgs, error: &io::Error) -> Failure {
    Failure::because(format!("cannot read {}", args.word.as_deref().unwrap_or_default()), error)
}

fn nothing(args: &ListArgs, is_file: bool, all: &[ListedEvent]) -> Failure {
    let word = args.word.as_deref().unwrap_or_default();
    if is_file {
        let counting = ["stat", "-e", &format!("{word}:FUNCTION")];
        return Failure::new(format!("{word} was built without probes (USDT)"))
            .hint(format!("`{}` counts the calls of a function", shell::nyquist(counting)));
    }
    let names: Vec<_> =
        all.iter().map(|event| event.name.rsplit(':').next().unwrap_or(&event.name)).collect();
    let similar = closest(word, names.into_iter().chain(all.iter().map(|event| &*event.name)));
    let failure = Failure::new(format!("no event has `{word}` in its name"));
    let failure =
        if similar.is_empty() { failure } else { failure.hint(format!("similar: {}", similar.join(", "))) };
    failure.hint("`nyquist list` lists all events of this machine")
}

/// Opens each event once on this thread, and returns the outcome. Of the tracepoints only one is tried,
/// because they all behave alike.
fn states(events: &[&ListedEvent], sources: &EventSources) -> Vec<EventState> {
    let mut tracepoints = None;
    let mut state = |event: &ListedEvent| match event.group {
        EventGroup::Tracepoint => *tracepoints.get_or_insert_with(|| state_of(event, sources)),
        EventGroup::UserProbe => {
            event.probe.as_ref().map_or(EventState::Unknown, |probe| tried(std::slice::from_ref(probe)))
        }
        _ => state_of(event, sources),
    };
    events.iter().map(|event| state(event)).collect()
}

fn state_of(event: &ListedEvent, sources: &EventSources) -> EventState {
    let Ok(named) = parse(&event.name, sources) else { return EventState::Unknown };
    tried(&named)
}

fn tried(events: &[RequestedEvent]) -> EventState {
    /// The kernel's value that means the calling thread.
    const THIS_THREAD: Pid = Pid(0);
    let Ok(counters) = EventCounters::open(events, CountedScope::Child(THIS_THREAD)) else {
        return EventState::Unknown;
    };
    match counters.read().first().map(|reading| (reading.count, reading.user_only)) {
        Some((Ok(_) | Err(MissingCount::NotCounted), false)) => EventState::Usable,
        Some((Ok(_) | Err(MissingCount::NotCounted), true)) => EventState::UserOnly,
        Some((Err(missing), _)) => EventState::Missing(missing),
        None => EventState::Unknown,
    }
}

fn as_json((event, state): &(&ListedEvent, EventState)) -> Value {
    let kind = GROUPS.iter().find(|(group, ..)| *group == event.group).map_or("", |(_, kind, _)| kind);
    json!({
        "name": event.name,
        "other_names": event.other_names,
        "kind": kind,
        "about": event.about,
        "state": state.word(),
    })
}

/// The groups of tracepoints with their sizes, because a list of all tracepoints would have thousands of
/// lines.
fn tracepoint_groups(events: &[&(&ListedEvent, EventState)]) -> Text {
    let mut groups: BTreeMap<&str, u64> = BTreeMap::new();
    for (event, _) in events {
        let group = event.name.split(':').next().unwrap_or_default();
        *groups.entry(group).or_default() += 1;
    }
    let width = groups.keys().map(|group| group.chars().count()).max().unwrap_or(0) + 2;
    let line = |(group, count): (&str, u64)| format!("  {group:width$}  {}\n", counted(count, "tracepoint"));
    groups.into_iter().map(line).collect::<String>().into()
}

/// The maximum number of columns for names, before their descriptions.
const WIDEST_NAME: usize = 40;

fn rows(events: &[&(&ListedEvent, EventState)], screen: Screen) -> Text {
    let state = events.first().map(|(_, state)| *state);
    let is_common = events.iter().all(|(_, other)| Some(*other) == state);
    let mut text = Text::default();
    if let Some(state) = state.filter(|state| is_common && *state != EventState::Usable) {
        text += Style::Dim.paint(&format!("  ({})", state.word()), screen) + "\n";
    }
    let name = |event: &ListedEvent| match event.other_names.as_slice() {
        [] => one_line(&event.name).into_owned(),
        others => one_line(&format!("{}, {}", event.name, others.join(", "))).into_owned(),
    };
    let lengths = events.iter().map(|(event, _)| name(event).chars().count());
    let width = lengths.filter(|length| *length <= WIDEST_NAME).max().unwrap_or(0);
    for (event, state) in events {
        let note = if is_common || *state == EventState::Usable { "" } else { state.word() };
        let about = match (one_line(&event.about), note) {
            (about, "") => about.into_owned(),
            (about, note) if about.is_empty() => format!("({note})"),
            (about, note) => format!("{about} ({note})"),
        };
        let line = format!("  {:width$}  {about}", name(event));
        let line = line.trim_end();
        let shown = screen.width.map_or_else(|| line.to_owned(), |room| cut(line, room, screen.unicode));
        text += shown + "\n";
    }
    text
}

/// The events that are not in the list, and why.
fn notes(sources: &EventSources, events: &[(&ListedEvent, EventState)]) -> Text {
    let mut text = Text::default();
    if let Some((reason, advice)) = sources.lack_of_tracepoints() {
        text += format!("Tracepoints are not listed: {reason}; {advice}.\n");
    } else {
        text += "`nyquist list GROUP` lists the tracepoints of a group.\n";
    }
    let lacks_pmu = events.iter().any(|(event, state)| {
        event.name == "cycles" && *state == EventState::Missing(MissingCount::NotSupported)
    });
    if lacks_pmu {
        text += "The CPU's counters (PMU) are not there, as in most virtual machines.\n";
    }
    text += "Functions of programs are events, too: ./app:FUNCTION, libc:malloc.\n";
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_find_names_kinds_and_meanings() {
        let sources = EventSources::in_folders("/no/such".into(), None);
        let all = listed(&sources, None);
        let found =
            |word: &str| all.iter().filter(|event| fits(event, word)).map(|it| &*it.name).collect::<Vec<_>>();
        assert!(found("faults").contains(&"page-faults") && !found("faults").contains(&"cycles"));
        assert_eq!(found("cs"), ["context-switches"]);
        assert!(found("software").contains(&"task-clock"));
        assert!(found("CYCLES").contains(&"bus-cycles"));
        assert!(found("*-clock").contains(&"cpu-clock") && found("*-clock").len() == 2);
        assert!(found("xyzzy").is_empty());
        let args = ListArgs {
            word: Some("cyclse".into()),
            json: false,
            names: false,
            verbosity: crate::args::Verbosity::default(),
        };
        let failure = nothing(&args, false, &all);
        assert!(failure.hints[0].contains("cycles"), "{failure:?}");
    }
}
