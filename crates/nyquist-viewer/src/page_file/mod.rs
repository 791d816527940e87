//! The selection as one file: the page with its responses, which opens without a server and without a
//! network.

mod policy;

use std::io::{self, Write};

use nyquist_analysis::{Index, SampleState, Selection, Transform, View};
use nyquist_object::RelativeAddress;
use nyquist_profile::Profile;
use nyquist_server::{
    AddressInfo, Assembly, AssemblyRequest, LibKey, LookupError, SourceRequest, SymbolSource, ViewerError,
};

use crate::answers::{QueryContext, has_inlined, json_answer};
use crate::bundle;
use crate::files;
use crate::function_table::FunctionCategories;
use crate::measures::RecordedMeasures;
use crate::parameters::Parameters;
use crate::viewed_profile::FileNames;

/// The maximum number of threads with a track in the file.
const TRACKS: usize = 40;

/// The members of the data, and the requests with their responses.
const ANSWERS: [(&str, &str, &str); 4] = [
    ("info", "info", ""),
    ("overview", "timeline", "parts=1000"),
    ("counters", "counters", "parts=500"),
    ("markers", "markers", "limit=1000"),
];

/// The same for what depends on whether inlined functions are shown.
const ANSWERS_BY_FUNCTION: [(&str, &str, &str); 4] = [
    ("flame", "flamegraph", "width=10000"),
    ("inverted", "flamegraph", "width=10000&inverted=1"),
    ("byOwn", "functions", "sort=own&limit=1000"),
    ("byTotal", "functions", "sort=total&limit=1000"),
];

/// Writes the file of a whole profile.
pub(crate) fn write_whole(profile: &Profile, out: &mut dyn Write) -> io::Result<()> {
    let index = Index::new(profile);
    let mut view = View::new(&index, &Selection::default());
    if view.is_empty() {
        view = View::new(&index, &Selection { state: SampleState::OffCpu, ..Selection::default() });
    }
    let (parameters, categories) = (Parameters::default(), FunctionCategories::new(profile));
    let recorded = RecordedMeasures::of(profile);
    let context = QueryContext {
        index: &index,
        view: &view,
        before: None,
        parameters: &parameters,
        categories: &categories,
        symbols: &NoFiles,
        recorded: &recorded,
        has_waits: index.has_waits(),
        files: &FileNames::default(),
        live: None,
    };
    write(&context, out)
}

/// The file contains no source and no instructions.
struct NoFiles;

impl SymbolSource for NoFiles {
    fn symbolicate(&self, _: &LibKey, _: &[RelativeAddress]) -> Option<Vec<Option<AddressInfo>>> {
        None
    }

    fn source(&self, request: &SourceRequest) -> Result<String, LookupError> {
        Err(LookupError::UnknownLib(request.lib.clone()))
    }

    fn assembly(&self, request: &AssemblyRequest) -> Result<Assembly, LookupError> {
        Err(LookupError::UnknownLib(request.lib.clone()))
    }
}

/// Writes the file of the selection.
///
/// # Errors
/// If a request for the selection fails, or writing to `out` fails.
pub(crate) fn write(context: &QueryContext<'_, '_>, out: &mut dyn Write) -> io::Result<()> {
    let script = bundle::script(bundle::OFFLINE);
    let style = files::styles();
    writeln!(out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">")?;
    writeln!(out, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">")?;
    let policy = policy::content_policy(&script, &style);
    writeln!(out, "<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">")?;
    writeln!(out, "<title>nyquist</title>\n<style>{style}</style>\n</head>\n<body>")?;
    writeln!(out, "<noscript>The viewer needs JavaScript.</noscript>")?;
    write!(out, "<script type=\"application/json\" id=\"answers\">")?;
    write_data(context, out)?;
    writeln!(out, "</script>\n<script type=\"module\">{script}</script>\n</body>\n</html>")
}

/// The responses as a JSON object.
fn write_data(context: &QueryContext<'_, '_>, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "{{")?;
    write_members(context, &ANSWERS, out)?;
    write!(out, ",")?;
    write_members(context, &ANSWERS_BY_FUNCTION, out)?;
    write!(out, ",\"tracks\":")?;
    write_answer(context, "timeline", &tracks(context), out)?;
    if let Some(selection) = as_compiled(context) {
        let view = View::new(context.index, &selection);
        write!(out, ",\"compiled\":{{")?;
        write_members(&QueryContext { view: &view, ..*context }, &ANSWERS_BY_FUNCTION, out)?;
        write!(out, "}}")?;
    }
    write!(out, "}}")
}

/// The selection with functions as they were compiled, if this is another one.
fn as_compiled(context: &QueryContext<'_, '_>) -> Option<Selection> {
    let selection = context.view.selection();
    let is_other =
        has_inlined(context.view.profile()) && !selection.transforms.contains(&Transform::MergeInlined);
    is_other.then(|| {
        let transforms =
            std::iter::once(&Transform::MergeInlined).chain(&selection.transforms).cloned().collect();
        Selection { transforms, ..selection.clone() }
    })
}

fn write_members(
    context: &QueryContext<'_, '_>,
    members: &[(&str, &str, &str)],
    out: &mut dyn Write,
) -> io::Result<()> {
    for (position, (member, question, query)) in members.iter().enumerate() {
        let separator = if position == 0 { "" } else { "," };
        write!(out, "{separator}\"{member}\":")?;
        write_answer(context, question, query, out)?;
    }
    Ok(())
}

/// The query parameters for the tracks of the busiest threads.
fn tracks(context: &QueryContext<'_, '_>) -> String {
    let mut rows = context.view.by_thread();
    rows.sort_by_key(|row| (std::cmp::Reverse(row.amount.weight), row.thread.index()));
    let cores = context.view.by_core();
    let rows = cores.iter().take(TRACKS).chain(rows.iter().take(TRACKS));
    let threads: Vec<_> = rows.map(|row| row.thread.index().to_string()).collect();
    format!("parts=500&tracks={}", threads.join(","))
}

/// Writes a response so that nothing in it can end its HTML element. In JSON, `<` occurs only in strings.
fn write_answer(
    context: &QueryContext<'_, '_>,
    question: &str,
    query: &str,
    out: &mut dyn Write,
) -> io::Result<()> {
    let parameters = Parameters::parse(query);
    let answer = json_answer(
        question,
        &QueryContext { parameters: &parameters, before: None, live: None, ..*context },
    );
    let answer = answer.map_err(|ViewerError { message, .. }| io::Error::other(message))?;
    let mut parts = answer.split(|&byte| byte == b'<');
    out.write_all(parts.next().unwrap_or_default())?;
    for part in parts {
        out.write_all(b"\\u003c")?;
        out.write_all(part)?;
    }
    Ok(())
}
