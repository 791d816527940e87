//! Detects the format of a JSON document by the keys at its beginning.

use super::format::Format;

/// The keys that may precede the decisive ones in each format, because large members may come first.
const OF_V8: [&str; 4] = ["samples", "timeDeltas", "startTime", "endTime"];
const OF_TRACES: [&str; 6] =
    ["metadata", "displayTimeUnit", "otherData", "stackFrames", "systemTraceEvents", "powerTraceAsString"];
const OF_SPEEDSCOPE: [&str; 3] = ["profiles", "exporter", "activeProfileIndex"];
const OF_EVENTS: [&str; 5] = ["args", "cat", "pid", "tid", "ts"];

/// Whether the text begins like an object, or an array of objects or strings, and not like a name in
/// brackets.
pub(super) fn is_json(text: &str) -> bool {
    let mut letters = text.chars().filter(|letter| !letter.is_whitespace());
    match (letters.next(), letters.next()) {
        (Some('{'), second) => matches!(second, Some('"' | '}') | None),
        (Some('['), second) => matches!(second, Some('{' | '"' | ']') | None),
        _ => false,
    }
}

/// The format of the document, of which only the beginning may be available.
pub(super) fn by_json(text: &str, name: &str) -> Option<Format> {
    let keys = Keys::of(text);
    let is_cut_with = |hints: &[&str]| keys.is_cut && keys.has_any(hints);
    if keys.has("traceEvents") {
        Some(Format::ChromeTrace)
    } else if text.starts_with('[') {
        // Each event has a phase. An empty array may also be a truncated trace.
        (keys.has("ph") || is_cut_with(&OF_EVENTS)).then_some(Format::ChromeTrace)
    } else if is_speedscope(text, &keys) || name.ends_with(".speedscope.json") {
        Some(Format::Speedscope)
    } else if is_old_cpu_profile(text, &keys) {
        Some(Format::V8OldCpuProfile)
    } else if let Some(format) = by_own_key(&keys) {
        Some(format)
    } else if keys.has("nodes") {
        Some(Format::V8CpuProfile)
    } else if keys.has_any(&["meta", "libs", "threads"]) {
        Some(Format::Firefox)
    } else if is_cut_with(&OF_V8) {
        Some(Format::V8CpuProfile)
    } else if is_cut_with(&OF_TRACES) {
        Some(Format::ChromeTrace)
    } else if is_cut_with(&OF_SPEEDSCOPE) {
        Some(Format::Speedscope)
    } else {
        keys.has("shared").then_some(Format::Firefox)
    }
}

/// The format with a key that no other format has.
fn by_own_key(keys: &Keys<'_>) -> Option<Format> {
    let own = [
        ("resourceProfiles", Format::OtlpJson),
        ("head", Format::V8HeapProfile),
        ("missed_samples", Format::Stackprof),
        ("root_frame", Format::Pyinstrument),
        ("dhatFileVersion", Format::Dhat),
        ("cost_centres", Format::GhcJson),
        ("recording", Format::Safari),
    ];
    if ["markers", "ticks", "allocations"].iter().all(|key| keys.has(key)) {
        return Some(Format::FirefoxPanel);
    }
    own.into_iter().find(|(key, _)| keys.has(key)).map(|(_, format)| format)
}

/// Its tree of calls has the name of that of a heap profile, which has sizes in place of counts and times.
fn is_old_cpu_profile(text: &str, keys: &Keys<'_>) -> bool {
    let has_counts = text.contains("\"hitCount\"") && !text.contains("\"selfSize\"");
    keys.has("head") && (has_counts || keys.has_any(&["timestamps", "startTime"]))
}

/// The Firefox Profiler also has a member `shared`, but with tables and without frames.
fn is_speedscope(text: &str, keys: &Keys<'_>) -> bool {
    let has_frames = keys.shared.contains(&"frames") || keys.has("profiles");
    keys.has("shared") && has_frames || keys.has("$schema") && text.contains("speedscope.app")
}

/// The keys of a document, as far as the text contains them.
#[derive(Default)]
struct Keys<'a> {
    /// The keys of the outermost object, or of the objects in the outermost array.
    top: Vec<&'a str>,
    /// The keys in the member `shared`.
    shared: Vec<&'a str>,
    /// Whether the text ends before the document does.
    is_cut: bool,
}

impl<'a> Keys<'a> {
    fn of(text: &'a str) -> Self {
        let requested_depth = if text.starts_with('[') { 2 } else { 1 };
        let (mut keys, mut depth, mut string) = (Self::default(), 0_usize, None);
        let mut last = "";
        let mut is_escaped = false;
        for (at, byte) in text.bytes().enumerate() {
            match (string, byte) {
                (Some(_), _) if is_escaped => is_escaped = false,
                (Some(_), b'\\') => is_escaped = true,
                (Some(start), b'"') => {
                    last = text.get(start..at).unwrap_or_default();
                    string = None;
                }
                (None, b'"') => string = Some(at + 1),
                (None, b'{' | b'[') => depth += 1,
                (None, b'}' | b']') => depth = depth.saturating_sub(1),
                (None, b':') if depth == requested_depth => keys.top.push(last),
                (None, b':') if depth == 2 && keys.top.last() == Some(&"shared") => keys.shared.push(last),
                _ => {}
            }
        }
        keys.is_cut = depth > 0;
        keys
    }

    fn has(&self, key: &str) -> bool {
        self.top.contains(&key)
    }

    fn has_any(&self, keys: &[&str]) -> bool {
        keys.iter().any(|key| self.has(key))
    }
}
