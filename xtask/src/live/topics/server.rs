//! `nyquist load` over real HTTP: the profile, the symbol server's API, and that others have no access.

use serde_json::{Value, json};

use super::browser;
use super::context::Context;
use super::expect::{Stop, Verdict, expect, expect_contains, expect_eq, expect_measured, need_root};
use super::http::{Answer, Client};
use super::invocation::Running;
use super::profile::{Frame, Profile};
use super::recorded::Recorded;
use super::test::Test;

pub(super) const TESTS: &[Test] = &[
    Test::new("load_serves_the_profile_to_the_front_end", profile_served).quick(),
    Test::new("addresses_are_symbolicated", symbolicate),
    Test::new("a_bare_symbolication_job_is_answered_too", bare_job),
    Test::new("only_source_files_of_the_profile_are_served", source),
    Test::new("assembly_is_served", assembly),
    Test::new("without_the_token_nothing_is_revealed", no_token).quick(),
    Test::new("another_host_name_is_refused", wrong_host).quick(),
    Test::new("the_hosts_port_does_not_matter", forwarded_port),
    Test::new("a_preflight_is_answered", preflight),
    Test::new("nonsense_gets_a_json_error_and_ends_nothing", nonsense),
    Test::new("a_port_that_is_taken_is_left_alone", taken_port),
    Test::new("profiler_url_names_another_front_end", other_front_end),
    Test::new("a_browsers_link_is_good_once_for_its_user", browser_link),
    Test::new("silent_connections_do_not_block_the_server", silent_connections),
    Test::new("another_users_connections_close_none_of_ours", flood_of_another_user),
    Test::new("a_source_that_only_the_profile_names", claimed_source),
    Test::new("record_in_a_pipe_saves_and_ends", record_in_a_pipe),
    Test::new("record_serves_if_requested", record_serves),
];

/// A running server with a recording of `shares`.
struct RecordingServer<'a> {
    recorded: Recorded,
    running: Running<'a>,
    client: Client,
    /// The path of the profile.
    profile: String,
    /// The path of the symbol server, without a slash at its end.
    base: String,
    /// The whole link.
    link: String,
}

fn serve<'a>(test: &'a Context<'a>) -> Result<RecordingServer<'a>, Stop> {
    serve_with(test, |call| call)
}

fn serve_with<'a>(
    test: &'a Context<'a>,
    adapt: impl FnOnce(super::invocation::Invocation<'a>) -> super::invocation::Invocation<'a>,
) -> Result<RecordingServer<'a>, Stop> {
    let recorded = test.record(&["shares", "100"]).run_well()?;
    let call = test.nyquist(&["load", "--no-open"]).path(&recorded.path);
    let running = adapt(call).start()?;
    let link = link_of(&running)?;
    let (port, profile, base) = parts_of(&link)?;
    Ok(RecordingServer { recorded, running, client: Client::new(port), profile, base, link })
}

/// Waits for the link that the server prints.
pub(super) fn link_of(running: &Running<'_>) -> Result<String, anyhow::Error> {
    let find = || {
        let text = running.stdout_so_far() + &running.stderr_so_far();
        let complete = text.rfind('\n').map_or("", |end| &text[..end]);
        complete.split_whitespace().find(|word| word.contains("/from-url/")).map(str::to_owned)
    };
    running.wait_until("the link to be printed", || find().is_some())?;
    find().ok_or_else(|| anyhow::anyhow!("the link vanished"))
}

/// The URLs of the profile and of the symbol server in a link.
pub(super) fn urls_of(link: &str) -> Result<(String, String), anyhow::Error> {
    let wrong = || anyhow::anyhow!("not a link to a profile and a symbol server: {link}");
    let (_, rest) = link.split_once("/from-url/").ok_or_else(wrong)?;
    let (profile, rest) = rest.split_once('/').ok_or_else(wrong)?;
    let (_, server) = rest.split_once("symbolServer=").ok_or_else(wrong)?;
    Ok((decode(profile), decode(server)))
}

