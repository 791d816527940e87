//! `nyquist agent` when something fails beside it: servers, disks, clocks, and the machine itself.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::agent::{agent, decoded, tables};
use super::context::Context;
use super::expect::{Verdict, expect, expect_contains, expect_eq, need_root, skip};
use super::formats::reported_weight;
use super::invocation::Running;
use super::output_files::TinyDisk;
use super::receiver::{Receiver, Reply};
use super::test::Test;

pub(super) const TESTS: &[Test] = &[
    Test::new("agent_loses_nothing_while_a_server_is_gone", server_is_gone),
    Test::new("agent_keeps_what_waits_when_it_reads_again", reads_again),
    Test::new("agent_goes_on_after_a_full_disk", full_disk),
    Test::new("agent_that_is_killed_leaves_whole_files", killed),
    Test::new("agent_follows_a_clock_that_is_set", clock_is_set),
    Test::new("agent_bears_thousands_of_processes", thousands).exclusive("starts thousands of processes"),
    Test::new("agent_sends_by_tls_with_certificates", certificates),
    Test::new("agent_sends_through_a_proxy", proxy),
];

/// The memory that the agent may have, in kilobytes.
const MAX_MEMORY_KB: u64 = 250 << 10;

/// A server that closes connections until it is told to take what comes.
fn gone_server() -> Result<(Receiver, Arc<AtomicBool>), anyhow::Error> {
    let is_there = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&is_there);
    let reply = move |_: usize, _: &str| {
        if asked.load(Ordering::Relaxed) { Reply::Status(200, "") } else { Reply::Close }
    };
    Ok((Receiver::start(reply)?, is_there))
}

fn server_is_gone(test: &Context<'_>) -> Verdict {
    let (receiver, is_there) = gone_server()?;
    let push = format!("otlp+{}", receiver.url);
    let running = agent(test, &["--push", &push], "shares", "60000").start()?;
    running.wait_until("three tries", || receiver.posted().len() > 2)?;
    is_there.store(true, Ordering::Relaxed);
    let tries = receiver.posted().len();
    running.wait_until("what has waited", || receiver.posted().len() > tries + 3)?;
    ended_without_loss(running)?;
    // Each window follows the one before it.
    let mut profiles = decoded(test, &receiver)?;
    profiles.sort_by_key(|profile| profile["start"].as_u64());
    profiles.dedup_by_key(|profile| profile["start"].as_u64());
    for pair in profiles.windows(2) {
        let at = |index: usize, key: &str| pair[index][key].as_u64().unwrap_or_default();
        let gap = at(1, "start").abs_diff(at(0, "start") + at(0, "duration"));
        expect(gap < 20_000_000, format_args!("{gap} ns between two profiles"))?;
    }
    Ok(())
}

fn ended_without_loss(running: Running<'_>) -> Verdict {
    running.signal(libc::SIGTERM)?;
    let ended = running.wait()?;
    expect_eq("the status", ended.code(), 143)?;
    expect_contains("what is said", &ended.stderr, " 0 lost")
}

fn reads_again(test: &Context<'_>) -> Verdict {
    let (receiver, is_there) = gone_server()?;
    let running = agent(test, &["--push", &receiver.url], "shares", "60000").start()?;
    running.wait_until("a try", || !receiver.posted().is_empty())?;
    running.signal(libc::SIGHUP)?;
    running.wait_until("that it reads again", || running.stderr_so_far().contains("read again"))?;
    is_there.store(true, Ordering::Relaxed);
    let tries = receiver.posted().len();
    running.wait_until("what has waited", || receiver.posted().len() > tries + 2)?;
    ended_without_loss(running)
}

