//! `nyquist agent`: what it records of which processes, and with which labels.

use std::path::Path;

use serde_json::Value;

use super::agent::{agent, decoded, tables};
use super::by::refused;
use super::context::Context;
use super::control_groups::Group;
use super::expect::{Stop, Verdict, expect, expect_contains, expect_eq, expect_measured, need_root};
use super::invocation::Running;
use super::receiver::{Receiver, Reply};
use super::running_targets::{end, working};
use super::test::Test;

pub(super) const TESTS: &[Test] = &[
    Test::new("agent_counts_events_beside_samples", events),
    Test::new("agent_sends_each_event_as_its_own_type", event_types),
    Test::new("agent_records_a_unit_and_nothing_else", unit),
    Test::new("agent_records_running_processes", running_processes),
    Test::new("agent_works_where_perf_is_refused", by_ptrace),
    Test::new("agent_shows_the_token_of_a_file", token),
    Test::new("agent_leaves_labels_out_by_rule", labels),
];

/// What a table has of a kind: the sum of its values, and how many files it is in.
fn of_kind(test: &Context<'_>, folder: &Path, kind: &str) -> Result<(f64, u64), Stop> {
    let files = format!("{}/**/*.parquet", folder.display());
    let rows = super::tables::query(
        test,
        &format!(
            "select coalesce(sum(value), 0)::double as sum, count(distinct filename) as files
             from read_parquet('{files}', filename = true) where kind = '{kind}'"
        ),
    )?;
    Ok((rows[0]["sum"].as_f64().unwrap_or_default(), rows[0]["files"].as_u64().unwrap_or_default()))
}

/// The services that have values, and the functions of each.
fn functions(test: &Context<'_>, folder: &Path) -> Result<Vec<Value>, Stop> {
    let files = format!("{}/**/*.parquet", folder.display());
    super::tables::query(
        test,
        &format!(
            "select service, pid, any_value(labels['systemd.unit']) as unit, sum(value)::double / 1e6 as ms,
             bool_or(contains(stack, 'alpha')) as alpha from '{files}' group by all"
        ),
    )
}

fn events(test: &Context<'_>) -> Verdict {
    let folder = test.fresh("profiles");
    let to = folder.display().to_string();
    let pages = 20_000;
    let call = test.nyquist(&["agent", "--every", "1", "-e", "page-faults", "-c", "100", "--to", &to, "--"]);
    call.path(&test.workload("occurs")).args(&["1", "1", &pages.to_string()]).run()?.succeeded()?;
    let (faults, _) = of_kind(test, &folder, "page-faults")?;
    // The program's start has some hundred more. Each sample stands for 100, and each thread has a rest.
    expect_measured(
        (f64::from(pages) * 0.98..f64::from(pages) * 1.05).contains(&faults),
        format_args!("{faults} page faults of {pages} and some"),
    )?;
    let named =
        tables(&folder).into_iter().filter(|path| path.display().to_string().contains("-page-faults"));
    expect(named.count() > 0, "no file is named after the event")?;
    let report = test.nyquist(&["report", "--event", "page-faults", &to]).run()?.succeeded()?;
    expect_contains("the report", &report.stdout_text(), "touches")?;
    let by_rate = test.nyquist(&["agent", "-e", "page-faults", "--to", &to, "--", "true"]).run()?;
    expect_contains("what is said", &by_rate.stderr, "`page-faults` needs -c N")?;
    let unknown = test.nyquist(&["agent", "-e", "no-such-event", "--to", &to, "--", "true"]).run()?;
    expect(unknown.code() != 0 && unknown.stderr.contains("no-such-event"), "an unknown event is accepted")
}

fn event_types(test: &Context<'_>) -> Verdict {
    let (otlp, pyroscope) =
        (Receiver::start(|_, _| Reply::Status(200, ""))?, Receiver::start(|_, _| Reply::Status(200, ""))?);
    let push = format!("otlp+{}", otlp.url);
    let options = ["-e", "page-faults", "-c", "1", "--push", &push, "--push", &pyroscope.url];
    agent(test, &options, "shares", "1500").run()?.succeeded()?;
    let profiles = decoded(test, &otlp)?;
    let types: std::collections::BTreeSet<_> = profiles.iter().filter_map(|it| it["type"].as_str()).collect();
    expect_eq("the types", types.into_iter().collect(), vec!["page-faults/count", "samples/count"])?;
    // A name of a series has no hyphen.
    let named = |name: &[u8]| {
        let posted = pyroscope.posted();
        posted.iter().any(|it| it.body.windows(name.len()).any(|part| part == name))
    };
    expect(named(b"process_cpu"), "no series of CPU time")?;
    expect(named(b"page_faults"), "no series of the event")
}

