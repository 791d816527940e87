//! `nyquist agent`: what it sends and writes, and what it does when the other side does not take it.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::context::Context;
use super::expect::{Stop, Verdict, expect, expect_contains, expect_eq, need_root, skip};
use super::formats::reported_weight;
use super::http::Client;
use super::invocation::Invocation;
use super::pypi::{self, Package};
use super::receiver::{Receiver, Reply};
use super::test::Test;

pub(super) const TESTS: &[Test] = &[
    Test::new("agent_sends_otlp_that_others_decode", sends_otlp),
    Test::new("agent_pushes_pprof_that_go_reads", pushes),
    Test::new("agent_uses_ingest_of_an_old_server", ingest),
    Test::new("agent_follows_each_rule_of_retrying", retries),
    Test::new("agent_ends_whatever_the_server_does", unhelpful_servers),
    Test::new("agent_writes_tables_of_the_machine", whole_machine),
    Test::new("agent_reads_its_configuration_again", configuration),
];

/// The published definitions of OpenTelemetry's messages, and what they need.
const DEFINITIONS: Package = Package { name: "opentelemetry-proto", version: "1.45.2" };
const PROTOBUF: Package = Package { name: "protobuf", version: "7.35.1" };

/// Decodes requests and prints what the receivers check, as JSON. The rules are those of the profiles group's checker
/// (`profcheck/check.go` of open-telemetry/sig-profiling) and of Pyroscope (`pkg/ingester/otlp/convert.go`).
const CHECK: &str = "import json, sys
from opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2 import ExportProfilesServiceRequest
found = []
for path in sys.argv[1:]:
    request = ExportProfilesServiceRequest.FromString(open(path, 'rb').read())
    d = request.dictionary
    tables = [d.mapping_table, d.location_table, d.function_table, d.link_table, d.attribute_table, d.stack_table]
    assert d.string_table[0] == ''
    for table in tables:
        assert table[0] == type(table[0])(), table[0]
    for mapping in d.mapping_table[1:]:
        assert mapping.memory_start < mapping.memory_limit or mapping.memory_start == mapping.memory_limit == 0
    for resource in request.resource_profiles:
        assert resource.scope_profiles
        keys = [pair.key for pair in resource.resource.attributes]
        assert len(keys) == len(set(keys)), keys
        labels = {pair.key: pair.value.string_value for pair in resource.resource.attributes}
        for scope in resource.scope_profiles:
            assert scope.profiles
            for profile in scope.profiles:
                assert profile.samples
                seen = set()
                functions = {}
                for sample in profile.samples:
                    assert len(sample.values) == 1 and not sample.timestamps_unix_nano
                    key = (sample.stack_index, tuple(sample.attribute_indices))
                    assert key not in seen, 'a stack comes twice'
                    seen.add(key)
                    stack = d.stack_table[sample.stack_index]
                    for number in {line.function_index for place in stack.location_indices for line in d.location_table[place].lines}:
                        name = d.string_table[d.function_table[number].name_strindex]
                        functions[name] = functions.get(name, 0) + sample.values[0]
                text = d.string_table
                found.append({
                    'labels': labels, 'functions': functions, 'period': profile.period,
                    'type': text[profile.sample_type.type_strindex] + '/' + text[profile.sample_type.unit_strindex],
                    'period_type': text[profile.period_type.type_strindex] + '/' + text[profile.period_type.unit_strindex],
                    'sum': sum(sample.values[0] for sample in profile.samples),
                    'duration': profile.duration_nano, 'start': profile.time_unix_nano})
print(json.dumps(found))";

/// Prints the series of push requests as JSON, and writes the files in them beside the requests.
const SERIES: &str = "import json, sys
def fields(data):
    at = 0
    def varint():
        nonlocal at
        shift = value = 0
        while True:
            byte = data[at]; at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128: return value
    while at < len(data):
        tag = varint()
        assert tag & 7 == 2, tag
        length = varint()
        yield tag >> 3, data[at:at + length]
        at += length
found = []
for path in sys.argv[1:]:
    for number, series in fields(open(path, 'rb').read()):
        assert number == 1
        labels, files = {}, []
        for number, part in fields(series):
            inner = dict(fields(part))
            if number == 1:
                labels[inner[1].decode()] = inner[2].decode()
            else:
                files.append(f'{path}.{len(files)}.pb.gz')
                open(files[-1], 'wb').write(inner[1])
        found.append({'labels': labels, 'files': files})
print(json.dumps(found))";

