//! The definition of samply's command line: the options of samply 0.13, with its letters and defaults, and
//! those of its later versions.

use clap::{ArgAction, Args, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

/// A sampling CPU profiler: nyquist, with samply's options.
#[derive(Debug, Parser)]
#[command(name = "samply", version = concat!("0.13.1 (nyquist ", env!("CARGO_PKG_VERSION"), ")"))]
pub(super) struct SamplyCli {
    #[command(subcommand)]
    pub(super) command: SamplyCommand,
}

#[derive(Debug, Subcommand)]
pub(super) enum SamplyCommand {
    /// Record a profile and display it
    Record(Box<RecordArgs>),
    /// Load a profile from a file and display it
    Load(Box<LoadArgs>),
    /// Import a perf.data file and display the profile
    Import(Box<ImportArgs>),
    /// Sign the program, which only macOS needs
    Setup {
        /// Do not ask
        #[arg(short, long)]
        yes: bool,
    },
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of samply's")]
pub(super) struct RecordArgs {
    /// Sampling rate, in Hz
    #[arg(short, long, default_value = "1000")]
    pub(super) rate: f64,
    /// Limit the recorded time, in seconds
    #[arg(short, long)]
    pub(super) duration: Option<f64>,
    /// How many times to run the command
    #[arg(long, default_value_t = 1)]
    pub(super) iteration_count: u32,
    /// Go on when a run fails
    #[arg(short, long)]
    pub(super) ignore_exit_code: bool,
    #[command(flatten)]
    pub(super) profile: ProfileArgs,
    #[command(flatten)]
    pub(super) server: ServerArgs,
    #[command(flatten)]
    pub(super) symbols: SymbolArgs,
    /// Attach to this process
    #[arg(short, long)]
    pub(super) pid: Option<u32>,
    /// Profile the whole system
    #[arg(short, long, conflicts_with = "pid")]
    pub(super) all: bool,
    /// Keep Linux context switches (Windows: CoreCLR events)
    #[arg(long, num_args = 0.., require_equals = true)]
    pub(super) coreclr: Option<Vec<String>>,
    /// Graphics events of Windows
    #[arg(long)]
    pub(super) gfx: bool,
    /// Events of browsers on Windows
    #[arg(long)]
    pub(super) browsers: bool,
    /// The command, with its environment before it
    #[arg(trailing_var_arg = true)]
    pub(super) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(super) struct LoadArgs {
    #[command(flatten)]
    pub(super) server: ServerArgs,
    #[command(flatten)]
    pub(super) symbols: SymbolArgs,
    /// The profile
    pub(super) file: PathBuf,
}

#[derive(Debug, Args)]
pub(super) struct ImportArgs {
    #[command(flatten)]
    pub(super) profile: ProfileArgs,
    #[command(flatten)]
    pub(super) server: ServerArgs,
    #[command(flatten)]
    pub(super) symbols: SymbolArgs,
    /// Also look for jitdumps and marker files there
    #[arg(long)]
    pub(super) aux_file_dir: Vec<PathBuf>,
    /// Only processes whose name contains this
    #[arg(long)]
    pub(super) name: Vec<String>,
    /// Only these processes
    #[arg(long)]
    pub(super) pid: Vec<u32>,
    /// Only this time
    #[arg(long)]
    pub(super) time_range: Option<String>,
    /// The architecture of the profile
    #[arg(long)]
    pub(super) override_arch: Option<String>,
    /// CoreCLR events of Windows
    #[arg(long, num_args = 0.., require_equals = true)]
    pub(super) coreclr: Option<Vec<String>>,
    /// The recording
    pub(super) file: PathBuf,
    /// ETL files of user sessions on Windows
    pub(super) user_etl: Vec<PathBuf>,
}

/// How a profile is made.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of samply's")]
pub(super) struct ProfileArgs {
    /// The profile's name
    #[arg(long, allow_hyphen_values = true)]
    pub(super) profile_name: Option<String>,
    /// Only the main thread of each process
    #[arg(long)]
    pub(super) main_thread_only: bool,
    /// Merge threads of the same name that do not overlap
    #[arg(long)]
    pub(super) reuse_threads: bool,
    /// Fold repeated frames at the base of the stack
    #[arg(long)]
    pub(super) fold_recursive_prefix: bool,
    /// Remove jitdumps when they have been opened
    #[arg(long)]
    pub(super) unlink_aux_files: bool,
    /// Add a thread for each CPU
    #[arg(long)]
    pub(super) per_cpu_threads: bool,
    /// A marker for each function that is made just in time
    #[arg(long)]
    pub(super) jit_markers: bool,
    /// A marker for each context switch
    #[arg(long)]
    pub(super) cswitch_markers: bool,
    /// Put N arguments into the names of processes
    #[arg(long, num_args = 0..=1, require_equals = true, default_value_t = 0, default_missing_value = "100")]
    pub(super) include_args: usize,
    /// Put symbols into the profile, which always happens
    #[arg(long = "presymbolicate", alias = "unstable-presymbolicate")]
    pub(super) _presymbolicate: bool,
    /// Do not serve the profile afterwards
    #[arg(short, long)]
    pub(super) save_only: bool,
    /// Where to save
    #[arg(short, long, default_value = "profile.json.gz")]
    pub(super) output: PathBuf,
}

/// How a profile is shown.
#[derive(Debug, Args)]
pub(super) struct ServerArgs {
    /// Do not open a browser
    #[arg(short, long)]
    pub(super) no_open: bool,
    /// The address of the local server
    #[arg(long, default_value = "127.0.0.1")]
    pub(super) address: String,
    /// The port of the local server; 3000+ is the first free one from there on
    #[arg(short = 'P', long, default_value = "3000+")]
    pub(super) port: String,
    /// Say more
    #[arg(short, long, action = ArgAction::SetTrue)]
    pub(super) verbose: bool,
}

/// Where symbols come from.
#[derive(Debug, Args)]
pub(super) struct SymbolArgs {
    /// Folders with symbol files
    #[arg(long)]
    pub(super) symbol_dir: Vec<PathBuf>,
    /// Servers of symbols for Windows
    #[arg(long)]
    pub(super) windows_symbol_server: Vec<String>,
    /// Where files from these are kept
    #[arg(long)]
    pub(super) windows_symbol_cache: Option<PathBuf>,
    /// Servers of Breakpad symbols
    #[arg(long)]
    pub(super) breakpad_symbol_server: Vec<String>,
    /// Folders of Breakpad symbols
    #[arg(long)]
    pub(super) breakpad_symbol_dir: Vec<PathBuf>,
    /// Where files from these are kept
    #[arg(long)]
    pub(super) breakpad_symbol_cache: Option<PathBuf>,
    /// The folder that simpleperf's scripts fill
    #[arg(long)]
    pub(super) simpleperf_binary_cache: Option<PathBuf>,
}
