//! `nyquist flamegraph`: a profile as an interactive picture.

mod change;
mod chart;
mod picture;
mod title;

use crate::args::{FlamegraphArgs, PictureArgs};
use crate::failure::Failure;
use crate::output::Destination;
use crate::printer::Printer;
use crate::scale::Scale;
use crate::text::Names;
use crate::{form, input, page, report, selection};
use nyquist_analysis::{Index, Selection, View};
use nyquist_formats::flame::{TableRow, write_html, write_svg};
use nyquist_profile::Profile;
use std::io::{self, Write};
use std::path::Path;

/// The number of functions in the table of a page.
const PAGE_FUNCTIONS: usize = 100;

/// Runs the subcommand.
pub(crate) fn run(args: &FlamegraphArgs) -> Result<(), Failure> {
    let printer = Printer::new(args.read.verbosity);
    form::check_picture(&args.output)?;
    // Reading the profile may drop root's privileges, so the output is found first.
    let output = if args.format.json { None } else { find(&args.output)? };
    let files = [&args.file].into_iter().chain(args.before.as_ref().filter(|_| !args.chart));
    let mut profiles = input::read_all(files, &args.read.filter, &args.read.symbols, printer)?;
    for profile in &mut profiles {
        selection::split(profile, &args.read.filter);
    }
    let mut profiles = profiles.into_iter();
    let Some(profile) = profiles.next() else { return Err(Failure::new("no profile was read")) };
    let index = Index::new(&profile);
    let selected = selection::select(&profile, &args.read.filter)?;
    let view = View::new(&index, &selected);
    if view.is_empty() {
        return Err(selection::nothing_selected(&view, &args.read.filter));
    }
    let names = args.format.names();
    let picture = if args.chart {
        chart::picture(&view, &args.picture, names)
    } else if let Some(before) = profiles.next() {
        let before_index = Index::new(&before);
        let before_selected = selection::select(&before, &args.read.filter)?;
        change::picture(&view, &View::new(&before_index, &before_selected), &args.picture, names)
    } else {
        picture::picture(&view, &args.picture, args.inverted, names)
    };
    if args.format.json {
        return page::print_json(&picture::answer(&picture, &view));
    }
    write(&args.output, output, |mut out| write_svg(&picture, &mut out))?;
    if args.output != Path::new("-") {
        printer.say(format_args!("Wrote {}", args.output.display()));
    }
    Ok(())
}

/// Writes the flame graph of a whole profile, for `nyquist record --flamegraph`.
pub(crate) fn write_picture(profile: &Profile, mut out: &mut dyn Write) -> io::Result<()> {
    let index = Index::new(profile);
    let view = View::new(&index, &Selection::default());
    let picture = picture::picture(&view, &PictureArgs::default(), false, Names::Short);
    write_svg(&picture, &mut out)
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

/// Finds the place for the file of a picture; `None` for standard output.
fn find(file: &Path) -> Result<Option<Destination>, Failure> {
    if file == Path::new("-") {
        return Ok(None);
    }
    Destination::find(file).map(Some).map_err(|refused| refused.failure(file, "-o"))
}

fn write(
    file: &Path,
    output: Option<Destination>,
    picture: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Failure> {
    let Some(output) = output else { return page::write_file_with(false, picture) };
    let output = output.open().map_err(|refused| refused.failure(file, "-o"))?;
    match output.save(picture) {
        // The reader has closed the pipe early.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        saved => saved.map(|_| ()).map_err(|error| Failure::cannot_write(file, &error)),
    }
}
