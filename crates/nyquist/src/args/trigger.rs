//! What `--trigger` takes: a condition under which a running recording is saved.

use super::quantity::seconds;
use crate::memory::size;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

/// The times that a condition may name, in seconds.
const SECONDS: RangeInclusive<f64> = 1e-3..=86_400.0;

/// A condition, as it was typed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Trigger {
    pub(crate) text: String,
    pub(crate) condition: Condition,
}

/// A condition under which a recording is saved.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Condition {
    /// The recorded processes use more than this share of one CPU, all the time.
    Cpu { above_percent: f64, lasting: Duration },
    /// They have more resident memory together.
    Rss { above_bytes: u64 },
    /// A thread has waited longer at once. Without a reason: for any but sleep and idleness.
    Wait { reason: Option<String>, longer_than: Duration },
    /// A marker of this name was longer.
    Marker { name: String, longer_than: Duration },
}

impl Condition {
    /// Whether it needs the counters of the processes.
    #[allow(dead_code, reason = "for commands that are for Linux")]
    pub(crate) fn needs_counters(&self) -> bool {
        matches!(self, Self::Cpu { .. } | Self::Rss { .. })
    }

    /// Whether it needs the times that threads wait.
    #[allow(dead_code, reason = "for commands that are for Linux")]
    pub(crate) fn needs_waits(&self) -> bool {
        matches!(self, Self::Wait { .. })
    }
}

impl FromStr for Trigger {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let forms = "a trigger is written as 'cpu > 90% for 5s', 'rss > 2G', 'wait > 500ms', 'wait lock > 500ms' or \
                     'marker NAME > 100ms'";
        let (subject, limit) = text.rsplit_once('>').ok_or(forms)?;
        let (kind, name) = match subject.trim().split_once(char::is_whitespace) {
            Some((kind, name)) => (kind, Some(name.trim())),
            None => (subject.trim(), None),
        };
        let limit = limit.trim();
        let condition = match (kind, name) {
            ("cpu", None) => cpu(limit)?,
            ("rss", None) => Condition::Rss { above_bytes: bytes(limit)? },
            ("wait", reason) => {
                Condition::Wait { reason: reason.map(str::to_owned), longer_than: length(limit)? }
            }
            ("marker", Some(name)) => {
                Condition::Marker { name: name.to_owned(), longer_than: length(limit)? }
            }
            _ => return Err(forms.to_owned()),
        };
        Ok(Self { text: text.trim().to_owned(), condition })
    }
}

/// `500ms`.
fn length(text: &str) -> Result<Duration, String> {
    seconds(text, SECONDS).map_err(|error| format!("`{text}`: {error}"))
}

/// `90%`, `90% for 5s`.
fn cpu(limit: &str) -> Result<Condition, String> {
    let (share, lasting) = match limit.split_once(" for ") {
        Some((share, lasting)) => (share.trim(), length(lasting.trim())?),
        None => (limit, Duration::from_secs(1)),
    };
    let number = share.strip_suffix('%').map(str::trim).and_then(|number| number.parse::<f64>().ok());
    let above_percent = number.filter(|number| (0.0..=1e6).contains(number));
    let above_percent =
        above_percent.ok_or_else(|| format!("`{share}` is not a share of a CPU, such as 90% or 250%"))?;
    Ok(Condition::Cpu { above_percent, lasting })
}

/// `2G`, `512M`, `4096`: K, M, G and T are powers of 1024.
fn bytes(text: &str) -> Result<u64, String> {
    size(text).ok_or_else(|| format!("`{text}` is not a size, such as 512M or 2G"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(text: &str) -> Condition {
        text.parse::<Trigger>().unwrap_or_else(|error| panic!("{text}: {error}")).condition
    }

    #[test]
    fn conditions_are_read_as_typed() {
        let seconds = Duration::from_secs;
        let cpu = |above_percent, lasting| Condition::Cpu { above_percent, lasting: seconds(lasting) };
        assert_eq!([condition("cpu > 90% for 5s"), condition("cpu>250%")], [cpu(90.0, 5), cpu(250.0, 1)]);
        for (text, above_bytes) in [("rss > 2G", 2 << 30), ("rss > 512m", 512 << 20), ("rss > 4096", 4096)] {
            assert_eq!(condition(text), Condition::Rss { above_bytes }, "{text}");
        }
        let longer_than = Duration::from_millis(500);
        assert_eq!(condition("wait > 500ms"), Condition::Wait { reason: None, longer_than });
        let reason = Some("condition variable".to_owned());
        assert_eq!(condition("wait condition variable > 500ms"), Condition::Wait { reason, longer_than });
        let name = "GET /a > b".to_owned();
        assert_eq!(condition("marker GET /a > b > 500ms"), Condition::Marker { name, longer_than });
    }

    #[test]
    fn what_is_no_condition_gets_the_forms() {
        for text in [
            "",
            "cpu",
            "cpu > ",
            "cpu > 90",
            "rss > 2X",
            "disk > 5",
            "marker > 5ms",
            "wait > long",
            "cpu x > 5%",
        ] {
            let error = text.parse::<Trigger>().unwrap_err();
            assert!(error.contains('`') || error.contains("a trigger is written as"), "{text}: {error}");
        }
    }
}
