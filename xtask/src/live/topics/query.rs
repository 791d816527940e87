//! `nyquist query`: short answers for scripts and agents.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::context::Context;
use super::expect::{Stop, Verdict, expect, expect_contains, expect_eq};
use super::test::Test;

pub(super) const TESTS: &[Test] = &[
    Test::new("functions_with_the_same_code_have_a_note", folded),
    Test::new("three_calls_lead_to_the_hot_line", three_calls).quick(),
    Test::new("an_answer_has_no_more_rows_than_requested", bounded),
    Test::new("handles_stay_whatever_the_filters", handles),
    Test::new("callers_and_callees_are_reported", neighbours),
    Test::new("text_and_json_say_the_same", text_and_json),
    Test::new("rows_have_the_members_of_the_report", same_rows),
    Test::new("a_suggested_command_runs_as_printed", suggestions),
    Test::new("waiting_is_not_called_cpu_time", waiting),
    Test::new("a_question_that_makes_no_sense_is_refused", refused),
    Test::new("the_guide_names_every_question", guide),
];

fn ask(test: &Context<'_>, path: &Path, args: &[&str]) -> Result<Value, anyhow::Error> {
    let finished = test.nyquist(&["query"]).path(path).args(args).args(&["--json"]).run()?.succeeded()?;
    Ok(serde_json::from_str(&finished.stdout_text())?)
}

fn three_calls(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["parts", "100", "600", "100"]).run_well()?;
    let summary = ask(test, &recorded.path, &[])?;
    let hottest = &summary["functions"][0];
    expect_eq("the hottest function", hottest["function"].as_str(), Some("second_part"))?;
    let handle = hottest["handle"].as_str().unwrap_or_default();
    let function = ask(test, &recorded.path, &["function", handle])?;
    expect_eq("its caller", function["callers"][0]["function"].as_str(), Some("main"))?;
    let source = ask(test, &recorded.path, &["source", handle])?;
    let line = &source["lines"][0];
    let place = line["place"].as_str().unwrap_or_default();
    expect(place.ends_with("parts.c:5"), format_args!("the hot line is at {place}"))?;
    expect_contains("its text", line["source"].as_str().unwrap_or_default(), "void second_part(long ms)")
}

/// Each command keeps the filters, and a shell takes it as it is.
fn suggestions(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["parts", "100", "600", "100"]).run_well()?;
    let path = test.path("it's here.json.gz");
    std::fs::rename(&recorded.path, &path)?;
    let filters = ["--thread", "t-0", "--range", "-700ms", "--focus", "part|ma in", "--hide=-x"];
    let mut commands = Vec::new();
    for args in [&[][..], &["function", "second_part"], &["source", "second_part"]] {
        let answer = ask(test, &path, &[args, &filters].concat())?;
        let next = answer["next"].as_array().into_iter().flatten();
        commands.extend(next.filter_map(|command| command.as_str().map(str::to_owned)));
    }
    expect(commands.len() >= 6, format_args!("only {commands:?}"))?;
    let folder = test.nyquist_path().parent().unwrap_or(Path::new("/"));
    for command in commands {
        for filter in ["--thread t-0", "--range=-700ms", "'part|ma in'", "--hide=-x"] {
            expect_contains(&command, &command, filter)?;
        }
        let line = format!("PATH='{}':$PATH; {command}", folder.display());
        let answer = test.program("sh").args(&["-c", &line]).run()?.succeeded()?;
        expect_contains(&command, &answer.stdout_text(), "second_part")?;
    }
    Ok(())
}

fn waiting(test: &Context<'_>) -> Verdict {
    let recorded = test.record_command(&["sleep", "0.3"]).options(&["--off-cpu"]).run_well()?;
    let answer = ask(test, &recorded.path, &["--off-cpu"])?;
    expect(answer["waiting_ms"].as_f64().is_some_and(|ms| ms > 100.0), format_args!("{answer}"))?;
    expect_eq("what is measured", answer["measure"].as_str(), Some("waiting"))?;
    expect(answer["cpu_ms"].is_null(), format_args!("waiting is CPU time in {answer}"))
}

