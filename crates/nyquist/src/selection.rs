//! Converts the filters of the command line to a selection of a profile's samples.

use crate::args::FilterArgs;
use crate::failure::Failure;
use crate::text::one_line;
use nyquist_analysis::{Index, Pattern, PatternError, SampleState, Selection, Transform, View};
use nyquist_profile::{CategoryId, LibId, ProcessIndex, Profile, ThreadIndex};

/// The number of names that are listed if a filter matches none of them.
const NAMES_LISTED: usize = 8;

/// The selection for the filters. If a filter matches nothing in the profile, it fails. The
/// error lists the choices.
pub(crate) fn select(profile: &Profile, filter: &FilterArgs) -> Result<Selection, Failure> {
    Ok(Selection {
        threads: threads(profile, &filter.thread)?,
        processes: processes(profile, &filter.process)?,
        libs: libs(profile, &filter.lib)?,
        categories: categories(profile, &filter.category)?,
        range: filter.range.map(crate::args::TimeRange::times),
        state: state(filter),
        focus: patterns(&filter.focus)?,
        ignore: patterns(&filter.ignore)?,
        show: patterns(&filter.show)?,
        hide: patterns(&filter.hide)?,
        transforms: if filter.no_inline { vec![Transform::MergeInlined] } else { Vec::new() },
    })
}

/// The state of the threads whose samples the filters select.
fn state(filter: &FilterArgs) -> SampleState {
    match (filter.off_cpu, filter.wall) {
        (true, _) => SampleState::OffCpu,
        (_, true) => SampleState::Both,
        _ => SampleState::OnCpu,
    }
}

/// Splits samples of exact times at the ends of the filters' range, so that the part inside is selected.
pub(crate) fn split(profile: &mut Profile, filter: &FilterArgs) {
    if let Some(range) = filter.range {
        let times = range.times();
        profile.split_samples(&[times.start, times.end]);
    }
}

/// The part of the profile that the filters select; without filters, all of it, including waits.
pub(crate) fn part_of(mut profile: Profile, filter: &FilterArgs) -> Result<Profile, Failure> {
    if filter.is_empty() {
        return Ok(profile);
    }
    split(&mut profile, filter);
    let selection = select(&profile, filter)?;
    let index = Index::new(&profile);
    let view = View::new(&index, &selection);
    if view.is_empty() { Err(nothing_selected(&view, filter)) } else { Ok(view.to_profile()) }
}

/// The failure if no sample passes the filters, with the reason if it is known.
pub(crate) fn nothing_selected(view: &View<'_>, filter: &FilterArgs) -> Failure {
    let profile = view.profile();
    if filter.is_empty() {
        let name = one_line(&profile.meta().measure.name);
        return Failure::new(format!("the profile has no samples of {name}"));
    }
    let failure = Failure::new("no sample passes the filters");
    if let Some(pattern) = view.unmatched_patterns().first() {
        return failure.hint(format!("nothing in the profile matches `{pattern}`"));
    }
    if filter.off_cpu && !profile.threads().iter().any(|thread| thread.samples.iter().any(|it| it.off_cpu)) {
        return failure.hint("the profile has no waiting threads: `nyquist record --off-cpu` records them");
    }
    match filter.range {
        Some(range) if range.times().start > last_time(profile) => {
            failure.hint(format!("the last sample is at {:.3} s", last_time(profile) as f64 / 1e9))
        }
        _ => failure,
    }
}

fn last_time(profile: &Profile) -> u64 {
    profile.threads().iter().filter_map(|thread| thread.samples.last()).map(|it| it.time).max().unwrap_or(0)
}

fn patterns(texts: &[String]) -> Result<Vec<Pattern>, Failure> {
    texts.iter().map(|text| pattern(text)).collect()
}

/// A regular expression. The error shows the position.
pub(crate) fn pattern(text: &str) -> Result<Pattern, Failure> {
    Pattern::regex(text).map_err(|error| not_a_pattern(&error))
}

/// The failure of a text that is no regular expression.
pub(crate) fn not_a_pattern(error: &PatternError) -> Failure {
    let failure = Failure::new(error.to_string());
    match error.position() {
        Some(position) => failure.hint(format!("{}\n      {}^", error.pattern(), " ".repeat(position))),
        None => failure,
    }
}

fn threads(profile: &Profile, requested: &[String]) -> Result<Option<Vec<ThreadIndex>>, Failure> {
    let threads = profile.threads();
    let called = |index: usize, text: &str| {
        handle(text, 't') == Some(index) || threads[index].tid == text || threads[index].name == text
    };
    let list = NamedTable { what: "thread", plural: "threads", len: threads.len() };
    let found = list.choose(requested, called, |index| &threads[index].name)?;
    Ok(found.map(|found| found.into_iter().map(ThreadIndex::from_index).collect()))
}

