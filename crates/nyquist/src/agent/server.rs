//! The servers that profiles are sent to, and what each of them gets.

use super::headers::Headers;
use crate::failure::Failure;
use nyquist_formats::pprof::{PushSeries, series_of_measure, write_service};
use nyquist_formats::{ProcessLabels, as_named, otlp};
use nyquist_profile::{ProcessIndex, Profile};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;

/// The path to which profiles of OpenTelemetry are posted. The version is in it.
pub(super) const OTLP_PATH: &str = "/v1development/profiles";
const PUSH_PATH: &str = "/push.v1.PusherService/Push";

/// The size above which a request of OpenTelemetry's has a service of its own.
const MAX_REQUEST: usize = 2_000_000;

/// What a server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServerKind {
    /// Pyroscope.
    Pyroscope,
    /// A receiver of OpenTelemetry's protocol over HTTP.
    Otlp,
}

/// A server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Server {
    pub(super) kind: ServerKind,
    /// Pyroscope's address, or the whole one of the other.
    pub(super) url: String,
}

/// What is sent in one piece.
#[derive(Clone, Debug)]
pub(super) enum Payload {
    /// A request of OpenTelemetry's protocol.
    Otlp(Vec<u8>),
    /// A series of Pyroscope's, with its times in seconds since 1970.
    Series { series: PushSeries, from: u64, until: u64 },
}

/// A request.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) url: String,
    pub(super) headers: Headers,
    pub(super) body: Vec<u8>,
}

impl Server {
    /// The server of `--push`.
    pub(super) fn parse(text: &str) -> Result<Self, Failure> {
        let (kind, url) = match text.strip_prefix("otlp+") {
            Some(url) => (ServerKind::Otlp, url),
            None => (ServerKind::Pyroscope, text),
        };
        let url = checked("--push", url)?.trim_end_matches('/');
        let has_path = url.split_once("://").is_some_and(|(_, rest)| rest.contains('/'));
        let url = match kind {
            ServerKind::Otlp if !has_path => format!("{url}{OTLP_PATH}"),
            _ => url.to_owned(),
        };
        Ok(Self { kind, url })
    }

    /// The server that OpenTelemetry's variables name.
    pub(super) fn of_environment(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, Failure> {
        let (own, general) = ("OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT");
        let url = match (variable(own), variable(general)) {
            (Some(url), _) => checked(own, &url)?.to_owned(),
            (None, Some(url)) => format!("{}{OTLP_PATH}", checked(general, &url)?.trim_end_matches('/')),
            (None, None) => return Ok(None),
        };
        Ok(Some(Self { kind: ServerKind::Otlp, url }))
    }

    /// The name of the protocol, with its version.
    pub(super) fn protocol(&self) -> &'static str {
        match self.kind {
            ServerKind::Pyroscope => "Pyroscope's push API (push.v1), or /ingest if it has none",
            ServerKind::Otlp => "OTLP over HTTP, profiles v1development of opentelemetry-proto 1.10 and 1.11",
        }
    }

    /// What this server gets of a profile.
    pub(super) fn payloads(&self, profile: &Profile, labels: &[ProcessLabels]) -> io::Result<Vec<Payload>> {
        match self.kind {
            ServerKind::Pyroscope => series_of(profile, labels),
            ServerKind::Otlp => otlp_of(profile, labels),
        }
    }

    /// The requests of a payload. `is_old`: whether it is a Pyroscope without the push API.
    pub(super) fn requests(&self, payload: &Payload, is_old: bool) -> Vec<Request> {
        let headers = |kind: &str| Headers::new().with("Content-Type", kind);
        match payload {
            Payload::Otlp(body) => vec![Request {
                url: self.url.clone(),
                headers: headers("application/x-protobuf"),
                body: body.clone(),
            }],
            Payload::Series { series, .. } if !is_old => vec![Request {
                url: format!("{}{PUSH_PATH}", self.url),
                headers: headers("application/proto").with("Connect-Protocol-Version", "1"),
                body: series.request(),
            }],
            Payload::Series { series, from, until } => {
                let name = percent_encoded(&series.ingest_name());
                let url = format!("{}/ingest?name={name}&from={from}&until={until}&format=pprof", self.url);
                let request = |body: &Vec<u8>| Request {
                    url: url.clone(),
                    headers: headers("application/octet-stream"),
                    body: body.clone(),
                };
                series.files.iter().map(request).collect()
            }
        }
    }
}

/// An address, if it is one without a password: it is shown in messages.
fn checked<'a>(source: &str, url: &'a str) -> Result<&'a str, Failure> {
    if url.contains('@') {
        let text = format!("{source} has a password, which lists of processes and messages would show");
        return Err(Failure::new(text).hint("--auth-file FILE reads it from a file"));
    }
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    if rest.is_none_or(|rest| rest.trim_matches('/').is_empty()) {
        let text = format!("{source} is no address of a server: {url}");
        let hint = "http://HOST:PORT is Pyroscope's, otlp+http://HOST:PORT one of OpenTelemetry; https, too";
        return Err(Failure::new(text).hint(hint));
    }
    Ok(url)
}

