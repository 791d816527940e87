//! docs/agents: the calls that lead from "it is slow" and "it waits" to a line, and the server of the Model Context
//! Protocol.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::context::Context;
use super::expect::{Verdict, expect, expect_contains, expect_eq};
use super::pypi;
use super::test::Test;

pub(super) const TESTS: &[Test] = &[
    Test::new("three_calls_lead_from_a_wait_to_its_line", waits),
    Test::new("without_waits_their_option_is_named", no_waits),
    Test::new("the_official_client_gets_answers", server),
];

fn ask(test: &Context<'_>, path: &Path, args: &[&str]) -> Result<Value, anyhow::Error> {
    let finished = test.nyquist(&["query"]).path(path).args(args).args(&["--json"]).run()?.succeeded()?;
    Ok(serde_json::from_str(&finished.stdout_text())?)
}

/// The only lock of the program is waited for by `worker`.
fn waits(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["documented"]).options(&["--off-cpu"]).run_well()?;
    let summary = ask(test, &recorded.path, &[])?;
    let next = summary["next"].as_array().into_iter().flatten().filter_map(Value::as_str);
    expect(next.clone().any(|line| line.ends_with(" waits")), format_args!("no call for waits: {summary}"))?;
    let waits = ask(test, &recorded.path, &["waits"])?;
    let rows = waits["waits"].as_array().into_iter().flatten();
    let lock = rows.clone().find(|row| row["reason"] == "lock");
    let lock = lock.ok_or_else(|| anyhow::anyhow!("nobody waits for a lock: {waits}"))?;
    expect_eq("the place", lock["place"].as_str(), Some("worker"))?;
    let handle = lock["handle"].as_str().unwrap_or_default();
    let source = ask(test, &recorded.path, &["source", handle, "--off-cpu"])?;
    let text = source["lines"][0]["source"].as_str().unwrap_or_default();
    expect_contains("the line", text, "pthread_mutex_lock(&lock)")?;
    let text =
        test.nyquist(&["query"]).path(&recorded.path).args(&["waits"]).run()?.succeeded()?.stdout_text();
    expect_contains("as text", &text, "lock")?;
    for command in waits["next"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        let folder = test.nyquist_path().parent().unwrap_or(Path::new("/"));
        let line = format!("PATH='{}':$PATH; {command}", folder.display());
        test.program("sh").args(&["-c", &line]).run()?.succeeded()?;
    }
    Ok(())
}

fn no_waits(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["parts", "20", "20", "20"]).run_well()?;
    let waits = ask(test, &recorded.path, &["waits"])?;
    expect_eq("rows", waits["waits_count"].as_u64(), Some(0))?;
    expect_contains("the note", &waits["notes"].to_string(), "record --off-cpu")?;
    // Nearly all of this time is spent waiting.
    let slow = test.record_command(&["sh", "-c", "sleep 0.5"]).run_well()?;
    let summary = ask(test, &slow.path, &[])?;
    expect_contains("the note", &summary["notes"].to_string(), "record --off-cpu")
}

/// The client, in the version that is tested.
const CLIENT: pypi::Package = pypi::Package { name: "mcp", version: "2.3.0" };

const SESSION: &str = "
import asyncio, json, sys
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

async def main(server, profile, path):
    parameters = StdioServerParameters(command='python3', args=[server], env={'PATH': path})
    async with stdio_client(parameters) as (read, write), ClientSession(read, write) as session:
        name = (await session.initialize()).server_info.name
        tools = [tool.name for tool in (await session.list_tools()).tools]
        async def ask(tool, **given):
            answer = await session.call_tool(tool, {'profile': profile, **given})
            return {'text': answer.content[0].text, 'is_error': bool(answer.is_error)}
        answers = {'summary': await ask('summary'), 'waits': await ask('waits'), 'source': await ask('source', function='worker', waiting=True),
                   'missing': await ask('function', function='no_such_function'), 'option': await ask('tree', function='--help')}
        print(json.dumps({'server': name, 'tools': tools, 'answers': answers}))

asyncio.run(main(*sys.argv[1:]))
";

fn server(test: &Context<'_>) -> Verdict {
    let folder = pypi::folder_with_dependencies(CLIENT)?;
    let recorded = test.record(&["documented"]).options(&["--off-cpu"]).run_well()?;
    let (client, server) = (test.path("client.py"), test.path("mcp_server.py"));
    fs::write(&client, SESSION)?;
    fs::copy(crate::paths::root().join("docs/agents/mcp_server.py"), &server)?;
    let programs = test.nyquist_path().parent().unwrap_or(Path::new("/"));
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    let call = test.program("python3").path(&client).path(&server).path(&recorded.path).args(&[&path]);
    let printed = call.env("PYTHONPATH", folder.display().to_string()).run()?.succeeded()?.stdout_text();
    let printed: Value = serde_json::from_str(&printed)?;
    expect_eq("the server", printed["server"].as_str(), Some("nyquist"))?;
    let tools = printed["tools"].to_string();
    expect(["summary", "waits", "source"].iter().all(|tool| tools.contains(tool)), &tools)?;
    let text = |name: &str| printed["answers"][name]["text"].as_str().unwrap_or_default().to_owned();
    let is_error = |name: &str| printed["answers"][name]["is_error"].as_bool();
    expect_contains("the summary", &text("summary"), "parse")?;
    expect_contains("the waits", &text("waits"), "lock")?;
    expect_contains("the source", &text("source"), "pthread_mutex_lock")?;
    expect_contains("an unknown function", &text("missing"), "no function with samples")?;
    expect_eq(
        "whether these are errors",
        ["summary", "missing", "option"].map(is_error),
        [false, true, true].map(Some),
    )
}