fn bounded(test: &Context<'_>) -> Verdict {
    let recorded = test.record_command(&["rustc", "--version"]).run_well()?;
    for question in ["functions", "tree", "lines", "threads", "libs", "timeline"] {
        let answer = ask(test, &recorded.path, &[question, "--limit", "3"])?;
        let lists = answer.as_object().into_iter().flatten().filter_map(|(_, value)| value.as_array());
        let longest = lists.map(Vec::len).max().unwrap_or(0);
        expect((1..=3).contains(&longest), format_args!("{question}: {longest} rows: {answer}"))?;
    }
    Ok(())
}

fn handles(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["shares", "300"]).run_well()?;
    let handle = |args: &[&str]| -> Result<String, anyhow::Error> {
        let answer = ask(test, &recorded.path, args)?;
        let rows = answer["functions"].as_array().into_iter().flatten();
        let row = rows.filter(|row| row["function"] == "beta").map(|row| row["handle"].to_string()).next();
        row.ok_or_else(|| anyhow::anyhow!("no beta in {answer}"))
    };
    let all = handle(&["functions"])?;
    expect_eq("the handle", handle(&["functions", "^beta$", "--range", "50ms-", "--thread", "t-0"])?, all)
}

fn neighbours(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["shares", "300"]).run_well()?;
    let answer = ask(test, &recorded.path, &["function", "middle"])?;
    let names = |list: &str| -> Vec<String> {
        let rows = answer[list].as_array().into_iter().flatten();
        rows.filter_map(|row| row["function"].as_str()).map(str::to_owned).collect()
    };
    expect_eq("callers", names("callers"), vec!["main".to_owned()])?;
    let mut callees = ["alpha", "beta", "gamma_"].map(str::to_owned).to_vec();
    callees.sort_by(|one, next| {
        recorded.profile.total_share(next).total_cmp(&recorded.profile.total_share(one))
    });
    expect_eq("callees", names("callees")[..3].to_vec(), callees)?;
    let callers = ask(test, &recorded.path, &["callers", "alpha"])?;
    let nodes = callers["nodes"].as_array().into_iter().flatten();
    let nodes: Vec<_> = nodes.filter_map(|node| node["function"].as_str()).take(3).collect();
    expect_eq("the tree of callers", nodes, vec!["alpha", "middle", "main"])?;
    let tree = ask(test, &recorded.path, &["tree", "middle"])?;
    let nodes: Vec<_> =
        tree["nodes"].as_array().into_iter().flatten().map(|node| &node["function"]).collect();
    expect_eq(
        "the tree from middle",
        nodes[..2].to_vec(),
        vec![&Value::from("middle"), &Value::from("alpha")],
    )
}

fn text_and_json(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["shares", "200"]).run_well()?;
    let answer = ask(test, &recorded.path, &["functions", "--limit", "5"])?;
    let text = test.nyquist(&["query"]).path(&recorded.path).args(&["functions", "--limit", "5"]).run()?;
    let text = text.succeeded()?.stdout_text();
    for row in answer["functions"].as_array().into_iter().flatten() {
        let handle = row["handle"].as_str().unwrap_or_default();
        let line =
            text.lines().find(|line| line.split_whitespace().next() == Some(handle)).unwrap_or_default();
        let share = format!("{:.1}%", row["self_share"].as_f64().unwrap_or(0.0) * 100.0);
        expect_contains("the line", line, &share)?;
        expect_contains("the line", line, row["function"].as_str().unwrap_or_default())?;
    }
    expect(!text.contains('\u{1b}'), "colours")
}

