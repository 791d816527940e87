//! Parsing a list of events: the form of each event, and what it refers to on this machine.

use std::io;
use std::ops::Range;

use nyquist_convert::NamePattern;
use perf_event_open_sys::bindings::{
    PERF_TYPE_HARDWARE, PERF_TYPE_HW_CACHE, PERF_TYPE_RAW, PERF_TYPE_TRACEPOINT,
};

use super::closest::closest;
use super::error::EventNameError;
use super::event::RequestedEvent;
use super::modifiers::{LETTERS, Modifiers};
use super::place_error::PlaceError;
use super::probe::{self, Probe};
use super::probed_file::ProbedFile;
use super::selector::Selector;
use super::sources::{EventSources, advice, unreadable};
use super::{generic, terms};

/// The most events that a list may name, so that a pattern of tracepoints does not exceed the descriptor
/// limit.
const MAX_EVENTS: usize = 4096;

/// The counting unit of probes in programs.
pub(super) const PROBES: &str = "uprobe";

/// Parses a comma-separated list of events. Reads sysfs, tracefs and the files of probes.
///
/// # Errors
/// The first name that refers to nothing on this machine, with its position.
pub fn parse(text: &str, sources: &EventSources) -> Result<Vec<RequestedEvent>, EventNameError> {
    let reader = EventListParser { text, sources };
    let mut events = Vec::new();
    let mut at = 0;
    loop {
        let (found, end) = reader.event(at)?;
        events.extend(found);
        if events.len() > MAX_EVENTS {
            return Err(EventNameError::new(
                text,
                at..end,
                format!("more than {MAX_EVENTS} events are named"),
            ));
        }
        if end >= text.len() {
            return Ok(events);
        }
        at = end + 1;
    }
}

struct EventListParser<'a> {
    text: &'a str,
    sources: &'a EventSources,
}

impl<'a> EventListParser<'a> {
    /// The event that begins at a position, and its end: a comma or the end of the list.
    fn event(&self, at: usize) -> Result<(Vec<RequestedEvent>, usize), EventNameError> {
        let at = at + self.blanks(at);
        let rest = self.part(at..self.text.len());
        if rest.is_empty() || rest.starts_with(',') {
            return Err(self.error(at..at, "the name of an event is missing"));
        }
        if let Some(brace) = rest.find(['{', '}']).filter(|brace| *brace == 0) {
            return Err(self.error(at + brace..at + brace + 1, "groups of events are not supported")
                .advice("name the events without braces; they are counted at the same time where there are counters for all"));
        }
        match self.slash(at) {
            Some(slash) => self.with_terms(at, slash),
            None => {
                let end = self.comma(at);
                let found = self.plain(at..at + self.part(at..end).trim_end().len())?;
                Ok((found, end))
            }
        }
    }

