//! The arguments of `nyquist agent`.

use crate::args::quantity::{rate, seconds, whole};
use crate::args::{EventArgs, StackArgs, SymbolArgs, Verbosity};
use crate::memory::size;
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// `nyquist agent`
#[derive(Clone, Debug, Args)]
#[command(
    args_override_self = true,
    override_usage = "nyquist agent [OPTIONS] -a|-p PID,...|--unit UNIT
       nyquist agent [OPTIONS] [--] [VAR=VALUE...] COMMAND [ARGS...]",
    after_help = "Examples:
  nyquist agent -a --push http://pyroscope:4040         The whole machine, to Pyroscope
  nyquist agent -a --push otlp+http://collector:4318    To a collector of OpenTelemetry
  nyquist agent -a --to profiles/                       Parquet files, by date and host
  nyquist agent --to profiles/ -- ./server              One program
  nyquist agent --alloc --to profiles/ -- ./server      And where it allocates memory
  nyquist agent -a -e page-faults -c 100 --to p/        And one of 100 page faults

SIGHUP reads the configuration again. SIGTERM sends what is there and ends within five seconds."
)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of the command line")]
pub(crate) struct AgentArgs {
    /// Record the whole machine
    #[arg(short, long, conflicts_with_all = ["pid", "unit", "command"])]
    pub(crate) all_cpus: bool,
    /// Record these running processes, with their children
    #[arg(short, long, value_name = "PID,...", value_delimiter = ',', conflicts_with_all = ["unit", "command"])]
    pub(crate) pid: Vec<u32>,
    /// Record the processes of this unit of systemd
    #[arg(long, value_name = "UNIT", conflicts_with = "command")]
    pub(crate) unit: Option<String>,
    /// Samples a second, of each CPU that is busy
    #[arg(short, long, visible_short_alias = 'F', value_name = "HZ", default_value_t = 19, value_parser = rate)]
    pub(crate) rate: u32,
    #[command(flatten)]
    pub(crate) stacks: StackArgs,
    /// Also record where threads wait, and for how long
    #[arg(long)]
    pub(crate) off_cpu: bool,
    #[command(flatten)]
    pub(crate) events: EventArgs,
    /// Also record where the command and its children allocate memory, and what they hold at the end of each profile
    #[arg(long)]
    pub(crate) alloc: bool,
    /// Take one sample per BYTES that are allocated, on average (1: record each allocation)
    #[arg(long, value_name = "BYTES", requires = "alloc", default_value_t = 512 << 10, value_parser = |text: &str| whole::<u64>(text, 1..=1 << 40))]
    pub(crate) alloc_rate: u64,
    /// Length of each profile, in seconds; profiles begin at whole multiples of it
    #[arg(long, value_name = "SECONDS", default_value = "15", value_parser = interval)]
    pub(crate) every: Duration,
    /// Write each profile as a Parquet file into this folder, by date and host
    #[arg(long, value_name = "DIR")]
    pub(crate) to: Option<PathBuf>,
    /// Begin another file when one has this size
    #[arg(long, value_name = "SIZE", requires = "to", default_value = "128M", value_parser = max_file_size)]
    pub(crate) max_file_size: u64,
    /// Send each profile to this server: http://HOST:PORT is Pyroscope's, otlp+http://HOST:PORT one of OpenTelemetry
    /// (may be repeated; default: OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT or OTEL_EXPORTER_OTLP_ENDPOINT)
    #[arg(long, value_name = "URL")]
    pub(crate) push: Vec<String>,
    /// Add this label to everything (may be repeated; OTEL_RESOURCE_ATTRIBUTES has more)
    #[arg(long, value_name = "KEY=VALUE", value_parser = label)]
    pub(crate) label: Vec<(String, String)>,
    /// Leave out the labels with these keys; `*` stands for anything, as in `k8s.*` (may be repeated)
    #[arg(long, value_name = "KEY,...", value_delimiter = ',')]
    pub(crate) drop_label: Vec<String>,
    /// Leave out all other labels than these, the service apart (may be repeated)
    #[arg(long, value_name = "KEY,...", value_delimiter = ',')]
    pub(crate) keep_label: Vec<String>,
    /// Distinguish at most N services; the rest is `other`
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = |text: &str| whole::<usize>(text, 1..=10_000))]
    pub(crate) max_services: usize,
    /// Send it as this tenant (X-Scope-OrgID)
    #[arg(long, value_name = "ID")]
    pub(crate) tenant: Option<String>,
    /// Authenticate by the contents of this file: USER:PASSWORD, or a token
    #[arg(long, value_name = "FILE")]
    pub(crate) auth_file: Option<PathBuf>,
    /// Check the server by the certificates in this file, and not by those of the system
    #[arg(long, value_name = "FILE", env = "OTEL_EXPORTER_OTLP_CERTIFICATE")]
    pub(crate) ca_file: Option<PathBuf>,
    /// Show the server this certificate
    #[arg(long, value_name = "FILE", env = "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", requires = "client_key")]
    pub(crate) client_certificate: Option<PathBuf>,
    /// The key of that certificate
    #[arg(long, value_name = "FILE", env = "OTEL_EXPORTER_OTLP_CLIENT_KEY")]
    pub(crate) client_key: Option<PathBuf>,
    /// Answer /metrics (for Prometheus) and /healthz on this port of 127.0.0.1
    #[arg(long, value_name = "PORT", value_parser = |text: &str| whole::<u16>(text, 1..=u16::MAX))]
    pub(crate) metrics: Option<u16>,
    /// Read options from this file: TOML, whose keys are the names of options (`push = "http://..."`)
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print what would be done, and end
    #[arg(long)]
    pub(crate) check: bool,
    #[command(flatten)]
    pub(crate) symbols: SymbolArgs,
    #[command(flatten)]
    pub(crate) verbosity: Verbosity,
    /// The command, its environment before it and its arguments behind it
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// `15` or `15s`.
fn interval(text: &str) -> Result<Duration, String> {
    seconds(text.strip_suffix('s').unwrap_or(text), 1.0..=3600.0)
}

fn max_file_size(text: &str) -> Result<u64, String> {
    size(text).filter(|size| *size > 0).ok_or_else(|| "not a size, such as 128M or 1G".to_owned())
}

/// `KEY=VALUE`.
fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("it is KEY=VALUE".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Command, command};

    fn agent(argv: &[&str]) -> Result<Box<AgentArgs>, clap::Error> {
        command(&[&["agent"], argv].concat()).map(|command| match command {
            Command::Agent(args) => args,
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn later_options_win_and_labels_add_up() {
        let args = agent(&["--every=15s", "--label=a=1", "-a", "--every", "30", "--label", "b=x=y"]).unwrap();
        assert_eq!((args.every, args.rate), (Duration::from_secs(30), 19));
        assert_eq!(args.label, [("a".into(), "1".into()), ("b".into(), "x=y".into())]);
    }

    #[test]
    fn one_thing_is_recorded() {
        assert!(agent(&["-a", "-p", "1"]).is_err() && agent(&["--unit", "a.service", "ls"]).is_err());
        assert!(agent(&["--alloc-rate", "1", "ls"]).is_err() && agent(&["--alloc", "ls"]).unwrap().alloc);
        assert!(agent(&["-a", "--every", "0"]).is_err() && agent(&["-a", "--label", "x"]).is_err());
        assert_eq!(
            agent(&["--to", "d", "--", "A=1", "./app", "-a"]).unwrap().command,
            ["A=1", "./app", "-a"]
        );
    }
}
