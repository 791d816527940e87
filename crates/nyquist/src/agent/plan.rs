//! What the agent does, as the arguments, the configuration file and the environment say it.

use super::config;
use super::counts::Counts;
use super::delivery::Delivery;
use super::headers::{Headers, pairs};
use super::label_rules::LabelRules;
use super::server::{Server, ServerKind};
use crate::args::{AgentArgs, NOT_UNDERSTOOD};
use crate::failure::Failure;
use crate::number::grouped;
use crate::page;
use crate::printer::Printer;
use crate::record::linux::{allocations, recorded_events};
use crate::text::one_line;
use nyquist_download::{Connection, Sender};
use nyquist_formats::pprof::HEAP_VALUES;
use nyquist_record::linux::event_names::SampleInterval;
use nyquist_system::open_regular;
use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The longest file with certificates.
const MAX_PEM_BYTES: u64 = 4 << 20;

/// How long a request may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A checked plan.
pub(super) struct Plan {
    pub(super) args: AgentArgs,
    pub(super) host: String,
    /// Labels of everything.
    pub(super) labels: Vec<(String, String)>,
    /// The service of everything, if it is stated.
    pub(super) service: Option<String>,
    servers: Vec<(Server, Sender, Headers)>,
}

impl Plan {
    /// Checks the arguments and those of the configuration file.
    pub(super) fn of(typed: &AgentArgs) -> Result<Self, Failure> {
        let args = config::with_file(typed)?;
        if !args.all_cpus && args.pid.is_empty() && args.unit.is_none() && args.command.is_empty() {
            return Err(Failure::new("nothing to record is named")
                .hint("nyquist agent -a, -p PID, --unit UNIT, or a command"));
        }
        allocations::check(args.alloc, !args.command.is_empty(), "nyquist agent --alloc -- COMMAND")?;
        let mut servers = args.push.iter().map(|text| Server::parse(text)).collect::<Result<Vec<_>, _>>()?;
        if servers.is_empty() && args.to.is_none() {
            servers.extend(Server::of_environment(variable)?);
        }
        if servers.is_empty() && args.to.is_none() {
            return Err(Failure::new("no place for the profiles is named").hint("--push URL, or --to DIR"));
        }
        if args.to.is_some() && !cfg!(feature = "parquet") {
            return Err(Failure::new("--to needs a build with the feature `parquet`"));
        }
        let servers = servers.into_iter().map(|server| connect(&args, server)).collect::<Result<_, _>>()?;
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned();
        let host = if host.is_empty() { "unknown".to_owned() } else { host };
        check_events(&args)?;
        let (labels, service) = labels(&args, &host);
        Ok(Self { args, host, labels, service, servers })
    }

    /// Starts what sends to the servers.
    pub(super) fn deliveries(&self, counts: &Arc<Counts>) -> Result<Vec<(Server, Delivery)>, Failure> {
        let printer = Printer::new(self.args.verbosity);
        let start = |(server, sender, headers): &(Server, Sender, Headers)| {
            let by = (Arc::clone(counts), printer);
            Ok((server.clone(), Delivery::start(server.clone(), sender.clone(), headers.clone(), by)?))
        };
        self.servers.iter().map(start).collect()
    }