    fn part(&self, at: Range<usize>) -> &'a str {
        self.text.get(at).unwrap_or_default()
    }

    fn error(&self, at: Range<usize>, reason: impl Into<String>) -> EventNameError {
        EventNameError::new(self.text, at, reason)
    }

    fn blanks(&self, at: usize) -> usize {
        let rest = self.part(at..self.text.len());
        rest.len() - rest.trim_start().len()
    }

    fn comma(&self, at: usize) -> usize {
        self.part(at..self.text.len()).find(',').map_or(self.text.len(), |comma| at + comma)
    }

    /// The position of the slash that begins the terms, as opposed to a slash in a path.
    fn slash(&self, at: usize) -> Option<usize> {
        let rest = self.part(at..self.text.len());
        let slash = rest.find(['/', ',', ':']).filter(|found| rest[*found..].starts_with('/'))?;
        let head = &rest[..slash];
        if head.is_empty() || head == "." || head == ".." {
            return None;
        }
        let is_known = || generic::find(head).is_some() || raw(head).is_some();
        let ends_with_slash = || {
            let (_, behind) = rest[slash + 1..].split_once('/')?;
            Some(behind.is_empty() || behind.starts_with([',', ':']))
        };
        let has_value = || rest[slash + 1..].split(['/', ',']).next().is_some_and(|term| term.contains('='));
        let is_terms = is_known()
            || has_value()
            || ends_with_slash() == Some(true)
            || !self.sources.units_named(head).is_empty();
        is_terms.then_some(at + slash)
    }

    /// An event with terms between two slashes, followed by modifiers with or without a colon.
    fn with_terms(&self, at: usize, slash: usize) -> Result<(Vec<RequestedEvent>, usize), EventNameError> {
        let inside = self.part(slash + 1..self.text.len());
        let Some(close) = inside.find('/').map(|close| slash + 1 + close) else {
            let end = self.text.len();
            return Err(self.error(end..end, "the closing `/` is missing"));
        };
        let end = self.comma(close);
        let letters = close + 1 + usize::from(self.part(close + 1..end).starts_with(':'));
        let modifiers = self.modifiers(letters..end)?;
        let head = self.part(at..slash);
        let (mut events, units) = match Self::generic(head) {
            Some(events) => (events, Vec::new()),
            None => self.of_units(at..slash, self.part(at..end))?,
        };
        for event in &mut events {
            event.modifiers = modifiers;
            terms::apply(event, &units, (self.text, slash + 1..close), self.sources)?;
        }
        Ok((events, end))
    }

    /// The event of counting units, without its terms yet.
    fn of_units(
        &self,
        at: Range<usize>,
        name: &str,
    ) -> Result<(Vec<RequestedEvent>, Vec<String>), EventNameError> {
        let head = self.part(at.clone());
        let units = self.sources.units_named(head);
        if units.is_empty() {
            let known = self.sources.units();
            let similar = closest(head, known.iter().map(String::as_str));
            let advice = format!("the counting units of this machine are {}", known.join(", "));
            return Err(self.error(at, "there is no such counting unit").similar(similar).advice(advice));
        }
        let selectors: Option<Vec<_>> = units.iter().map(|unit| self.selector(unit)).collect();
        let selectors =
            selectors.ok_or_else(|| self.error(at, "the kernel gives this counting unit no number"))?;
        Ok((vec![RequestedEvent { selectors, ..event(name.trim_end(), Selector::new(0, 0)) }], units))
    }

    fn selector(&self, unit: &str) -> Option<Selector> {
        let mut selector = Selector::new(self.sources.unit_kind(unit)?, 0);
        let cpus = ["cpumask", "cpus"].iter().find_map(|file| self.sources.unit_file(unit, file));
        selector.cpus = cpus.and_then(|cpus| crate::parse_cpu_list(&cpus));
        Some(selector)
    }

    /// An event without terms.
    fn plain(&self, at: Range<usize>) -> Result<Vec<RequestedEvent>, EventNameError> {
        let text = self.part(at.clone());
        let (head, rest) = text.split_once(':').map_or((text, None), |(head, rest)| (head, Some(rest)));
        if let Some(mut events) = Self::generic(head).or_else(|| self.of_core(head)) {
            if rest == Some("") {
                return Err(self.error(at.end..at.end, "modifiers are missing behind `:`"));
            }
            let letters = rest.map_or(at.end..at.end, |rest| at.end - rest.len()..at.end);
            let modifiers = self.modifiers(letters)?;
            for event in &mut events {
                event.modifiers = modifiers;
                text.clone_into(&mut event.name);
            }
            return Ok(self.of_each_kind_of_core(events));
        }
        match rest {
            _ if text.contains('/') => self.in_file(at),
            None => Err(self.unknown(at)),
            Some(rest) => self.tracepoints(&at, head, rest),
        }
    }

    fn modifiers(&self, at: Range<usize>) -> Result<Modifiers, EventNameError> {
        let letters = self.part(at.clone());
        Modifiers::parse(letters.trim_end()).map_err(|wrong| {
            let place = at.start + wrong;
            let len = letters[wrong..].chars().next().map_or(0, char::len_utf8);
            self.error(place..place + len, format!("there is no such modifier (known ones: {LETTERS})"))
        })
    }

    /// An event that has a name on every machine, or a number.
    fn generic(head: &str) -> Option<Vec<RequestedEvent>> {
        let (kind, config) = generic::find(head).or_else(|| Some((PERF_TYPE_RAW, raw(head)?)))?;
        Some(vec![event(head, Selector::new(kind, config))])
    }

    /// An event of the CPU's own counting unit, named without that unit.
    fn of_core(&self, head: &str) -> Option<Vec<RequestedEvent>> {
        let units = self.sources.core_units();
        let has = |unit: &String| self.sources.unit_file(unit, &format!("events/{head}")).is_some();
        let mut events = Vec::new();
        for unit in units.into_iter().filter(has) {
            let mut found = event(head, self.selector(&unit)?);
            let text = head.to_owned();
            terms::apply(&mut found, &[unit], (&text, 0..text.len()), self.sources).ok()?;
            found.selectors.iter_mut().for_each(|selector| selector.cpus = None);
            events.push(found);
        }
        (!events.is_empty()).then_some(events)
    }

    /// On machines with several kinds of cores, a hardware event becomes one event for each kind, because
    /// each kind has its own counting unit (`PERF_PMU_TYPE_SHIFT`).
    fn of_each_kind_of_core(&self, events: Vec<RequestedEvent>) -> Vec<RequestedEvent> {
        let units = self.sources.core_units();
        let [_, _, ..] = &*units else { return events };
        let split = |event: RequestedEvent| match &*event.selectors {
            [one] if [PERF_TYPE_HARDWARE, PERF_TYPE_HW_CACHE].contains(&one.kind) => {
                let of_unit = |unit: &String| {
                    let kind = self.sources.unit_kind(unit)?;
                    let mut selector = Selector { cpus: self.selector(unit)?.cpus, ..one.clone() };
                    selector.config[0] |= u64::from(kind) << 32;
                    let name = format!("{unit}/{}/", event.name);
                    Some(RequestedEvent { name, selectors: vec![selector], ..event.clone() })
                };
                units.iter().filter_map(of_unit).collect()
            }
            _ => vec![event],
        };
        events.into_iter().flat_map(split).collect()
    }

    /// A tracepoint, or all matching ones of a group; otherwise a probe in a library or program of that name.
    fn tracepoints(
        &self,
        at: &Range<usize>,
        group: &str,
        rest: &str,
    ) -> Result<Vec<RequestedEvent>, EventNameError> {
        let head = at.start..at.start + group.len();
        let groups = self.sources.tracepoint_groups();
        if !groups.as_ref().is_ok_and(|groups| groups.iter().any(|known| known == group)) {
            if let Some(file) = ProbedFile::named(group) {
                return self.in_opened(at.clone(), &head, file);
            }
            if Modifiers::parse(rest).is_ok() {
                return Err(self.unknown(head));
            }
            let groups = groups.map_err(|error| self.no_tracefs(at.clone(), &error))?;
            let reason = "there is no such group of tracepoints, and no such library or program";
            return Err(self.error(head, reason).similar(closest(group, groups.iter().map(String::as_str))));
        }
        let (name, letters) = rest.split_once(':').unwrap_or((rest, ""));
        let modifiers = self.modifiers(at.end - letters.len()..at.end)?;
        let known = self.sources.tracepoints(group).unwrap_or_default();
        let pattern = NamePattern::new(name);
        let is_pattern = name.contains(['*', '?']);
        let requested: Vec<_> =
            known.iter().filter(|it| if is_pattern { pattern.matches(it) } else { *it == name }).collect();
        let name_at = at.start + group.len() + 1..at.start + group.len() + 1 + name.len();
        if requested.is_empty() {
            let similar = closest(name, known.iter().map(String::as_str));
            return Err(self.error(name_at, format!("{group} has no such tracepoint")).similar(similar));
        }
        let tracepoint = |name: &String| {
            let id = self.sources.tracepoint_id(group, name);
            let id = id.map_err(|error| self.no_tracefs(name_at.clone(), &error))?;
            let suffix = if letters.is_empty() { String::new() } else { format!(":{letters}") };
            let found = event(&format!("{group}:{name}{suffix}"), Selector::new(PERF_TYPE_TRACEPOINT, id));
            Ok(RequestedEvent { modifiers, ..found })
        };
        requested.into_iter().map(tracepoint).collect()
    }

    fn no_tracefs(&self, at: Range<usize>, error: &io::Error) -> EventNameError {
        let reason = match error.kind() {
            io::ErrorKind::NotFound => {
                "there is no such event, and no tracefs to look for tracepoints in".to_owned()
            }
            _ => unreadable(error),
        };
        self.error(at, reason).advice(advice(error))
    }

    /// A place in a program or library: `FILE:FUNCTION` or `FILE:PROVIDER:PROBE`.
    fn in_file(&self, at: Range<usize>) -> Result<Vec<RequestedEvent>, EventNameError> {
        let text = self.part(at.clone());
        let folders = text.rfind('/').map_or(0, |slash| slash + 1);
        let Some(colon) = text[folders..].find(':').map(|colon| folders + colon) else {
            let reason = "a function is missing: FILE:FUNCTION, or FILE:PROVIDER:PROBE";
            return Err(self.error(at, reason));
        };
        let name = at.start..at.start + colon;
        match ProbedFile::named(self.part(name.clone())) {
            Some(file) => self.in_opened(at, &name, file),
            None => Err(self.error(name, "there is no such file")),
        }
    }

    /// A place in a file that was found by its name.
    fn in_opened(
        &self,
        at: Range<usize>,
        name: &Range<usize>,
        file: io::Result<ProbedFile>,
    ) -> Result<Vec<RequestedEvent>, EventNameError> {
        let place_at = name.end + 1..at.end;
        let place = self.part(place_at.clone());
        if place.is_empty() {
            return Err(self.error(place_at, "a function is missing: FILE:FUNCTION, or FILE:PROVIDER:PROBE"));
        }
        let file = file.map_err(|error| self.error(name.clone(), format!("it cannot be read: {error}")))?;
        let file = self.sources.limited(file);
        let kind = self.sources.unit_kind(PROBES);
        let kind =
            kind.ok_or_else(|| self.error(at.clone(), "this kernel has no probes of programs (uprobes)"))?;
        // In C++ and Rust, two colons are part of a function's name.
        let user_probe = place.split_once(':').filter(|(_, name)| !name.starts_with(':') && !name.is_empty());
        let found = match user_probe {
            Some((provider, name)) => probe::user_probe(&file, provider, name),
            None => probe::function(&file, place).map(|probe| vec![probe]),
        };
        let probes = found.map_err(|PlaceError { reason, similar, advice }| EventNameError {
            advice,
            ..self.error(place_at, reason).similar(similar)
        })?;
        Ok(vec![of_probes(self.part(at), kind, probes)])
    }

    fn unknown(&self, at: Range<usize>) -> EventNameError {
        let text = self.part(at.clone());
        let own = self.sources.core_units().into_iter().flat_map(|unit| self.sources.unit_events(&unit));
        let names: Vec<_> = generic::names().chain(own.map(|event| event.name)).collect();
        let similar = closest(text, names.iter().map(String::as_str));
        let of_units = || self.sources.units().into_iter().flat_map(|unit| self.sources.unit_events(&unit));
        let with_unit = of_units().find(|event| event.name == text);
        let error = self.error(at, "there is no such event").similar(similar);
        match with_unit {
            Some(event) => {
                error.advice(format!("it is an event of a counting unit: {}/{}/", event.unit, event.name))
            }
            None => error.advice("`nyquist list` names all events of this machine"),
        }
    }
}

