//! `nyquist report`: the first look without a browser.

use serde_json::Value;

use super::context::Context;
use super::expect::{Verdict, expect, expect_contains, expect_share};
use super::harness::Test;

pub(super) const TESTS: &[Test] = &[
    Test::new("the_table_is_led_by_what_takes_most_time", table).quick().parallel(),
    Test::new("json_says_the_same_as_the_profile", json).quick(),
    Test::new("a_limit_shortens_the_table", limit).parallel(),
    Test::new("a_closed_pipe_is_no_error", closed_pipe).parallel(),
    Test::new("a_profile_of_version_49_is_read_too", version_49),
];

fn table(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["shares", "600"]).run_well()?;
    let text = test.nyquist(&["report"]).path(&recorded.path).run()?.succeeded()?.stdout_text();
    let of = |name: &str| text.lines().position(|line| line.split_whitespace().any(|word| word == name));
    let (alpha, beta, gamma) = (of("alpha"), of("beta"), of("gamma_"));
    expect(
        alpha.is_some() && alpha < beta && beta < gamma,
        format_args!("not in order of self time:\n{text}"),
    )?;
    let row = alpha.and_then(|index| text.lines().nth(index)).unwrap_or_default();
    expect_contains("alpha's row", row, "shares")?;
    let head = text.to_lowercase();
    expect(head.contains("self") && head.contains("total"), format_args!("no self and total:\n{text}"))?;
    expect(!text.contains('\u{1b}'), "colours in a pipe")
}

/// The row of a function, wherever the schema has put the rows.
fn row_of<'a>(json: &'a Value, function: &str) -> Option<&'a Value> {
    let mut open = vec![json];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(fields) if fields.get("function").is_some_and(|name| name == function) => {
                return Some(value);
            }
            Value::Object(fields) => open.extend(fields.values()),
            _ => {}
        }
    }
    None
}

fn json(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["shares", "1000"]).run_well()?;
    let text = test.nyquist(&["report", "--json"]).path(&recorded.path).run()?.succeeded()?.stdout_text();
    let json: Value = serde_json::from_str(&text)?;
    for function in ["alpha", "beta", "gamma_"] {
        let row = row_of(&json, function).ok_or_else(|| anyhow::anyhow!("no row of {function}: {text}"))?;
        expect(row["lib"] == "shares", format_args!("{function}'s lib is {}", row["lib"]))?;
        let (own, total) = (row["self"].as_f64(), row["total"].as_f64());
        expect(own.is_some() && own <= total, format_args!("{function}: self {own:?}, total {total:?}"))?;
        // Of the same unit, so that their ratio is a ratio of shares.
        let alpha = row_of(&json, "alpha").and_then(|row| row["self"].as_f64()).unwrap_or(0.0);
        let found = own.unwrap_or(0.0) / alpha;
        let wanted = recorded.profile.self_share(function) / recorded.profile.self_share("alpha");
        expect_share(function, found, wanted.min(1.0), 1e6)?;
    }
    Ok(())
}

fn limit(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["shares", "300"]).run_well()?;
    let text =
        test.nyquist(&["report", "--limit", "1"]).path(&recorded.path).run()?.succeeded()?.stdout_text();
    expect(text.contains("alpha") && !text.contains("gamma_"), format_args!("not one function:\n{text}"))
}

fn closed_pipe(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["shares", "100"]).run_well()?;
    let script = "set -o pipefail; \"$0\" report --limit 0 \"$1\" | true";
    let call = test.program("bash").args(&["-c", script]).path(test.nyquist_path()).path(&recorded.path);
    let finished = call.run()?;
    expect(!finished.stderr.contains("panicked"), format_args!("stderr: {}", finished.stderr))?;
    expect(finished.status.success(), format_args!("a closed pipe gave {}", finished.status))
}

fn version_49(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["shares", "600"]).options(&["--profile-version", "49"]).run_well()?;
    let text = test.nyquist(&["report"]).path(&recorded.path).run()?.succeeded()?.stdout_text();
    expect_contains("the table", &text, "alpha")
}