/// The port, the path of the profile and the path of the symbol server in a link.
pub(super) fn parts_of(link: &str) -> Result<(u16, String, String), anyhow::Error> {
    let wrong = || anyhow::anyhow!("not a link to a server on 127.0.0.1: {link}");
    let (profile, server) = urls_of(link)?;
    let split = |url: &str| -> Option<(String, String)> {
        let (authority, path) = url.strip_prefix("http://")?.split_once('/')?;
        Some((authority.to_owned(), format!("/{}", path.trim_end_matches('/'))))
    };
    // The stored file, with its counters.
    let profile = profile.split('?').next().unwrap_or_default();
    let ((authority, profile), (_, base)) =
        (split(profile).ok_or_else(wrong)?, split(&server).ok_or_else(wrong)?);
    let port = authority.strip_prefix("127.0.0.1:").ok_or_else(wrong)?.parse()?;
    Ok((port, profile, base))
}

fn decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let code = (*first == b'%').then(|| tail.get(..2)).flatten();
        let code = code.and_then(|code| u8::from_str_radix(std::str::from_utf8(code).ok()?, 16).ok());
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

impl RecordingServer<'_> {
    fn post(&self, endpoint: &str, body: &Value) -> Result<Answer, anyhow::Error> {
        self.client.post(&format!("{}/{endpoint}", self.base), &body.to_string())
    }

    /// The symbolication key of a lib.
    fn key(&self, lib: &str) -> Result<(String, String), anyhow::Error> {
        let lib = self.recorded.profile.lib(lib)?;
        let text = |name: &str| lib[name].as_str().unwrap_or_default().to_owned();
        Ok((text("debugName"), text("breakpadId")))
    }

    /// A frame of alpha itself, whose address was really executed.
    fn alpha(&self) -> Result<Frame, anyhow::Error> {
        let frame = self.recorded.profile.frame_of(|frame| frame.function == "alpha" && frame.address > 0);
        frame.ok_or_else(|| anyhow::anyhow!("no frame of alpha has an address"))
    }

    /// Checks that the server still answers, and ends it.
    fn expect_alive(self) -> Verdict {
        expect_eq("the profile's status afterwards", self.client.get(&self.profile)?.status, 200)?;
        self.running.signal(libc::SIGINT)?;
        let finished = self.running.wait()?;
        expect_eq("the server's status after Ctrl-C", finished.code(), 0)
    }
}

fn expect_refused(what: &str, answer: &Answer, token: &str) -> Verdict {
    let refused = answer.status == 403 || answer.status == 404;
    expect(refused, format_args!("{what}: status {}", answer.status))?;
    let whole = format!("{:?} {}", answer.headers, answer.text());
    expect(!whole.contains(token), format_args!("{what}: the answer reveals the token: {whole}"))
}

fn profile_served(test: &Context<'_>) -> Verdict {
    let served = serve(test)?;
    expect(
        served.link.starts_with("https://profiler.firefox.com/from-url/"),
        format_args!("{}", served.link),
    )?;
    let answer = served.client.get(&served.profile)?;
    expect_eq("the status", answer.status, 200)?;
    expect_eq("Access-Control-Allow-Origin", answer.header("access-control-allow-origin").is_some(), true)?;
    // The body is either the gzip data itself, or JSON that HTTP has compressed.
    let profile = Profile::decode(answer.body.as_slice())?;
    expect_eq("samples", profile.count() as u64, served.recorded.profile.count() as u64)?;
    served.expect_alive()
}

fn expect_alpha(symbol: &Value) -> Verdict {
    expect_eq("function", symbol["function"].as_str(), Some("alpha"))?;
    expect_contains("file", symbol["file"].as_str().unwrap_or_default(), "shares.c")?;
    expect(symbol["line"].as_u64().is_some_and(|line| line > 0), "there is no line")?;
    expect_contains("function_offset", symbol["function_offset"].as_str().unwrap_or_default(), "0x")?;
    let nulls = symbol.as_object().into_iter().flatten().filter(|(_, value)| value.is_null()).count();
    expect_eq("explicit nulls, which make the front end reject the answer", nulls, 0)
}