/// The processes of each combination of labels.
fn by_labels(labels: &[ProcessLabels]) -> BTreeMap<&ProcessLabels, Vec<usize>> {
    let mut groups: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (index, labels) in labels.iter().enumerate() {
        groups.entry(labels).or_default().push(index);
    }
    groups
}

fn series_of(profile: &Profile, labels: &[ProcessLabels]) -> io::Result<Vec<Payload>> {
    let meta = profile.meta();
    let from = meta.start_time / 1_000_000;
    let until = (meta.start_time + profile.duration() / 1000).div_ceil(1_000_000);
    let main = series_of_measure(profile);
    let mut payloads = Vec::new();
    for (labels, processes) in by_labels(labels) {
        for (kind, off_cpu) in [(&*main, false), ("off_cpu", true)] {
            let is_of = |process: ProcessIndex| processes.binary_search(&process.index()).is_ok();
            for file in write_service(profile, &as_named, &is_of, off_cpu)? {
                let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
                let own = [pair("__name__", kind), pair("service_name", &labels.service)];
                let labels = own.into_iter().chain(labels.labels.iter().cloned()).collect();
                payloads.push(Payload::Series {
                    series: PushSeries { labels, files: vec![file] },
                    from,
                    until,
                });
            }
        }
    }
    Ok(payloads)
}

fn otlp_of(profile: &Profile, labels: &[ProcessLabels]) -> io::Result<Vec<Payload>> {
    let write = |is_of: &dyn Fn(usize) -> bool| {
        let services =
            |process: ProcessIndex| is_of(process.index()).then(|| labels[process.index()].clone());
        let options = otlp::WriteOptions {
            paths: &as_named,
            file_hash: &crate::file_hash::of,
            services: Some(&services),
        };
        let mut body = Vec::new();
        otlp::write_with(profile, options, &mut body).map(|()| body)
    };
    let has_samples = profile.threads().iter().any(|thread| !thread.samples.is_empty());
    if !has_samples {
        return Ok(Vec::new());
    }
    let whole = write(&|_| true)?;
    let groups = by_labels(labels);
    if whole.len() <= MAX_REQUEST || groups.len() < 2 {
        return Ok(vec![Payload::Otlp(whole)]);
    }
    let sampled = |processes: &&Vec<usize>| {
        let mut threads = profile.threads().iter();
        threads.any(|it| !it.samples.is_empty() && processes.binary_search(&it.process.index()).is_ok())
    };
    let parts = groups.values().filter(sampled);
    parts.map(|processes| write(&|it| processes.binary_search(&it).is_ok()).map(Payload::Otlp)).collect()
}

/// The text for a query.
fn percent_encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(byte.into()),
            // Writing to a string cannot fail.
            _ => drop(write!(encoded, "%{byte:02X}")),
        }
        encoded
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_say_what_the_server_is() {
        let parse = |text: &str| Server::parse(text).map(|server| (server.kind, server.url)).ok();
        let pyroscope = |url: &str| Some((ServerKind::Pyroscope, url.to_owned()));
        let otlp = |url: &str| Some((ServerKind::Otlp, url.to_owned()));
        assert_eq!(parse("http://pyroscope:4040/"), pyroscope("http://pyroscope:4040"));
        assert_eq!(parse("https://a/tenant"), pyroscope("https://a/tenant"));
        assert_eq!(parse("otlp+http://c:4318"), otlp("http://c:4318/v1development/profiles"));
        assert_eq!(parse("otlp+https://c/own/path"), otlp("https://c/own/path"));
        for text in ["pyroscope:4040", "http://", "http:///", "otlp+grpc://c:4317", "http://user:secret@a"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn no_message_shows_a_password() {
        for text in ["http://user:secret@a", "otlp+ftp://user:secret@a"] {
            let failure = Server::parse(text).unwrap_err();
            assert!(!failure.message.contains("secret"), "{}", failure.message);
        }
        let failure = Server::of_environment(|_| Some("http://user:secret@a".to_owned())).unwrap_err();
        assert!(!failure.message.contains("secret"), "{}", failure.message);
    }

    #[test]
    fn variables_of_opentelemetry_name_a_server() {
        let of = |name: &'static str, value: &'static str| {
            let server = Server::of_environment(move |asked| (asked == name).then(|| value.to_owned()));
            server.map(|server| server.map(|server| server.url)).unwrap_or_default()
        };
        let url = of("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318/");
        assert_eq!(url.as_deref(), Some("http://c:4318/v1development/profiles"));
        let url = of("OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT", "http://c/x");
        assert_eq!(url.as_deref(), Some("http://c/x"));
        assert_eq!(of("OTHER", "http://x"), None);
        assert_eq!(of("OTEL_EXPORTER_OTLP_ENDPOINT", "c:4318"), None);
    }

    #[test]
    fn a_query_has_no_special_characters() {
        assert_eq!(percent_encoded("a b{c=d}"), "a%20b%7Bc%3Dd%7D");
    }
}