    /// Prints what would be done.
    pub(super) fn print(&self) -> Result<(), Failure> {
        let args = &self.args;
        let target = if args.all_cpus {
            "the whole machine".to_owned()
        } else if let Some(unit) = &args.unit {
            format!("the unit {unit}")
        } else if args.pid.is_empty() {
            "the command".to_owned()
        } else {
            format!("the processes {:?} and their children", args.pid)
        };
        let mut lines = vec![
            format!("Records {target}, {} times a second of each busy CPU", args.rate),
            format!("Makes a profile every {} s, with waiting: {}", args.every.as_secs_f64(), args.off_cpu),
        ];
        let events = args.events.requested.iter().map(|requested| &*requested.text).collect::<Vec<_>>();
        if !events.is_empty() {
            lines.push(format!("Makes one of each of these events, too: {}", events.join(", ")));
        }
        if args.alloc {
            let values = HEAP_VALUES.map(|(name, _)| name).join(", ");
            let sampled = format!("one in {} bytes is sampled", grouped(args.alloc_rate));
            lines.push(format!("Makes one of each of these values of allocations, too: {values}; {sampled}"));
        }
        lines.extend(args.to.iter().map(|folder| {
            format!("Writes Parquet, schema 1, into {}/date=.../host={}/", folder.display(), self.host)
        }));
        let sends = |(server, _, _): &(Server, Sender, Headers)| {
            format!("Sends to {} by {}", server.url, server.protocol())
        };
        lines.extend(self.servers.iter().map(sends));
        let rules = LabelRules::of(args);
        let sent = self.labels.iter().filter(|(key, _)| rules.allow(key));
        lines.extend(sent.map(|(key, value)| format!("Label {key}={value}")));
        page::write_text_with(|out| lines.iter().try_for_each(|line| writeln!(out, "{}", one_line(line))))
    }
}

/// Fails if a name is no event, or if it is not known how many events a sample of it stands for. At a few samples a
/// second the kernel finds out too late how rarely to take them: of 200,000 page faults, the samples stood for 769.
fn check_events(args: &AgentArgs) -> Result<(), Failure> {
    let events = recorded_events(&args.events, &args.symbols, args.rate, args.off_cpu)?;
    let by_rate = events.iter().find(|recorded| matches!(recorded.interval, SampleInterval::Frequency(_)));
    let Some(recorded) = by_rate else { return Ok(()) };
    let name = &recorded.event.name;
    let text = format!("`{name}` needs -c N, so that each sample stands for N of them");
    Err(Failure::new(text).status(NOT_UNDERSTOOD).hint(format!("-e {name} -c 100; -c 1 records each")))
}

/// The value of a variable that is not empty.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The labels of everything, and the service of everything, if it is stated.
fn labels(args: &AgentArgs, host: &str) -> (Vec<(String, String)>, Option<String>) {
    let attributes = pairs(&variable("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default());
    let mut labels: Vec<(String, String)> = vec![("host.name".to_owned(), host.to_owned())];
    for (key, value) in attributes.into_iter().chain(args.label.iter().cloned()) {
        labels.retain(|(known, _)| *known != key);
        labels.push((key, value));
    }
    let provided =
        labels.iter().position(|(key, _)| key == "service.name").map(|place| labels.remove(place).1);
    (labels, provided)
}

fn connect(args: &AgentArgs, server: Server) -> Result<(Server, Sender, Headers), Failure> {
    let mut headers = match server.kind {
        ServerKind::Otlp => Headers::of_pairs(&variable("OTEL_EXPORTER_OTLP_HEADERS").unwrap_or_default()),
        ServerKind::Pyroscope => Headers::new(),
    };
    if let Some(path) = &args.auth_file {
        headers = headers.with_all(&Headers::of_file(path)?);
    }
    if let Some(tenant) = &args.tenant {
        headers = headers.with("X-Scope-OrgID", tenant);
    }
    let timeout = variable("OTEL_EXPORTER_OTLP_TIMEOUT").and_then(|text| text.parse().ok());
    let pem = |path: Option<&Path>| path.map(read_pem).transpose();
    let connection = Connection {
        timeout: timeout
            .map_or(TIMEOUT, Duration::from_millis)
            .clamp(Duration::from_millis(100), TIMEOUT * 6),
        roots: pem(args.ca_file.as_deref())?,
        certificate: pem(args.client_certificate.as_deref())?,
        key: pem(args.client_key.as_deref())?,
    };
    let sender = Sender::new(&connection);
    let sender = sender.map_err(|error| Failure::because("the connection cannot be prepared", &error))?;
    Ok((server, sender, headers))
}

fn read_pem(path: &Path) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let read = open_regular(path).and_then(|file| file.take(MAX_PEM_BYTES).read_to_end(&mut bytes));
    read.map_err(|error| Failure::io(format_args!("cannot read {}", path.display()), &error))?;
    Ok(bytes)
}