fn symbolicate(test: &Context<'_>) -> Verdict {
    let served = serve(test)?;
    let ((name, id), frame) = (served.key("shares")?, served.alpha()?);
    let job = json!({"memoryMap": [[name, id], ["nothing", "000000000000000000000000000000000"]],
        "stacks": [[[0, frame.address], [1, 16]]]});
    let answer = served.post("symbolicate/v5", &json!({"jobs": [job]}))?;
    expect_eq("the status", answer.status, 200)?;
    let result = answer.json()?["results"][0].take();
    expect_alpha(&result["stacks"][0][0])?;
    expect_eq("module", result["stacks"][0][0]["module"].as_str(), Some(name.as_str()))?;
    let offset = format!("{:#x}", frame.address);
    expect_eq("module_offset", result["stacks"][0][0]["module_offset"].as_str(), Some(offset.as_str()))?;
    expect_eq("found", result["found_modules"][format!("{name}/{id}")].as_bool(), Some(true))?;
    let unknown = result["found_modules"]["nothing/000000000000000000000000000000000"].as_bool();
    expect_eq("found, of a lib that is not there", unknown, Some(false))?;
    served.expect_alive()
}

fn bare_job(test: &Context<'_>) -> Verdict {
    let served = serve(test)?;
    let ((name, id), frame) = (served.key("shares")?, served.alpha()?);
    let job = json!({"memoryMap": [[name, id]], "stacks": [[[0, frame.address]]]});
    let answer = served.post("symbolicate/v5", &job)?;
    expect_eq("the status", answer.status, 200)?;
    let json = answer.json()?;
    let symbol = json.pointer("/results/0/stacks/0/0").or_else(|| json.pointer("/stacks/0/0"));
    expect_alpha(symbol.unwrap_or(&Value::Null))
}

fn source(test: &Context<'_>) -> Verdict {
    let served = serve(test)?;
    let ((name, id), frame) = (served.key("shares")?, served.alpha()?);
    let file = frame.file.ok_or_else(|| anyhow::anyhow!("alpha has no file"))?;
    let ask = |file: &str| {
        served.post(
            "source/v1",
            &json!({"debugName": name, "debugId": id,
            "moduleOffset": format!("{:#x}", frame.address), "file": file}),
        )
    };
    let answer = ask(&file)?;
    expect_eq("the status", answer.status, 200)?;
    let text = std::fs::read_to_string(crate::paths::root().join("workloads/shares.c"))?;
    expect_eq("the source", answer.json()?["source"].as_str(), Some(text.as_str()))?;
    for other in ["/etc/passwd", "/proc/self/environ", "../../../../etc/passwd"] {
        let answer = ask(other)?;
        let text = answer.text();
        expect(!text.contains("root:") && !text.contains("PATH="), format_args!("{other} was served"))?;
        expect(answer.json()?["error"].is_string(), format_args!("{other}: no error, but {text}"))?;
    }
    served.expect_alive()
}

fn assembly(test: &Context<'_>) -> Verdict {
    let served = serve(test)?;
    let ((name, id), frame) = (served.key("shares")?, served.alpha()?);
    let lib = served.recorded.profile.lib("shares")?;
    let question = json!({"name": lib["name"], "codeId": lib["codeId"], "debugName": name, "debugId": id,
        "startAddress": format!("{:#x}", frame.address), "size": "0x10", "continueUntilFunctionEnd": true});
    let answer = served.post("asm/v1", &question)?;
    expect_eq("the status", answer.status, 200)?;
    let json = answer.json()?;
    expect_eq("arch", json["arch"].as_str(), Some("x86_64"))?;
    expect_eq("startAddress", json["startAddress"].as_str(), Some(format!("{:#x}", frame.address).as_str()))?;
    let instructions = json["instructions"].as_array().cloned().unwrap_or_default();
    let jump = |line: &Value| line[1].as_str().is_some_and(|text| text.starts_with('j'));
    expect(instructions.iter().any(jump), format_args!("a loop without a jump: {instructions:?}"))?;
    let offsets: Vec<u64> = instructions.iter().filter_map(|line| line[0].as_u64()).collect();
    expect(offsets.first() == Some(&0) && offsets.is_sorted(), format_args!("offsets: {offsets:?}"))?;
    served.expect_alive()
}

