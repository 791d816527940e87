//! The arguments of `nyquist flamegraph`.

use crate::args::quantity::{number, whole};
use crate::args::{FormatArgs, ReadArgs};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// `nyquist flamegraph`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  nyquist flamegraph                              profile.json.gz as flamegraph.svg
  nyquist flamegraph p.json.gz -o p.svg --inverted    Hot functions first, their callers below them
  nyquist flamegraph after.json.gz --before before.json.gz    What grew is red, what shrank is blue
  nyquist flamegraph --chart --thread main        What one thread did over time

The picture opens in any browser: click a box to zoom, Ctrl+F searches, Esc goes back.")]
pub(crate) struct FlamegraphArgs {
    /// The profile, or a recording (perf.data)
    #[arg(default_value = "profile.json.gz")]
    pub(crate) file: PathBuf,
    /// Write the picture there ("-": standard output)
    #[arg(short, long, value_name = "FILE", default_value = "flamegraph.svg")]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) picture: PictureArgs,
    /// Merge stacks from their innermost functions: the functions that take the time, and their callers below them
    #[arg(long, visible_alias = "reverse", conflicts_with = "chart")]
    pub(crate) inverted: bool,
    /// Draw what threads did over time instead of how much they did
    #[arg(long, visible_alias = "flamechart")]
    pub(crate) chart: bool,
    /// Colour boxes by what changed since this profile
    #[arg(long, value_name = "PROFILE", conflicts_with_all = ["chart", "inverted"])]
    pub(crate) before: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) format: FormatArgs,
    #[command(flatten)]
    pub(crate) read: ReadArgs,
}

/// How a picture looks.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Picture")]
pub(crate) struct PictureArgs {
    /// The title above the picture (default: the profile's name)
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
    /// The line below the title (default: the time and the shares)
    #[arg(long, value_name = "TEXT")]
    pub(crate) subtitle: Option<String>,
    /// What the colours show
    #[arg(long, value_enum, default_value_t, value_name = "WHAT")]
    pub(crate) colors: ColorBy,
    /// Draw the roots at the top, and the functions that they call below them
    #[arg(long)]
    pub(crate) icicle: bool,
    /// The width in pixels, before a browser fits it to its window
    #[arg(long, value_name = "PIXELS", default_value_t = 1200, value_parser = |text: &str| whole::<u32>(text, 200..=20_000))]
    pub(crate) width: u32,
    /// Leave out boxes narrower than this
    #[arg(long, value_name = "PIXELS", default_value_t = 0.1, value_parser = |text: &str| number(text, "pixels", 0.0..=1000.0))]
    pub(crate) min_width: f64,
}

impl Default for PictureArgs {
    fn default() -> Self {
        let (width, min_width) = (1200, 0.1);
        Self { title: None, subtitle: None, colors: ColorBy::default(), icicle: false, width, min_width }
    }
}

/// The meaning of the colours of boxes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorBy {
    /// The function: neighbours have different colours
    #[default]
    Function,
    /// The library or program
    Lib,
    /// The kind of code: user code, kernel, a runtime's
    Category,
}