fn processes(profile: &Profile, requested: &[String]) -> Result<Option<Vec<ProcessIndex>>, Failure> {
    let processes = profile.processes();
    let called = |index: usize, text: &str| processes[index].pid == text || processes[index].name == text;
    let list = NamedTable { what: "process", plural: "processes", len: processes.len() };
    let found = list.choose(requested, called, |index| &processes[index].name)?;
    Ok(found.map(|found| found.into_iter().map(ProcessIndex::from_index).collect()))
}

fn libs(profile: &Profile, requested: &[String]) -> Result<Option<Vec<LibId>>, Failure> {
    let libs = profile.libs();
    let called = |index: usize, text: &str| libs[index].name == text || libs[index].path == text;
    let list = NamedTable { what: "library", plural: "libraries", len: libs.len() };
    let found = list.choose(requested, called, |index| &libs[index].name)?;
    Ok(found.map(|found| found.into_iter().map(LibId::from_index).collect()))
}

fn categories(profile: &Profile, requested: &[String]) -> Result<Option<Vec<CategoryId>>, Failure> {
    let categories = profile.categories();
    let called = |index: usize, text: &str| categories[index].name.eq_ignore_ascii_case(text);
    let list = NamedTable { what: "category", plural: "categories", len: categories.len() };
    let found = list.choose(requested, called, |index| &categories[index].name)?;
    Ok(found.map(|found| found.into_iter().map(CategoryId::from_index).collect()))
}

/// The index in a handle such as `t-3`.
pub(crate) fn handle(text: &str, kind: char) -> Option<usize> {
    text.strip_prefix(kind)?.strip_prefix('-')?.parse().ok()
}

/// A table of named items.
struct NamedTable {
    what: &'static str,
    plural: &'static str,
    len: usize,
}

impl NamedTable {
    /// The rows whose name or id equals one of the texts. If there is none, the text is matched as a
    /// regular expression. `None` if there are no texts.
    fn choose<'a>(
        &self,
        requested: &[String],
        called: impl Fn(usize, &str) -> bool,
        name: impl Fn(usize) -> &'a String,
    ) -> Result<Option<Vec<usize>>, Failure> {
        if requested.is_empty() {
            return Ok(None);
        }
        let mut found = Vec::new();
        for text in requested {
            let mut rows: Vec<usize> = (0..self.len).filter(|&index| called(index, text)).collect();
            if rows.is_empty() {
                let pattern = pattern(text)?;
                rows = (0..self.len).filter(|&index| pattern.matches(name(index))).collect();
            }
            if rows.is_empty() {
                return Err(self.none_called(text, name));
            }
            found.extend(rows);
        }
        found.sort_unstable();
        found.dedup();
        Ok(Some(found))
    }

    fn none_called<'a>(&self, text: &str, name: impl Fn(usize) -> &'a String) -> Failure {
        let failure = Failure::new(format!("no {} of the profile matches `{text}`", self.what));
        let mut names: Vec<&str> = (0..self.len).map(|index| name(index).as_str()).collect();
        names.sort_unstable();
        names.dedup();
        if names.is_empty() {
            return failure.hint(format!("the profile has no {}", self.plural));
        }
        let more = names.len().saturating_sub(NAMES_LISTED);
        names.truncate(NAMES_LISTED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        failure.hint(format!(
            "its {} are {}{more}",
            self.plural,
            names.iter().map(|name| one_line(name)).collect::<Vec<_>>().join(", ")
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(requested: &[&str]) -> Result<Option<Vec<usize>>, Failure> {
        let names = ["main".to_owned(), "worker-1".to_owned(), "worker-12".to_owned()];
        let list = NamedTable { what: "thread", plural: "threads", len: names.len() };
        let requested: Vec<_> = requested.iter().map(|&text| text.to_owned()).collect();
        list.choose(
            &requested,
            |index, text| names[index] == text || text == index.to_string(),
            |index| &names[index],
        )
    }

    #[test]
    fn a_name_is_chosen_alone_and_a_part_matches_all() {
        assert_eq!(choose(&[]), Ok(None));
        assert_eq!(choose(&["worker-1"]), Ok(Some(vec![1])));
        assert_eq!(choose(&["worker"]), Ok(Some(vec![1, 2])));
        assert_eq!(choose(&["2", "^m", "main"]), Ok(Some(vec![0, 2])));
    }

    #[test]
    fn what_matches_nothing_says_what_there_is() {
        let failure = choose(&["main", "nobody"]).unwrap_err();
        assert_eq!(failure.message, "no thread of the profile matches `nobody`");
        assert_eq!(failure.hints, ["its threads are main, worker-1, worker-12"]);
    }

    #[test]
    fn a_regex_that_does_not_parse_shows_where() {
        let failure = choose(&["wor(k"]).unwrap_err();
        assert!(failure.message.contains("unclosed group"), "{}", failure.message);
        assert_eq!(failure.hints, ["wor(k\n         ^"]);
    }

    #[test]
    fn handles_are_letters_with_numbers() {
        assert_eq!(handle("t-3", 't'), Some(3));
        assert_eq!(handle("f-3", 't'), None);
        assert_eq!(handle("t-x", 't'), None);
    }
}
