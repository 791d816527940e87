//! The terms of a counting unit's event, between slashes: `event=0x3c,umask=1,period=1000`.

use std::ops::Range;

use super::closest::closest;
use super::error::EventNameError;
use super::event::{RequestedEvent, SampleInterval};
use super::number::number;
use super::selector::Selector;
use super::sources::EventSources;

/// A text between commas, and its position in the whole text.
#[derive(Clone, Debug)]
struct EventTerm<'t> {
    name: &'t str,
    value: Option<&'t str>,
    at: Range<usize>,
}

/// The terms in `text[at]`.
fn terms(text: &str, at: Range<usize>) -> Vec<EventTerm<'_>> {
    let inside = text.get(at.clone()).unwrap_or_default();
    let mut start = at.start;
    let mut found = Vec::new();
    for term in inside.split(',') {
        let end = start + term.len();
        if !term.trim().is_empty() {
            let (name, value) =
                term.split_once('=').map_or((term, None), |(name, value)| (name, Some(value)));
            found.push(EventTerm { name: name.trim(), value: value.map(str::trim), at: start..end });
        }
        start = end + 1;
    }
    found
}

/// Applies the terms at a position to an event. `units` are its counting units. A generic event has none, and
/// accepts only `name`, `period` and `freq`.
pub(super) fn apply(
    event: &mut RequestedEvent,
    units: &[String],
    (text, at): (&str, Range<usize>),
    sources: &EventSources,
) -> Result<(), EventNameError> {
    for term in terms(text, at) {
        if apply_common(event, &term, text)? {
            continue;
        }
        if units.is_empty() {
            return Err(EventNameError::new(text, term.at, "no such term").advice(
                "only name=, period= and freq= are allowed for an event that is not of a counting unit",
            ));
        }
        for (unit, selector) in units.iter().zip(&mut event.selectors) {
            let found = UnitTerm { unit, sources }.apply(selector, term.name, term.value);
            found.map_err(|reason| {
                EventNameError::new(text, term.at.clone(), reason).similar(similar(unit, term.name, sources))
            })?;
        }
        describe(event, units, term.name, sources);
    }
    Ok(())
}

/// Handles the terms that are unknown to the kernel. Returns whether this is one.
fn apply_common(
    event: &mut RequestedEvent,
    term: &EventTerm<'_>,
    text: &str,
) -> Result<bool, EventNameError> {
    let fail = |reason: &str| EventNameError::new(text, term.at.clone(), reason);
    let count = || {
        let value = term.value.and_then(number).filter(|value| (1..1 << 63).contains(value));
        value.ok_or_else(|| fail("needs a whole number from 1 on"))
    };
    match term.name {
        "name" => {
            let name = term.value.filter(|name| !name.is_empty());
            name.ok_or_else(|| fail("needs a name behind `=`"))?.clone_into(&mut event.name);
        }
        "period" => event.interval = Some(SampleInterval::Period(count()?)),
        "freq" => event.interval = Some(SampleInterval::Frequency(count()?)),
        _ => return Ok(false),
    }
    Ok(true)
}

/// Copies the unit and the scale of the count from sysfs, if the term is an event that has them.
fn describe(event: &mut RequestedEvent, units: &[String], name: &str, sources: &EventSources) {
    let Some(unit) = units.first() else { return };
    let file = |kind: &str| sources.unit_file(unit, &format!("events/{name}.{kind}"));
    if let Some(scale) = file("scale").and_then(|scale| scale.parse().ok()).filter(|it: &f64| it.is_finite())
    {
        event.scale = scale;
    }
    if let Some(of) = file("unit") {
        event.unit = Some(of);
    }
}

fn similar(unit: &str, name: &str, sources: &EventSources) -> Vec<String> {
    let names: Vec<_> = [sources.unit_names(unit, "format"), sources.unit_names(unit, "events")].concat();
    closest(name, names.iter().map(String::as_str))
}

/// Interprets a term of a counting unit.
struct UnitTerm<'a> {
    unit: &'a str,
    sources: &'a EventSources,
}

impl UnitTerm<'_> {
    /// Sets the bits of a field, or those of all terms in an event's definition.
    fn apply(&self, selector: &mut Selector, name: &str, value: Option<&str>) -> Result<(), String> {
        if let Some(alias) =
            self.sources.unit_file(self.unit, &format!("events/{name}")).filter(|_| value.is_none())
        {
            return self.apply_alias(selector, &alias);
        }
        self.apply_field(selector, name, value)
    }

    fn apply_alias(&self, selector: &mut Selector, alias: &str) -> Result<(), String> {
        for term in alias.split(',').filter(|term| !term.is_empty()) {
            let (name, value) =
                term.split_once('=').map_or((term, None), |(name, value)| (name, Some(value)));
            if value == Some("?") {
                return Err(format!("needs `{name}=`, which it leaves open"));
            }
            self.apply_field(selector, name, value)?;
        }
        Ok(())
    }

    fn apply_field(&self, selector: &mut Selector, name: &str, value: Option<&str>) -> Result<(), String> {
        let value = value.map_or(Some(1), number).ok_or("needs a number, as 0x3c or 60")?;
        let place = match name {
            "config" | "config1" | "config2" => Some(format!("{name}:0-63")),
            _ => self.sources.unit_file(self.unit, &format!("format/{name}")),
        };
        let place =
            place.ok_or_else(|| format!("the counting unit {} has no such event or field", self.unit))?;
        let (word, bits) =
            place.split_once(':').ok_or("the kernel describes this field in a way unknown here")?;
        let word = match word {
            "config" => 0,
            "config1" => 1,
            "config2" => 2,
            _ => return Err(format!("the field is in `{word}`, which is not supported")),
        };
        let spread = spread(value, bits).ok_or("too large a number for its field")?;
        selector.config[word] |= spread;
        Ok(())
    }
}

/// Puts the bits of a value into ranges of bits, such as `0-7,32-35`, lowest first. `None` if they do not
/// fit, or if a range is invalid.
fn spread(mut value: u64, ranges: &str) -> Option<u64> {
    let mut result = 0;
    for range in ranges.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        let width = last.checked_sub(first)?.checked_add(1).filter(|_| last < 64)?;
        let mask = u64::MAX >> (64 - width);
        result |= (value & mask) << first;
        value = value.checked_shr(width).unwrap_or(0);
    }
    (value == 0).then_some(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_spread_over_ranges() {
        let check =
            |value, ranges, expected| assert_eq!(spread(value, ranges), expected, "{value:#x} {ranges}");
        check(0x3c, "0-7", Some(0x3c));
        check(0x13c, "0-7,32-35", Some(0x1_0000_003c));
        check(1, "23", Some(1 << 23));
        check(2, "23", None);
        check(u64::MAX, "0-63", Some(u64::MAX));
        check(0x100, "0-7", None);
        check(1, "7-0", None);
        check(1, "0-64", None);
        check(1, "", None);
    }
}