/// The token, which is the first part of the paths.
fn token_of(served: &RecordingServer<'_>) -> String {
    served.base.trim_start_matches('/').split('/').next().unwrap_or_default().to_owned()
}

fn no_token(test: &Context<'_>) -> Verdict {
    let served = serve(test)?;
    let token = token_of(&served);
    expect(token.len() >= 16, format_args!("{token:?} is not a random token"))?;
    let without = served.profile.replacen(&format!("/{token}"), "", 1);
    let mut wrong = token.clone();
    wrong.replace_range(..1, if token.starts_with('0') { "1" } else { "0" });
    let wrong = served.profile.replacen(&token, &wrong, 1);
    for path in [
        "/",
        "/index.html",
        "/favicon.ico",
        "/profile.json",
        &without,
        &wrong,
        "/symbolicate/v5",
        "//",
        "/..",
    ] {
        expect_refused(path, &served.client.get(path)?, &token)?;
    }
    for endpoint in ["/symbolicate/v5", "/source/v1", "/asm/v1"] {
        expect_refused(endpoint, &served.client.post(endpoint, "{}")?, &token)?;
    }
    served.expect_alive()
}

fn wrong_host(test: &Context<'_>) -> Verdict {
    let served = serve(test)?;
    let token = token_of(&served);
    for host in ["attacker.example", "attacker.example:3000", "127.0.0.1.attacker.example", ""] {
        let stranger = served.client.as_host(host);
        expect_refused(host, &stranger.get(&served.profile)?, &token)?;
        expect_refused(host, &stranger.post(&format!("{}/symbolicate/v5", served.base), "{}")?, &token)?;
    }
    served.expect_alive()
}

fn forwarded_port(test: &Context<'_>) -> Verdict {
    let served = serve(test)?;
    for host in ["127.0.0.1:9999", "localhost:4000", "localhost", "127.0.0.1"] {
        let answer = served.client.as_host(host).get(&served.profile)?;
        expect_eq(&format!("the status for Host: {host}"), answer.status, 200)?;
    }
    served.expect_alive()
}

fn preflight(test: &Context<'_>) -> Verdict {
    let served = serve(test)?;
    let headers = [
        ("Origin", "https://profiler.firefox.com"),
        ("Access-Control-Request-Method", "POST"),
        ("Access-Control-Request-Headers", "user-agent"),
    ];
    let answer =
        served.client.request("OPTIONS", &format!("{}/symbolicate/v5", served.base), &headers, "")?;
    expect(matches!(answer.status, 200 | 204), format_args!("the status is {}", answer.status))?;
    let allowed = answer.header("access-control-allow-headers").unwrap_or_default().to_lowercase();
    expect(allowed == "*" || allowed.contains("user-agent"), format_args!("allowed headers: {allowed:?}"))?;
    expect(answer.header("access-control-allow-origin").is_some(), "no origin is allowed")?;
    served.expect_alive()
}