fn full_disk(test: &Context<'_>) -> Verdict {
    need_root()?;
    let Some(disk) = TinyDisk::mount(test.path("tiny"))? else { return skip("cannot mount a tmpfs here") };
    let filler = disk.0.join("filler");
    fs::write(&filler, vec![0; 52 << 10])?;
    let folder = disk.0.join("profiles");
    let running = agent(test, &["--to", &folder.display().to_string()], "shares", "60000").start()?;
    running.wait_until("a failure", || running.stderr_so_far().contains("no space"))?;
    let written = tables(&folder).len();
    fs::remove_file(&filler)?;
    running.wait_until("files", || tables(&folder).len() > written + 1)?;
    running.signal(libc::SIGTERM)?;
    let ended = running.wait()?;
    expect_eq("the status", ended.code(), 143)?;
    expect(!ended.stderr.contains(" 0 lost"), format_args!("no loss is counted: {}", ended.stderr))?;
    expect(reported_weight(test, &folder.display().to_string())? > 0, "the folder has no weight")
}

fn killed(test: &Context<'_>) -> Verdict {
    let folder = test.path("profiles");
    let to = folder.display().to_string();
    for _ in 0..2 {
        let before = tables(&folder).len();
        let running = agent(test, &["--to", &to], "shares", "60000").start()?;
        running.wait_until("two files", || tables(&folder).len() > before + 1)?;
        running.signal(libc::SIGKILL)?;
        running.wait()?;
        // The command has lost its recorder, and works on.
        test.kill_all();
    }
    expect(reported_weight(test, &to)? > 0, "the folder has no weight")?;
    let rows = super::tables::query(
        test,
        &format!(
            "select count(distinct filename) as files from read_parquet('{to}/**/*.parquet', filename = true)"
        ),
    )?;
    expect_eq("the files that DuckDB reads", rows[0]["files"].as_u64(), Some(tables(&folder).len() as u64))
}

fn clock_is_set(test: &Context<'_>) -> Verdict {
    let receiver = Receiver::start(|_, _| Reply::Status(200, ""))?;
    let push = format!("otlp+{}", receiver.url);
    let offset = test.path("offset");
    let call = agent(test, &["--push", &push], "shares", "60000");
    let call = call.env("CLOCK_OFFSET", offset.display().to_string());
    let running = call.env("LD_PRELOAD", test.workload("libother_clock.so").display().to_string()).start()?;
    for seconds in ["0", "1800", "-1800"] {
        fs::write(&offset, seconds)?;
        let before = receiver.posted().len();
        running.wait_until("profiles", || receiver.posted().len() > before + 2)?;
    }
    ended_without_loss(running)?;
    let profiles = decoded(test, &receiver)?;
    let starts: Vec<_> = profiles.iter().filter_map(|profile| profile["start"].as_u64()).collect();
    let (first, last) = (starts.iter().min().copied(), starts.iter().max().copied());
    let range = last.unwrap_or_default().saturating_sub(first.unwrap_or_default());
    expect(range > 3_500_000_000_000, format_args!("the clock was not set: {starts:?}"))?;
    for profile in &profiles {
        let duration = profile["duration"].as_u64().unwrap_or_default();
        expect(duration < 10_000_000_000, format_args!("a window of {duration} ns"))?;
    }
    Ok(())
}

/// A storm of short processes beside two thousand that wait.
fn thousands(test: &Context<'_>) -> Verdict {
    need_root()?;
    let ready = test.path("ready");
    let script = format!(
        "i=0; while [ $i -lt 2000 ]; do sleep 600 & i=$((i+1)); done; touch {}; wait",
        ready.display()
    );
    let sleepers = test.program("sh").args(&["-c", &script]).start()?;
    sleepers.wait_for_file(&ready)?;
    let receiver = Receiver::start(|_, _| Reply::Status(200, ""))?;
    let args = ["agent", "-a", "--every", "1", "--push", &receiver.url];
    let running = test.nyquist(&args).start()?;
    running.wait_until("a profile", || !receiver.posted().is_empty())?;
    let storm = test.program(test.workload("storm")).args(&["fork", "2000"]).start()?;
    let mut most = 0;
    let before = receiver.posted().len();
    running.wait_until("profiles of the storm", || {
        most = most.max(memory_kb(running.pid()));
        receiver.posted().len() > before + 20
    })?;
    storm.wait()?.succeeded()?;
    let ended = ended_without_loss(running);
    test.kill_all();
    ended?;
    expect((1..MAX_MEMORY_KB).contains(&most), format_args!("{most} kB of memory"))
}