/// A row of a query is that of the report, with rounded shares and members of the old names besides.
fn same_rows(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["shares", "200"]).run_well()?;
    for view in ["functions", "lines", "threads", "libs"] {
        let report =
            test.nyquist(&["report", &format!("--{view}"), "--json", "--limit", "5"]).path(&recorded.path);
        let report: Value = serde_json::from_str(&report.run()?.succeeded()?.stdout_text())?;
        let query = ask(test, &recorded.path, &[view, "--limit", "5", "--full-names"])?;
        let (reported, queried) = (&report[view][0], &query[view][0]);
        let members = reported.as_object().filter(|members| members.len() > 4);
        let members = members.ok_or_else(|| anyhow::anyhow!("no row in {report}"))?;
        for (name, value) in members {
            let is_same = match (value.as_f64(), queried[name].as_f64()) {
                (Some(share), Some(rounded)) if name.ends_with("_share") => (share - rounded).abs() <= 5.1e-5,
                _ => *value == queried[name],
            };
            expect(is_same, format_args!("{view}: {name} is {value} in the report and {}", queried[name]))?;
        }
        expect_eq("the unit", &query["unit"], &report["unit"])?;
    }
    Ok(())
}

fn refused(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["shares", "50"]).run_well()?;
    let check = |args: &[&str], status, printed: &str| -> Verdict {
        let finished = test.nyquist(&["query"]).path(&recorded.path).args(args).run()?;
        expect_eq("the status", finished.code(), status)?;
        expect_contains("stderr", &finished.stderr, printed)
    };
    check(&["function"], 1, "`function` needs a function")?;
    check(&["threads", "main"], 1, "cannot be used with it")?;
    check(&["function", "f-123456"], 1, "there is no function f-123456")?;
    check(
        &["function", "f-123456"],
        1,
        "hint: handles are valid for one file; `nyquist query FILE functions` lists them",
    )?;
    check(&["function", "no_such"], 1, "no function with samples matches `no_such`")?;
    check(&["functions", "no_such"], 1, "no function with samples matches `no_such`")?;
    check(&["what"], 2, "what")?;
    check(&["functions", "--limit", "0"], 2, "0")
}

fn guide(test: &Context<'_>) -> Verdict {
    let text = test.nyquist(&["guide"]).run()?.succeeded()?.stdout_text();
    let questions =
        "summary functions function tree callers lines source threads libs markers waits timeline";
    for question in questions.split(' ') {
        expect_contains("the guide", &text, question)?;
    }
    expect(text.lines().count() <= 60, format_args!("{} lines are more than a page", text.lines().count()))
}

/// A second name of the same code, as a linker gives it to functions whose code is the same.
const TWO_NAMES: &str =
    "__attribute__((noinline)) void get_price(void) { for (volatile long i = 0; i < 200000000; i++); }
void get_weight(void) __attribute__((alias(\"get_price\")));
int main(void) { get_weight(); }
";

/// A recording of `get_price`, which is also named `get_weight`.
pub(super) fn record_two_names(test: &Context<'_>) -> Result<PathBuf, Stop> {
    let (source, program) = (test.path("two_names.c"), test.path("two_names"));
    std::fs::write(&source, TWO_NAMES)?;
    test.program("cc").args(&["-O1", "-g", "-o"]).path(&program).path(&source).run()?.succeeded()?;
    let output = test.path("profile.json.gz");
    test.nyquist(&["record", "-s", "-o"]).path(&output).path(&program).run()?.succeeded()?;
    Ok(output)
}

fn folded(test: &Context<'_>) -> Verdict {
    let output = record_two_names(test)?;
    for question in ["function", "source"] {
        let call = test.nyquist(&["query"]).path(&output).args(&[question, "get_"]);
        let text = call.run()?.succeeded()?.stdout_text();
        let is_said =
            ["get_price has the same code as get_weight", "get_weight has the same code as get_price"];
        expect(is_said.iter().any(|note| text.contains(note)), format_args!("{question}: {text}"))?;
    }
    Ok(())
}
