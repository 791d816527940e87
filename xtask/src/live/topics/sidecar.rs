//! The file with names that samply saves beside a profile, for a program that no longer exists.

use std::fs;

use serde_json::{Value, json};

use super::context::Context;
use super::expect::{Verdict, expect, expect_contains, expect_eq};
use super::http::Client;
use super::made_profile;
use super::server::{link_of, parts_of};
use super::test::Test;

pub(super) const TESTS: &[Test] = &[
    Test::new("samplys_names_beside_a_profile_are_used", names).quick(),
    Test::new("samplys_names_are_served", served),
    Test::new("a_damaged_file_beside_a_profile_is_reported", damaged),
];

const ADDRESSES: [u64; 3] = [0x1004, 0x1010, 0x2008];
const BREAKPAD_ID: &str = "DFB8E43AF2423D73A453AEB6A777EF750";

/// Writes a profile of a missing program, and samply's file beside it.
fn write(test: &Context<'_>, sidecar: &str) -> anyhow::Result<String> {
    let gone = test.path("gone").display().to_string();
    let lib = json!({
        "name": "gone", "path": gone, "debugName": "gone", "debugPath": gone,
        "breakpadId": BREAKPAD_ID, "codeId": "3ae4b8df42f2733da453aeb6a777ef75e84ab7f8", "arch": null,
    });
    let profile = test.path("p.json");
    fs::write(&profile, made_profile::of(&ADDRESSES, &lib).to_string())?;
    fs::write(test.path("p.syms.json"), sidecar)?;
    Ok(profile.display().to_string())
}

fn sidecar() -> Value {
    let frame = |function, line| json!({ "function": function, "file": 3, "line": line });
    json!({
        "string_table": ["UNKNOWN", "outer", "inlined", "/src/gone.c", "plain"],
        "data": [{
            "debug_name": "gone", "debug_id": "dfb8e43a-f242-3d73-a453-aeb6a777ef75",
            "code_id": "3ae4b8df42f2733da453aeb6a777ef75e84ab7f8",
            "symbol_table": [
                { "rva": 0x1000, "size": 0x40, "symbol": 1, "frames": [frame(2, 7), frame(1, 20)] },
                { "rva": 0x2000, "symbol": 4 },
            ],
            "known_addresses": [[0x1004, 0], [0x1010, 0], [0x2008, 1]],
        }],
    })
}

fn names(test: &Context<'_>) -> Verdict {
    let profile = write(test, &sidecar().to_string())?;
    let report = test.nyquist(&["report", "-v", &profile]).run()?.succeeded()?;
    for function in ["inlined", "outer", "plain"] {
        expect_contains("the report", &report.stdout_text(), function)?;
    }
    expect_contains("where they come from", &report.stderr, "p.syms.json")?;
    expect(!report.stderr.contains("have no names"), &report.stderr)?;
    let folded = test.nyquist(&["export", "--format", "folded", &profile]).run()?.succeeded()?.stdout_text();
    expect_contains("the stacks", &folded, "outer;inlined 2")?;
    let lines = test.nyquist(&["annotate", "inlined", &profile]).run()?.succeeded()?.stdout_text();
    expect_contains("the lines", &lines, "gone.c")?;
    expect_contains("the lines", &lines, "7")?;
    // Without the file, there are no names.
    fs::remove_file(test.path("p.syms.json"))?;
    let report = test.nyquist(&["report", &profile]).run()?.succeeded()?;
    expect(!report.stdout_text().contains("outer"), report.stdout_text())
}

fn served(test: &Context<'_>) -> Verdict {
    let profile = write(test, &sidecar().to_string())?;
    let running = test.nyquist(&["load", "--no-open", &profile]).start()?;
    let (port, _, base) = parts_of(&link_of(&running)?)?;
    let job = json!({ "memoryMap": [["gone", BREAKPAD_ID]], "stacks": [[[0, 0x1004]]] });
    let body = json!({ "jobs": [job] }).to_string();
    let answer = Client::new(port).post(&format!("{base}/symbolicate/v5"), &body)?.json()?;
    let frame = &answer["results"][0]["stacks"][0][0];
    expect_eq("the function", frame["function"].as_str(), Some("outer"))?;
    expect_eq("what is inlined", frame["inlines"][0]["function"].as_str(), Some("inlined"))?;
    expect_eq("its line", frame["inlines"][0]["line"].as_u64(), Some(7))
}

fn damaged(test: &Context<'_>) -> Verdict {
    let mut wrong = sidecar();
    wrong["data"][0]["known_addresses"][1][1] = json!(9);
    for (text, reason) in [(wrong.to_string(), "there is no symbol 9"), ("{".to_owned(), "EOF")] {
        let profile = write(test, &text)?;
        let report = test.nyquist(&["report", &profile]).run()?.succeeded()?;
        let messages = report.stderr.clone();
        expect_contains("messages", &messages, "p.syms.json are not used: ")?;
        expect_contains("messages", &messages, reason)?;
        expect(!report.stdout_text().contains("outer"), report.stdout_text())?;
    }
    Ok(())
}