/// An agent that records a workload for so many milliseconds of its CPU time.
pub(super) fn agent<'a>(
    test: &'a Context<'_>,
    options: &[&str],
    workload: &str,
    milliseconds: &str,
) -> Invocation<'a> {
    let call = test.nyquist(&["agent", "--rate", "200", "--every", "1"]).args(options);
    call.args(&["--"]).path(&test.workload(workload)).args(&[milliseconds])
}

pub(super) fn takes_all() -> Result<Receiver, Stop> {
    Ok(Receiver::start(|_, _| Reply::Status(200, ""))?)
}

/// Writes the bodies of requests into files, and returns their paths.
fn bodies(test: &Context<'_>, receiver: &Receiver) -> Result<Vec<String>, Stop> {
    let mut paths = Vec::new();
    for (number, posted) in receiver.posted().iter().enumerate() {
        let path = test.path(&format!("body-{number}"));
        fs::write(&path, &posted.body)?;
        paths.push(path.display().to_string());
    }
    Ok(paths)
}

/// The profiles that a receiver of OpenTelemetry's got, which are what the protocol asks for.
pub(super) fn decoded(test: &Context<'_>, receiver: &Receiver) -> Result<Vec<Value>, Stop> {
    python(test, CHECK, &bodies(test, receiver)?, &[DEFINITIONS, PROTOBUF])
}

/// The series that a server of Pyroscope's got, with the paths of their files.
pub(super) fn series(test: &Context<'_>, receiver: &Receiver) -> Result<Vec<Value>, Stop> {
    python(test, SERIES, &bodies(test, receiver)?, &[])
}

fn python(
    test: &Context<'_>,
    script: &str,
    args: &[String],
    packages: &[Package],
) -> Result<Vec<Value>, Stop> {
    let folders = packages.iter().map(|package| Ok(pypi::folder_of(*package)?.display().to_string()));
    let folders = folders.collect::<Result<Vec<_>, Stop>>()?.join(":");
    let args: Vec<_> = args.iter().map(String::as_str).collect();
    let program = test.program("python3").env("PYTHONPATH", &folders).args(&["-c", script]).args(&args);
    Ok(serde_json::from_str(&program.run()?.succeeded()?.stdout_text())?)
}

fn sends_otlp(test: &Context<'_>) -> Verdict {
    let receiver = takes_all()?;
    let push = format!("otlp+{}", receiver.url);
    let call = agent(test, &["--push", &push, "--label", "env=test", "--tenant", "a"], "shares", "2500");
    call.env("OTEL_SERVICE_NAME", "shop").by_plain_user().run()?.succeeded()?;
    let posted = receiver.posted();
    expect(posted.len() > 1, format_args!("{} requests in more than two seconds", posted.len()))?;
    for request in &posted {
        expect_eq("the path", &*request.path, "/v1development/profiles")?;
        expect_eq("the type", request.header("content-type"), Some("application/x-protobuf"))?;
        expect_eq("the tenant", request.header("x-scope-orgid"), Some("a"))?;
    }
    let profiles = decoded(test, &receiver)?;
    let mut time = 0;
    for profile in &profiles {
        expect_eq("the type", profile["type"].as_str(), Some("samples/count"))?;
        expect_eq("the type of the period", profile["period_type"].as_str(), Some("cpu/nanoseconds"))?;
        expect_eq("the period", profile["period"].as_u64(), Some(5_000_000))?;
        expect_eq("the service", profile["labels"]["service.name"].as_str(), Some("shop"))?;
        expect_eq("the label", profile["labels"]["env"].as_str(), Some("test"))?;
        expect(profile["labels"]["host.name"].as_str().is_some_and(|host| !host.is_empty()), "no host")?;
        time += profile["sum"].as_u64().unwrap_or_default() * 5;
    }
    // In each turn the program is 125 ms without alpha, which are 25 samples. On a busy machine a window may have no
    // more.
    let of_many = profiles.iter().filter(|profile| profile["sum"].as_u64() > Some(30));
    let without_alpha = of_many.filter(|profile| profile["functions"]["alpha"].as_u64().is_none());
    expect_eq("profiles without alpha", without_alpha.count(), 0)?;
    let lengths = profiles.iter().filter_map(|profile| profile["duration"].as_u64());
    expect(lengths.max() < Some(1_010_000_000), format_args!("longer than a window: {profiles:?}"))?;
    let is_whole = |ns: u64| ns.abs_diff(1_000_000_000) < 10_000_000;
    let whole = profiles.iter().filter(|profile| profile["duration"].as_u64().is_some_and(is_whole));
    expect(
        whole.clone().count() > 0
            && whole.clone().all(|it| {
                it["start"].as_u64().is_some_and(|ns| (ns + 5_000_000) % 1_000_000_000 < 10_000_000)
            }),
        format_args!("windows that do not begin at whole seconds: {profiles:?}"),
    )?;
    super::expect::expect_within("the CPU time in ms", time as f64, 2500.0, 0.15)
}

