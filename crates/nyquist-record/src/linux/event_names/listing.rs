//! A list of this machine's events for users to choose from.

use super::event::RequestedEvent;
use super::generic::{self, HARDWARE, SOFTWARE};
use super::probe::user_probes;
use super::probed_file::ProbedFile;
use super::read::{PROBES, of_probes};
use super::sources::EventSources;

/// The kinds of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventGroup {
    /// The events that the kernel counts itself.
    Software,
    /// The events that most CPUs count.
    Hardware,
    /// The cache events that most CPUs count.
    Cache,
    /// The named events of counting units.
    Unit,
    /// The named places in the kernel.
    Tracepoint,
    /// The probes that a program was built with.
    UserProbe,
}

/// An event that can be named.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedEvent {
    /// Its kind.
    pub group: EventGroup,
    /// Its name.
    pub name: String,
    /// Its other names, if any.
    pub other_names: Vec<String>,
    /// A short description; empty if there is none.
    pub about: String,
    /// The values of `perf_event_attr.type` and `.config`, if they are known without further files.
    pub selector: Option<(u32, u64)>,
    /// The event of a probe in the file whose events are listed. Its name alone may lead to another file.
    pub probe: Option<RequestedEvent>,
}

/// The events of this machine, group by group. If a file is given, its probes are added.
pub fn listed(sources: &EventSources, file: Option<&ProbedFile>) -> Vec<ListedEvent> {
    let generic = |group, events: &'static [generic::GenericEvent]| {
        events.iter().map(move |event| ListedEvent {
            group,
            name: event.names[0].to_owned(),
            other_names: event.names[1..].iter().map(ToString::to_string).collect(),
            about: event.about.to_owned(),
            selector: Some((event.kind, event.config)),
            probe: None,
        })
    };
    let cache = generic::listed_cache_events().map(|(name, about, config)| ListedEvent {
        selector: Some((perf_event_open_sys::bindings::PERF_TYPE_HW_CACHE, config)),
        ..named(EventGroup::Cache, name, about)
    });
    let units = sources.units().into_iter().flat_map(|unit| sources.unit_events(&unit));
    let units =
        units.map(|event| named(EventGroup::Unit, format!("{}/{}/", event.unit, event.name), event.terms));
    let groups = sources.tracepoint_groups().unwrap_or_default();
    let tracepoints = groups.into_iter().flat_map(|group| {
        let names = sources.tracepoints(&group).unwrap_or_default();
        names
            .into_iter()
            .map(move |name| named(EventGroup::Tracepoint, format!("{group}:{name}"), String::new()))
    });
    let probes = file.into_iter().flat_map(|file| probes_of(file, sources));
    let mut all: Vec<_> = generic(EventGroup::Software, SOFTWARE)
        .chain(generic(EventGroup::Hardware, HARDWARE))
        .chain(cache)
        .chain(units)
        .chain(tracepoints)
        .chain(probes)
        .collect();
    // An inlined probe occurs several times.
    all.dedup_by(|next, before| next.name == before.name);
    all
}

/// The probes that a file was built with.
fn probes_of(file: &ProbedFile, sources: &EventSources) -> impl Iterator<Item = ListedEvent> {
    let kind = sources.unit_kind(PROBES);
    user_probes(&sources.limited(file.clone())).into_iter().map(move |(probe, place)| {
        let name = format!("{}:{}:{}", file.path().display(), probe.provider, probe.name);
        let probe = kind.zip(place).map(|(kind, place)| of_probes(&name, kind, vec![place]));
        ListedEvent { probe, ..named(EventGroup::UserProbe, name, String::new()) }
    })
}

fn named(group: EventGroup, name: String, about: String) -> ListedEvent {
    ListedEvent { group, name, other_names: Vec::new(), about, selector: None, probe: None }
}