fn nonsense(test: &Context<'_>) -> Verdict {
    let served = serve(test)?;
    for endpoint in ["symbolicate/v5", "source/v1", "asm/v1"] {
        for body in [
            "",
            "{",
            "[]",
            "null",
            "{\"jobs\":7}",
            "{\"jobs\":[{\"memoryMap\":[],\"stacks\":[[[9,1]]]}]}",
            "{\"startAddress\":\"0xffffffffffffffff\",\"size\":\"0xffffffffffffffff\"}",
            "\u{0}\u{1}",
        ] {
            let answer = served.client.post(&format!("{}/{endpoint}", served.base), body)?;
            let what = format!("{endpoint} of {body:?}");
            let json = answer.json().map_err(|error| anyhow::anyhow!("{what}: {error}"))?;
            let is_answered = json["error"].is_string() || json["results"].is_array();
            expect(is_answered, format_args!("{what}: status {}, {json}", answer.status))?;
        }
    }
    for request in ["GARBAGE\r\n\r\n", "GET\r\n\r\n", "POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n"] {
        // Any answer or none is accepted. The server must only survive.
        drop(served.client.raw(request.as_bytes()));
    }
    served.expect_alive()
}

fn taken_port(test: &Context<'_>) -> Verdict {
    let (first, second) = (serve(test)?, serve(test)?);
    expect(first.client.port != second.client.port, "two servers have one port")?;
    let taken = first.client.port.to_string();
    let call = test.nyquist(&["load", "--no-open", "--port", &taken]).path(&first.recorded.path);
    let refused = call.run()?;
    expect(!refused.status.success(), "a port that is taken was accepted")?;
    expect_contains("stderr", &refused.stderr, &taken)?;
    first.expect_alive()?;
    second.expect_alive()
}

fn other_front_end(test: &Context<'_>) -> Verdict {
    let served = serve_with(test, |call| call.env("PROFILER_URL", "http://front.example:4242"))?;
    expect(served.link.starts_with("http://front.example:4242/from-url/"), format_args!("{}", served.link))?;
    served.expect_alive()
}

/// The address in the browser's arguments does not contain the token. Another user cannot use it, and it
/// works only once.
fn browser_link(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["shares", "50"]).run_well()?;
    let (browser, opened) = browser::stand_in(test, "link")?;
    let call = test.nyquist(&["load", "--ui", "firefox"]).path(&recorded.path);
    let running = call.env("BROWSER", browser.display().to_string()).start()?;
    let link = link_of(&running)?;
    running.wait_until("the browser to be opened", || opened.exists())?;
    let argument = std::fs::read_to_string(&opened)?.trim().to_owned();
    let (port, _, base) = parts_of(&link)?;
    let token = base.trim_start_matches('/');
    expect(!argument.contains(token), format_args!("the token is in the arguments: {argument}"))?;
    let path = argument.strip_prefix(&format!("http://127.0.0.1:{port}"));
    let path = path.ok_or_else(|| anyhow::anyhow!("{argument} is not this server's"))?;
    if crate::sys::is_root() {
        let script = "exec 3<>/dev/tcp/127.0.0.1/$1; \
            printf 'GET %s HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\nConnection: close\\r\\n\\r\\n' \"$2\" >&3; cat <&3";
        let other = test.program("bash").args(&["-c", script, "bash", &port.to_string(), path]);
        let output = other.by_plain_user().run()?.succeeded()?.stdout_text();
        expect(output.starts_with("HTTP/1.1 403 "), format_args!("another user gets {output}"))?;
        expect(!output.contains(token), format_args!("another user gets the token: {output}"))?;
    }
    let client = Client::new(port);
    let answer = client.get(path)?;
    expect_eq("the status", answer.status, 302)?;
    expect_eq("where it leads", answer.header("location"), Some(link.as_str()))?;
    expect_eq("the status of the second use", client.get(path)?.status, 410)?;
    running.signal(libc::SIGINT)?;
    expect_eq("the status at the end", running.wait()?.code(), 0)
}

/// More connections than a server accepts at once, on which nothing is sent.
fn silent_connections(test: &Context<'_>) -> Verdict {
    let served = serve(test)?;
    let connect = |_| std::net::TcpStream::connect(("127.0.0.1", served.client.port));
    let silent: Vec<_> = (0..300).map(connect).collect::<Result<_, _>>()?;
    expect_eq("the profile's status", served.client.get(&served.profile)?.status, 200)?;
    drop(silent);
    served.expect_alive()
}