fn pushes(test: &Context<'_>) -> Verdict {
    let receiver = takes_all()?;
    let secret = test.path("secret");
    fs::write(&secret, "me:secret\n")?;
    let secret = secret.display().to_string();
    let options = ["--push", &receiver.url, "--auth-file", &secret];
    agent(test, &options, "shares", "2500").run()?.succeeded()?;
    let posted = receiver.posted();
    expect(!posted.is_empty(), "nothing was sent")?;
    for request in &posted {
        expect_eq("the path", &*request.path, "/push.v1.PusherService/Push")?;
        expect_eq("the authentication", request.header("authorization"), Some("Basic bWU6c2VjcmV0"))?;
    }
    let series = series(test, &receiver)?;
    for series in &series {
        expect_eq("the name", series["labels"]["__name__"].as_str(), Some("process_cpu"))?;
        expect(series["labels"]["service_name"].as_str().is_some(), format_args!("no service: {series}"))?;
        expect(series["labels"]["host_name"].as_str().is_some(), format_args!("no host: {series}"))?;
    }
    let file = series.iter().find_map(|series| series["files"][0].as_str());
    let file = file.ok_or_else(|| Stop::Failed("no file".into()))?;
    let Ok(top) = test.program("go").args(&["tool", "pprof", "-top", file]).run() else {
        return skip("no go");
    };
    let top = top.succeeded()?.stdout_text();
    expect_contains("the table", &top, "alpha")?;
    expect_contains("the table", &top, "Type: cpu")
}

fn ingest(test: &Context<'_>) -> Verdict {
    let receiver = Receiver::start(|_, path| {
        let status = if path.starts_with("/ingest?") { 200 } else { 404 };
        Reply::Status(status, "")
    })?;
    agent(test, &["--push", &receiver.url], "shares", "1200").run()?.succeeded()?;
    let posted = receiver.posted();
    let old: Vec<_> = posted.iter().filter(|request| request.path.starts_with("/ingest?")).collect();
    expect_eq("requests to the new path", posted.len() - old.len(), 1)?;
    expect(!old.is_empty(), "nothing was sent to the old path")?;
    expect_contains("the path", &old[0].path, "&format=pprof")?;
    expect_contains("the path", &old[0].path, "name=")?;
    expect(old[0].body.starts_with(&[0x1f, 0x8b]), "the body is no pprof")?;
    // What has neither path for a moment, as a proxy that starts again, gets the new one later.
    let receiver = Receiver::start(|number, _| Reply::Status(if number < 2 { 404 } else { 200 }, ""))?;
    let printed = agent(test, &["--push", &receiver.url], "shares", "2500").run()?.succeeded()?;
    expect_contains("what is said", &printed.stderr, " 1 lost")?;
    let later: Vec<_> = receiver.posted().into_iter().skip(2).map(|request| request.path).collect();
    expect(
        !later.is_empty() && later.iter().all(|path| path.starts_with("/push.v1.")),
        format_args!("the later requests: {later:?}"),
    )
}

/// OpenTelemetry's protocol: 429 comes again after the pause that is asked for, and 500 never.
fn retries(test: &Context<'_>) -> Verdict {
    let first = |status: u16| {
        Receiver::start(move |number, _| match number {
            0 => Reply::Status(status, "Retry-After: 0\r\n"),
            _ => Reply::Status(200, ""),
        })
    };
    for (status, kind, comes_again) in
        [(429, "otlp+", true), (500, "otlp+", false), (413, "", false), (500, "", true)]
    {
        let receiver = first(status)?;
        let push = format!("{kind}{}", receiver.url);
        let printed = agent(test, &["--push", &push], "shares", "2500").run()?.succeeded()?;
        let posted = receiver.posted();
        let what = format!("{kind} {status}");
        expect(posted.len() > 1, format_args!("{what}: nothing more was sent"))?;
        let again = posted[1..].iter().any(|request| request.body == posted[0].body);
        expect_eq(&what, again, comes_again)?;
        let lost = if comes_again { "0 lost" } else { "1 lost" };
        expect_contains(&what, &printed.stderr, lost)?;
        expect_contains(&what, &printed.stderr, &format!("status {status}"))?;
    }
    Ok(())
}