/// The private memory of a process.
fn memory_kb(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok()).unwrap_or(0)
}

/// Makes an authority, and a certificate of a server and of a client.
const MAKE_CERTIFICATES: &str = "set -e
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 9 -subj /CN=authority -keyout ca.key -out ca.pem
printf 'subjectAltName=IP:127.0.0.1\\nbasicConstraints=CA:FALSE\\n' > extensions
for name in server client; do
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=$name -keyout $name.key -out $name.csr
    openssl x509 -req -in $name.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 9 -extfile extensions -out $name.pem
done";

/// A server that asks for a client's certificate, and prints the name in it for each request.
const TLS_SERVER: &str = "import http.server, ssl
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers['Content-Length']))
        subject = dict(pair[0] for pair in self.connection.getpeercert()['subject'])
        print(subject['commonName'], self.path, flush=True)
        self.send_response(200)
        self.send_header('Content-Length', '0')
        self.end_headers()
    def log_message(self, *rest):
        pass
server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain('server.pem', 'server.key')
context.load_verify_locations('ca.pem')
context.verify_mode = ssl.CERT_REQUIRED
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_port, flush=True)
server.serve_forever()";

fn certificates(test: &Context<'_>) -> Verdict {
    let Ok(made) = test.program("sh").args(&["-c", MAKE_CERTIFICATES]).run() else { return skip("no shell") };
    if made.code() != 0 {
        return skip("openssl is not installed");
    }
    let Ok(server) = test.program("python3").args(&["-c", TLS_SERVER]).start() else {
        return skip("no python3");
    };
    server.wait_until("its port", || server.stdout_so_far().contains('\n'))?;
    let push = format!("https://127.0.0.1:{}", server.stdout_so_far().trim());
    let (authority, own) =
        (["--ca-file", "ca.pem"], ["--client-certificate", "client.pem", "--client-key", "client.key"]);
    let run = |options: &[&str]| {
        let options: Vec<_> = ["--push", &push].into_iter().chain(options.iter().copied()).collect();
        agent(test, &options, "shares", "1200").run()
    };
    for options in [&authority[..], &own[..]] {
        let ended = run(options)?.succeeded()?;
        expect(!ended.stderr.contains(" 0 lost"), format_args!("{options:?} are enough: {}", ended.stderr))?;
    }
    expect_eq("requests without a certificate", server.stdout_so_far().lines().count(), 1)?;
    let ended = run(&[&authority[..], &own[..]].concat())?.succeeded()?;
    expect_contains("what is said", &ended.stderr, " 0 lost")?;
    expect_contains("the requests", &server.stdout_so_far(), "client /push.v1.PusherService/Push")?;
    test.kill_all();
    Ok(())
}

fn proxy(test: &Context<'_>) -> Verdict {
    let receiver = Receiver::start(|_, _| Reply::Status(200, ""))?;
    let push = ["--push", "http://pyroscope.invalid:4040"];
    let call = agent(test, &push, "shares", "1200").env("http_proxy", receiver.url.clone());
    let ended = call.env("no_proxy", "").run()?.succeeded()?;
    expect_contains("what is said", &ended.stderr, " 0 lost")?;
    let paths: Vec<_> = receiver.posted().iter().map(|posted| posted.path.clone()).collect();
    let by_proxy = paths.iter().any(|path| path.contains("pyroscope.invalid:4040"));
    expect(by_proxy, format_args!("no request to the proxy names the server: {paths:?}"))
}
