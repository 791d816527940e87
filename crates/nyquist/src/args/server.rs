//! The options of a served profile.

use crate::args::quantity::whole;
use clap::{Args, ValueEnum};
use std::net::IpAddr;

/// How a profile is served.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Serving")]
pub(crate) struct ServerArgs {
    /// Print the link and do not open a browser
    #[arg(short, long)]
    pub(crate) no_open: bool,
    /// Serve on this port (default: the first free one from 3000 on)
    #[arg(short = 'P', long, value_name = "PORT", value_parser = |text: &str| whole::<u16>(text, 0..=u16::MAX))]
    pub(crate) port: Option<u16>,
    /// Serve on this address
    #[arg(long, value_name = "IP", default_value = "127.0.0.1")]
    pub(crate) address: IpAddr,
    /// Which page to open: the Firefox Profiler, the built-in viewer, or the first of them that can be reached
    #[arg(long, value_enum, value_name = "WHICH", env = "NYQUIST_UI", default_value_t = Ui::Auto)]
    pub(crate) ui: Ui,
    /// The front end that shows the profile
    #[arg(long, hide = true, env = "PROFILER_URL", default_value = "https://profiler.firefox.com")]
    pub(crate) profiler_url: String,
}

/// Which page shows a served profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Ui {
    /// The Firefox Profiler if it can be reached from here, otherwise the built-in viewer
    Auto,
    /// The built-in viewer, which needs no network
    Builtin,
    /// The Firefox Profiler
    Firefox,
}
