//! `nyquist flamegraph`: a profile as an interactive picture.

mod change;
mod chart;
mod picture;

use crate::args::{FlamegraphArgs, PictureArgs};
use crate::failure::{Failure, io_reason};
use crate::identity::{self, Rights};
use crate::output::Output;
use crate::printer::Printer;
use crate::scale::Scale;
use crate::text::Names;
use crate::{input, page, report, selection};
use nyquist_analysis::{Index, Selection, View};
use nyquist_formats::flame::{FlamePicture, TableRow, write_html, write_svg};
use nyquist_profile::Profile;
use std::io::{self, Write};
use std::path::Path;

/// How many functions the table of a page has.
const PAGE_FUNCTIONS: usize = 100;

/// Runs the subcommand.
pub(crate) fn run(args: &FlamegraphArgs) -> Result<(), Failure> {
    let printer = Printer::new(args.verbosity);
    let output = if args.format.json { None } else { open(&args.output)? };
    let files = [&args.file].into_iter().chain(args.before.as_ref().filter(|_| !args.chart));
    let mut profiles = input::read_all(files, &args.symbols, printer)?.into_iter();
    let Some(profile) = profiles.next() else { return Err(Failure::new("no profile was read")) };
    let index = Index::new(&profile);
    let selected = selection::select(&profile, &args.filter)?;
    let view = View::new(&index, &selected);
    if view.is_empty() {
        return Err(selection::nothing_selected(&view, &args.filter));
    }
    let names = args.format.names();
    let picture = if args.chart {
        chart::picture(&view, &args.picture, names)
    } else if let Some(before) = profiles.next() {
        let before_index = Index::new(&before);
        let before_selected = selection::select(&before, &args.filter)?;
        change::picture(&view, &View::new(&before_index, &before_selected), &args.picture, names)
    } else {
        picture::picture(&view, &args.picture, args.inverted, names)
    };
    if args.format.json {
        return page::print_json(&picture::json(&picture, &view));
    }
    write(&args.output, output, |mut out| write_svg(&picture, &mut out))?;
    if args.output != Path::new("-") {
        printer.say(format_args!("Wrote {}", args.output.display()));
    }
    Ok(())
}

/// Writes the flame graph of a whole profile: what `nyquist record --flamegraph` does.
pub(crate) fn save(profile: &Profile, file: &Path) -> Result<(), Failure> {
    let index = Index::new(profile);
    let view = View::new(&index, &Selection::default());
    let picture = picture::picture(&view, &PictureArgs::default(), false, Names::Short);
    let draw = |mut out: &mut dyn Write| write_svg(&picture, &mut out);
    if file == Path::new("-") {
        return page::write_with(draw);
    }
    let (output, rights) =
        Rights::to_open(|| Output::open(file, None)).map_err(|error| cannot_open(file, &error))?;
    rights.with(|| output.save(draw))?.map_err(|error| cannot_write(file, &error))
}

/// Writes a page with the flame graph and the functions with the most time.
pub(crate) fn write_page(profile: &Profile, out: &mut impl Write) -> io::Result<()> {
    let index = Index::new(profile);
    let view = &View::new(&index, &Selection::default());
    let args = PictureArgs { subtitle: Some(String::new()), icicle: true, ..PictureArgs::default() };
    let picture = picture::picture(view, &args, false, Names::Short);
    let summary: Vec<String> = report::heading(view).lines().map(str::to_owned).collect();
    let scale = Scale::of(view);
    let amount = |weight: u64| (scale.share(weight), scale.time(weight));
    let rows = view.functions().functions.into_iter().take(PAGE_FUNCTIONS).map(|function| TableRow {
        name: Names::Short.show(function.name),
        lib: function.lib.map(str::to_owned).unwrap_or_default(),
        own: amount(function.self_amount.weight),
        total: amount(function.total.weight),
    });
    write_html(&picture, &summary, &rows.collect::<Vec<_>>(), out)
}

/// Opens the file for a picture; none for standard output.
fn open(file: &Path) -> Result<Option<Output>, Failure> {
    if file == Path::new("-") {
        return Ok(None);
    }
    identity::open_output(file).map(Some).map_err(|error| cannot_open(file, &error))
}

fn write(
    file: &Path,
    output: Option<Output>,
    picture: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    match output {
        None => page::write_with(picture),
        Some(output) => output.save(picture).map_err(|error| cannot_write(file, &error)),
    }
}

fn cannot_open(file: &Path, error: &io::Error) -> Failure {
    cannot_write(file, error).hint("choose another place with -o FILE")
}

fn cannot_write(file: &Path, error: &io::Error) -> Failure {
    Failure::new(format!("cannot write {}: {}", file.display(), io_reason(error)))
}

/// The lines about a picture, where the user has not given others.
fn titled(view: &View<'_>, args: &PictureArgs, picture: FlamePicture) -> FlamePicture {
    let heading = report::heading(view);
    let mut lines = heading.lines();
    // The first line begins with the name, which is the title.
    let first = lines.next().unwrap_or_default();
    let first = first.strip_prefix(view.profile().meta().product.as_str()).unwrap_or(first);
    let usual: Vec<_> = std::iter::once(first.trim_start_matches(": ")).chain(lines).collect();
    FlamePicture {
        title: args.title.clone().unwrap_or_else(|| view.profile().meta().product.clone()),
        subtitle: args.subtitle.clone().unwrap_or_else(|| usual.join("; ")),
        pixels: args.width,
        ..picture
    }
}