/// An event with one selector.
fn event(name: &str, selector: Selector) -> RequestedEvent {
    RequestedEvent {
        name: name.to_owned(),
        selectors: vec![selector],
        modifiers: Modifiers::default(),
        interval: None,
        scale: 1.0,
        unit: None,
    }
}

/// The event of places in a program.
pub(super) fn of_probes(name: &str, kind: u32, probes: Vec<Probe>) -> RequestedEvent {
    let selectors = probes.into_iter().map(|probe| of_probe(kind, probe)).collect();
    RequestedEvent { selectors, ..event(name, Selector::new(kind, 0)) }
}

/// The lowest bit selects a function's return, and the upper half of `config` is the offset of the counter
/// (`/sys/bus/event_source/devices/uprobe/format`).
fn of_probe(kind: u32, probe: Probe) -> Selector {
    let config = u64::from(probe.is_return) | (probe.counter_offset & 0xffff_ffff) << 32;
    Selector { kind, config: [config, 0, probe.offset], probe: Some(probe), cpus: None }
}

/// The number of an event in the form `r` and hexadecimal digits.
fn raw(name: &str) -> Option<u64> {
    let digits = name.strip_prefix('r')?;
    let is_number = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_number { u64::from_str_radix(digits, 16).ok() } else { None }
}