/// The agent ends, counts what is lost, and prints nothing of what a server sends unescaped.
fn unhelpful_servers(test: &Context<'_>) -> Verdict {
    for reply in
        [Reply::Close, Reply::Half, Reply::Garbage, Reply::Never, Reply::Status(429, "Retry-After: 3600\r\n")]
    {
        let receiver = Receiver::start(move |_, _| reply)?;
        let push = format!("otlp+{}", receiver.url);
        let running = agent(test, &["--push", &push], "shares", "60000").start()?;
        running.wait_until("a request", || !receiver.posted().is_empty())?;
        running.signal(15)?;
        let ended = running.wait()?;
        expect_eq(&format!("{reply:?}: the status"), ended.code(), 143)?;
        expect(ended.stderr.contains(" lost"), format_args!("{reply:?}: {}", ended.stderr))?;
        expect(!ended.stderr.contains("0 lost"), format_args!("{reply:?}: {}", ended.stderr))?;
        expect(!ended.stderr.contains('\x1b'), format_args!("{reply:?}: {:?}", ended.stderr))?;
    }
    // Nobody listens.
    let ended = agent(test, &["--push", "http://127.0.0.1:9"], "shares", "1200").run()?.succeeded()?;
    expect_contains("what is said", &ended.stderr, "127.0.0.1:9")
}

fn whole_machine(test: &Context<'_>) -> Verdict {
    need_root()?;
    let folder = test.path("profiles");
    let to = folder.display().to_string();
    let running = test.nyquist(&["agent", "-a", "--rate", "99", "--every", "1", "--to", &to]).start()?;
    let busy = test.program(test.workload("shares")).args(&["2500"]).env("OTEL_SERVICE_NAME", "shop");
    busy.run()?.succeeded()?;
    running.wait_until("three files", || tables(&folder).len() > 2)?;
    running.signal(15)?;
    let ended = running.wait()?;
    expect_eq("the status", ended.code(), 143)?;
    let rows = super::tables::query(
        test,
        &format!(
            "select sum(value) / 1e6 as ms, any_value(labels['host.name']) as host from '{to}/**/*.parquet'
             where service = 'shop' and list_contains([frame.function for frame in frames], 'alpha')"
        ),
    )?;
    expect(rows[0]["ms"].as_f64() > Some(100.0), format_args!("alpha's time: {rows:?}"))?;
    expect(reported_weight(test, &to)? > 0, "the folder has no weight")?;
    let hidden = tables(&folder).iter().any(|path| path.display().to_string().contains("/."));
    expect(!hidden, "a file is not complete")
}

/// The paths of the tables below a folder.
pub(super) fn tables(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(tables(&path));
        } else if path.extension().is_some_and(|extension| extension == "parquet") {
            found.push(path);
        }
    }
    found
}

fn configuration(test: &Context<'_>) -> Verdict {
    let (first, second) = (takes_all()?, takes_all()?);
    let file = test.path("agent.toml");
    let write = |url: &str| {
        fs::write(&file, format!("push = \"{url}\"\nevery = 1\nrate = 200\n[label]\nenv = \"test\"\n"))
    };
    write(&first.url)?;
    let shared = file.display().to_string();
    let checked = test.nyquist(&["agent", "--config", &shared, "--check", "-a"]).run()?.succeeded()?;
    let text = checked.stdout_text();
    for part in ["the whole machine", "200 times", "push.v1", "env=test"] {
        expect_contains("what --check says", &text, part)?;
    }
    // Free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let metrics = port.to_string();
    let args = ["agent", "--config", &shared, "--metrics", &metrics, "--"];
    let call = test.nyquist(&args).path(&test.workload("shares")).args(&["60000"]);
    let running = call.start()?;
    running.wait_until("a request", || !first.posted().is_empty())?;
    fs::write(&file, "push = 7z")?;
    running.signal(1)?;
    running.wait_until("a refusal", || running.stderr_so_far().contains("nothing is changed"))?;
    write(&second.url)?;
    running.signal(1)?;
    running.wait_until("a request to the other", || !second.posted().is_empty())?;
    let client = Client::new(port);
    expect_eq("the status of /healthz", client.get("/healthz")?.status, 200)?;
    expect_contains("/metrics", &client.get("/metrics")?.text(), "nyquist_agent_profiles_lost_total 0\n")?;
    expect_eq("another host's status", client.as_host("evil.example").get("/metrics")?.status, 403)?;
    running.signal(15)?;
    expect_eq("the status", running.wait()?.code(), 143)
}
