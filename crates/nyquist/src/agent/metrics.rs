//! `/metrics` and `/healthz` on loopback, for Prometheus and for what watches the agent. Nothing in them names a
//! program.

use super::brief_clients::BriefClients;
use super::counts::Counts;
use crate::failure::Failure;
use crate::system::users::give_up_capabilities;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How many windows may be late before the agent is not healthy.
const MAX_LATE: u32 = 4;

/// When the last window was handed over.
#[derive(Debug)]
pub(super) struct Pulse {
    began: Instant,
    /// In ms since then.
    last: AtomicU64,
}

impl Pulse {
    pub(super) fn new() -> Self {
        Self { began: Instant::now(), last: AtomicU64::new(0) }
    }

    /// A window was handed over.
    pub(super) fn beat(&self) {
        self.last.store(self.began.elapsed().as_millis() as u64, Ordering::Relaxed);
    }

    fn age(&self) -> Duration {
        self.began.elapsed().saturating_sub(Duration::from_millis(self.last.load(Ordering::Relaxed)))
    }
}

/// What is shown.
#[derive(Clone, Debug)]
pub(super) struct Metrics {
    pub(super) counts: Arc<Counts>,
    pub(super) pulse: Arc<Pulse>,
    pub(super) every: Duration,
}

impl Metrics {
    /// Answers on this port of 127.0.0.1.
    pub(super) fn serve(self, port: u16) -> Result<(), Failure> {
        let failure = |error: &io::Error| Failure::because(format!("--metrics {port} cannot be used"), error);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(|error| failure(&error))?;
        let clients = BriefClients::new(listener).map_err(|error| failure(&error))?;
        let serve = move || {
            let _ = give_up_capabilities();
            clients.serve(|head| self.answer(head))
        };
        let thread = thread::Builder::new().name("agent-metrics".to_owned()).spawn(serve);
        thread.map(drop).map_err(|error| failure(&error))
    }

    fn answer(&self, head: &str) -> String {
        let (status, body) = self.answer_to(head);
        let length = body.len();
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        )
    }

    /// The answer to a request. A page of another name that leads here gets none.
    fn answer_to(&self, head: &str) -> (&'static str, String) {
        let mut lines = head.split("\r\n");
        let mut fields = lines.next().unwrap_or_default().split(' ');
        let host = lines.find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("host").then(|| value.trim())
        });
        let host = host.map_or("", |host| host.rsplit_once(':').map_or(host, |(host, _)| host));
        if !matches!(host, "127.0.0.1" | "localhost") {
            return ("403 Forbidden", "another host name\n".to_owned());
        }
        match (fields.next(), fields.next()) {
            (Some("GET"), Some("/metrics")) => ("200 OK", self.text()),
            (Some("GET"), Some("/healthz")) if self.is_healthy() => ("200 OK", "ok\n".to_owned()),
            (Some("GET"), Some("/healthz")) => {
                ("503 Service Unavailable", "no profile for long\n".to_owned())
            }
            _ => ("404 Not Found", "/metrics and /healthz\n".to_owned()),
        }
    }

    fn is_healthy(&self) -> bool {
        is_in_time(self.pulse.age(), self.every)
    }

    fn text(&self) -> String {
        let counts = &self.counts;
        let counters = [
            ("files_written", "Parquet files that were written", &counts.written),
            ("profiles_sent", "Pieces of profiles that servers took", &counts.sent),
            ("sent_bytes", "Bytes of requests", &counts.bytes),
            ("retries", "Requests that will be repeated", &counts.retried),
            ("profiles_lost", "Files and pieces that were given up", &counts.lost),
        ];
        let shown = |(name, help, counter): (&str, &str, &AtomicU64)| {
            let value = counter.load(Ordering::Relaxed);
            metric(&format!("{name}_total"), (help, "counter"), &value.to_string())
        };
        let age = format!("{:.3}", self.pulse.age().as_secs_f64());
        let age = metric("profile_age_seconds", ("Time since the last profile", "gauge"), &age);
        counters.into_iter().map(shown).chain([age]).collect()
    }
}

/// A metric as Prometheus' text.
fn metric(name: &str, (help, kind): (&str, &str), value: &str) -> String {
    let name = format!("nyquist_agent_{name}");
    format!("# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n")
}

/// Whether the last profile is no older than it may be.
fn is_in_time(age: Duration, every: Duration) -> bool {
    age < every * MAX_LATE + Duration::from_secs(10)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metrics() -> Metrics {
        Metrics { counts: Arc::default(), pulse: Arc::new(Pulse::new()), every: Duration::from_secs(15) }
    }

    #[test]
    fn each_path_has_its_answer() {
        let metrics = metrics();
        Counts::add(&metrics.counts.lost, 3);
        let ask = |path: &str, host: &str| {
            metrics.answer_to(&format!("GET {path} HTTP/1.1\r\nUser-Agent: x\r\nhOST: {host}\r\n\r\n"))
        };
        let (status, text) = ask("/metrics", "127.0.0.1:9100");
        assert!(
            status.starts_with("200") && text.contains("nyquist_agent_profiles_lost_total 3\n"),
            "{text}"
        );
        assert!(ask("/healthz", "localhost").0.starts_with("200"));
        assert!(ask("/x", "localhost").0.starts_with("404"));
        assert!(ask("/metrics", "evil.example:9100").0.starts_with("403"));
        assert!(metrics.answer_to("GET /metrics HTTP/1.1\r\n\r\n").0.starts_with("403"));
    }

    #[test]
    fn an_agent_without_profiles_is_not_healthy() {
        let every = Duration::from_secs(15);
        assert!(is_in_time(Duration::from_mins(1), every) && !is_in_time(Duration::from_secs(71), every));
    }
}