/// A process of the unit is recorded, and one beside it is not.
fn unit(test: &Context<'_>) -> Verdict {
    need_root()?;
    let above = Group::create("unit")?;
    let name = format!("nyquist-test-{}", std::process::id());
    let group = above.below(&format!("{name}.service"))?;
    let (inside, outside) = (working(test, &["endless", "1"])?, working(test, &["endless", "1"])?);
    group.admit(inside.pid())?;
    let folder = test.fresh("profiles");
    let to = folder.display().to_string();
    let recorder =
        test.nyquist(&["agent", "--unit", &name, "--rate", "99", "--every", "1", "--to", &to]).start()?;
    ended_after_tables(recorder, &folder)?;
    let rows = functions(test, &folder)?;
    let pid = inside.pid().to_string();
    expect(
        !rows.is_empty()
            && rows.iter().all(|row| row["pid"] == pid.as_str() && row["service"] == name.as_str()),
        format_args!("not the process {pid} of the unit {name} alone: {rows:?}"),
    )?;
    expect_eq("the label", rows[0]["unit"].as_str(), Some(&*format!("{name}.service")))?;
    [inside, outside].into_iter().try_for_each(end)?;
    let missing = test.nyquist(&["agent", "--unit", "no-such-unit", "--to", &to]).run()?;
    expect_contains(
        "what is said",
        &missing.stderr,
        "there is no control group of a unit no-such-unit.service",
    )
}

/// Ends an agent by a signal when it has written two tables.
fn ended_after_tables(recorder: Running<'_>, folder: &Path) -> Verdict {
    recorder.wait_until("two tables", || tables(folder).len() > 1)?;
    recorder.signal(libc::SIGTERM)?;
    expect_eq("the status", recorder.wait()?.code(), 143)
}

/// As a plain user. The agent ends with the process.
fn running_processes(test: &Context<'_>) -> Verdict {
    let target = test.program(test.workload("shares")).args(&["60000"]).by_plain_user().start()?;
    let folder = test.fresh("profiles");
    let to = folder.display().to_string();
    let pid = target.pid().to_string();
    let call = test.nyquist(&["agent", "-p", &pid, "--rate", "99", "--every", "1", "--to", &to]);
    let recorder = call.by_plain_user().start()?;
    recorder.wait_until("two tables", || tables(&folder).len() > 1)?;
    end(target)?;
    expect_eq("the status", recorder.wait()?.code(), 0)?;
    let rows = functions(test, &folder)?;
    expect(
        rows.len() == 1 && rows[0]["pid"] == pid.as_str() && rows[0]["alpha"] == true,
        format_args!("{rows:?}"),
    )
}

/// Waiting, which ptrace sees without being asked, is a type of its own.
fn by_ptrace(test: &Context<'_>) -> Verdict {
    let receiver = Receiver::start(|_, _| Reply::Status(200, ""))?;
    let push = format!("otlp+{}", receiver.url);
    let ended = refused(test, agent(test, &["--push", &push], "shares", "2500")).run()?.succeeded()?;
    expect_contains("what is said", &ended.stderr, " 0 lost")?;
    let profiles = decoded(test, &receiver)?;
    let of_cpu = || profiles.iter().filter(|profile| profile["type"] == "samples/count");
    expect(of_cpu().count() > 1, format_args!("{} profiles", profiles.len()))?;
    let time: u64 = of_cpu().filter_map(|it| it["sum"].as_u64()).sum::<u64>() * 5;
    super::expect::expect_within("the CPU time in ms", time as f64, 2500.0, 0.15)
}

fn token(test: &Context<'_>) -> Verdict {
    let receiver = Receiver::start(|_, _| Reply::Status(200, ""))?;
    let secret = test.path("token");
    std::fs::write(&secret, "s3cr3t\n")?;
    let secret = secret.display().to_string();
    let push = format!("otlp+{}", receiver.url);
    let ended =
        agent(test, &["--push", &push, "--auth-file", &secret, "-v"], "shares", "1200").run()?.succeeded()?;
    expect(!receiver.posted().is_empty(), "nothing was sent")?;
    for request in receiver.posted() {
        expect_eq("the authentication", request.header("authorization"), Some("Bearer s3cr3t"))?;
    }
    expect(!ended.stderr.contains("s3cr3t"), "a message shows the token")
}

fn labels(test: &Context<'_>) -> Verdict {
    let sent = |rules: &[&str]| -> Result<Vec<String>, Stop> {
        let receiver = Receiver::start(|_, _| Reply::Status(200, ""))?;
        let push = format!("otlp+{}", receiver.url);
        let all = ["--push", &push, "--label", "env=test", "--label", "team.name=a", "--label", "team.id=1"];
        agent(test, &[&all, rules].concat(), "shares", "1200").run()?.succeeded()?;
        let profiles = decoded(test, &receiver)?;
        let labels = profiles.first().and_then(|it| it["labels"].as_object());
        Ok(labels
            .into_iter()
            .flatten()
            .map(|(key, _)| key.clone())
            .filter(|key| key != "systemd.unit")
            .collect())
    };
    expect_eq(
        "all",
        sent(&[])?,
        ["env", "host.name", "service.name", "team.id", "team.name"].map(Into::into).to_vec(),
    )?;
    let some = sent(&["--drop-label", "team.*,host.name"])?;
    expect_eq("without some", some, ["env", "service.name"].map(Into::into).to_vec())?;
    let some = sent(&["--keep-label", "team.*", "--drop-label", "*.id"])?;
    expect_eq("only some", some, ["service.name", "team.name"].map(Into::into).to_vec())
}