/// Another user makes more connections than there are places. Meanwhile, an older connection of our own has
/// not sent its request yet.
fn flood_of_another_user(test: &Context<'_>) -> Verdict {
    need_root()?;
    let served = serve(test)?;
    let connection = served.client.connect()?;
    let script =
        "for i in $(seq 400); do exec {fd}<>/dev/tcp/127.0.0.1/$1 || exit 1; done; echo all made; sleep 60";
    let port = served.client.port.to_string();
    let flood = test.program("bash").args(&["-c", script, "bash", &port]).by_plain_user().start()?;
    flood.wait_until("the connections to be made", || flood.stdout_so_far().contains("all made"))?;
    let answer = served.client.get_on(connection, &served.profile)?;
    expect_eq("the profile's status", answer.status, 200)?;
    flood.signal(libc::SIGTERM)?;
    served.expect_alive()
}

/// A hostile profile that names another file as a source.
fn claimed_source(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["shares", "200"]).run_well()?;
    let file = recorded.profile.frame_of(|frame| frame.function == "alpha").and_then(|frame| frame.file);
    let file = file.ok_or_else(|| anyhow::anyhow!("alpha has no file"))?;
    let (folder, claimed) = (test.path("elsewhere"), test.path("changed.json"));
    std::fs::create_dir(&folder)?;
    let secret = folder.join("secret");
    std::fs::write(&secret, "the secret line\n".repeat(100))?;
    let plain = test.program("gzip").args(&["-dc"]).path(&recorded.path).run()?.succeeded()?.stdout_text();
    let changed = plain.replace(&format!("\"{file}\""), &format!("\"{}\"", secret.display()));
    expect(changed != plain, format_args!("{file} is not in the profile"))?;
    std::fs::write(&claimed, changed)?;
    let annotate = |options: &[&str]| -> Result<String, anyhow::Error> {
        let call = test.nyquist(&["annotate", "alpha", "--source"]).args(options).path(&claimed);
        Ok(call.run()?.succeeded()?.stdout_text())
    };
    let refused = annotate(&[])?;
    expect(!refused.contains("secret line"), format_args!("it is shown:\n{refused}"))?;
    let note = format!("no source of {}: no debug info on this machine names it", secret.display());
    expect_contains("the note", &refused, &note)?;
    expect_contains("what helps", &refused, "--source-dir DIR")?;
    let own = folder.display().to_string();
    expect_contains("of an allowed folder", &annotate(&["--source-dir", &own])?, "the secret line")?;
    let map = format!("{own}={own}");
    expect_contains("of a folder that is mapped", &annotate(&["--source-map", &map])?, "the secret line")
}

fn record_in_a_pipe(test: &Context<'_>) -> Verdict {
    let output = test.path("piped.json.gz");
    let call = test
        .nyquist(&["record", "-o"])
        .path(&output)
        .args(&["--"])
        .path(&test.workload("shares"))
        .args(&["50"]);
    call.run()?.succeeded()?;
    expect_measured(Profile::read(&output)?.total() > 10.0, "there are hardly any samples")
}

fn record_serves(test: &Context<'_>) -> Verdict {
    let output = test.path("served.json.gz");
    let call = test.nyquist(&["record", "--serve", "--no-open", "-o"]).path(&output);
    let running = call.args(&["--"]).path(&test.workload("ending")).args(&["50", "exit", "5"]).start()?;
    let (port, profile, _) = parts_of(&link_of(&running)?)?;
    expect_eq("the status of the profile", Client::new(port).get(&profile)?.status, 200)?;
    expect(output.exists(), "the profile is served and not saved")?;
    running.signal(libc::SIGINT)?;
    expect_eq("the status, the command's own", running.wait()?.code(), 5)
}
