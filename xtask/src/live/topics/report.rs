//! `nyquist report`: a first overview without a browser.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json as json_value};

use super::context::Context;
use super::expect::{Verdict, expect, expect_contains, expect_eq, expect_share};
use super::json_docs;
use super::test::{SHARES, Test};

pub(super) const TESTS: &[Test] = &[
    Test::new("the_table_is_led_by_what_takes_most_time", table).quick(),
    Test::new("json_says_the_same_as_the_profile", json).quick().in_pairs(SHARES),
    Test::new("a_limit_shortens_the_table", limit),
    Test::new("a_closed_pipe_is_no_error", closed_pipe),
    Test::new("a_profile_of_version_49_is_read_too", version_49).in_pairs(SHARES),
    Test::new("a_tree_shows_who_calls_what", tree).quick().in_pairs(SHARES),
    Test::new("a_tree_of_threads_has_their_functions", roots),
    Test::new("an_inverted_tree_shows_who_is_calling", inverted),
    Test::new("lines_are_by_file_and_number", lines),
    Test::new("libs_and_threads_have_their_shares", libs_and_threads).in_pairs(SHARES),
    Test::new("a_terminal_gets_what_fits_it", terminal),
    Test::new("colours_are_for_terminals_that_want_them", colours),
    Test::new("filters_leave_what_passes_them", filters).in_pairs(SHARES),
    Test::new("a_filter_that_matches_nothing_says_so", nothing_matches),
    Test::new("a_regex_that_does_not_parse_shows_where", bad_regex),
    Test::new("generic_arguments_are_elided_by_default", names),
    Test::new("columns_are_chosen", columns),
    Test::new("a_profile_without_names_gets_them", without_names).in_pairs(SHARES),
    Test::new("every_json_is_as_it_is_documented", documented).in_pairs(SHARES),
    Test::new("script_prints_every_sample", script),
    Test::new("a_recording_ends_with_a_summary", summary),
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

/// The row of a function, at any place in the schema.
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
        // All values have the same unit, so their ratio is a ratio of shares.
        let alpha = row_of(&json, "alpha").and_then(|row| row["self"].as_f64()).unwrap_or(0.0);
        let found = own.unwrap_or(0.0) / alpha;
        let expected = recorded.profile.self_share(function) / recorded.profile.self_share("alpha");
        expect_share(function, found, expected.min(1.0), 1e6)?;
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

/// A report as text.
fn report(test: &Context<'_>, path: &Path, options: &[&str]) -> Result<String, anyhow::Error> {
    Ok(test.nyquist(&["report"]).args(options).path(path).run()?.succeeded()?.stdout_text())
}

/// The shares in the line with a function's name, in per cent.
fn shares_in(text: &str, name: &str) -> Result<Vec<f64>, anyhow::Error> {
    // The line of what a process used has a program's name, too.
    let is_line =
        |line: &&str| line.split_whitespace().any(|word| word == name) && !line.contains("% of a CPU");
    let line = text.lines().find(is_line).ok_or_else(|| anyhow::anyhow!("no {name} in:\n{text}"))?;
    Ok(line.split_whitespace().filter_map(|word| word.strip_suffix('%')?.parse().ok()).collect())
}

fn tree(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["shares", "1000"]).run_well()?;
    let text = report(test, &recorded.path, &["--tree"])?;
    let samples = recorded.profile.count();
    for (function, part) in [("alpha", 0.5), ("beta", 0.3), ("gamma_", 0.2)] {
        let total = shares_in(&text, function)?.first().copied().unwrap_or_default();
        expect_share(function, total / 100.0, part, samples)?;
    }
    let row = |name: &str| text.lines().position(|line| line.split_whitespace().any(|word| word == name));
    let (main, middle, alpha) = (row("main"), row("middle"), row("alpha"));
    expect(main.is_some() && main < middle && middle < alpha, format_args!("not callers first:\n{text}"))?;
    // A single child is in the same column as its caller. Several children have branches.
    let column = |name: &str| {
        let line = text.lines().find(|line| line.split_whitespace().any(|word| word == name))?;
        Some(line[..line.rfind(&format!(" {name}"))?].chars().count())
    };
    expect_eq("the column of main and middle", column("main"), column("middle"))?;
    expect(column("middle") < column("alpha"), format_args!("alpha is not below middle:\n{text}"))?;
    // What only starts the program is left out, unless all is requested.
    let whole = report(test, &recorded.path, &["--tree", "--limit", "0"])?;
    expect(whole.contains("_start"), format_args!("no _start:\n{whole}"))?;
    expect(
        !text.contains("_start") && text.contains("is left out"),
        format_args!("with what starts it:\n{text}"),
    )?;
    let short = report(test, &recorded.path, &["--tree", "--depth", "2"])?;
    expect(!short.contains("alpha"), format_args!("deeper than 2:\n{short}"))
}

/// The threads' own functions take the places of what starts the threads.
fn roots(test: &Context<'_>) -> Verdict {
    let recorded = test.record_command(&[&test.workload("steps").display().to_string(), "queue", "60000"]);
    let text = report(test, &recorded.run()?.path, &["--tree"])?;
    for function in ["take", "main"] {
        let line = text.lines().find(|line| line.split_whitespace().any(|word| word == function));
        let branch = line.and_then(|line| line.split(['├', '└']).next());
        let is_root = branch.is_some_and(|before| !before.contains('│') && line != branch);
        expect(is_root, format_args!("{function} is no root:\n{text}"))?;
    }
    Ok(())
}

fn inverted(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["shares", "300"]).run_well()?;
    let text = report(test, &recorded.path, &["--inverted", "--focus", "^alpha$"])?;
    let row = |name: &str| text.lines().position(|line| line.split_whitespace().any(|word| word == name));
    expect(row("alpha") < row("middle") && row("middle") < row("main"), format_args!("order:\n{text}"))
}

fn lines(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["shares", "300"]).run_well()?;
    let text = report(test, &recorded.path, &["--lines", "--limit", "1"])?;
    expect_contains("the hottest line", &text, "shares.c:4")
}

fn libs_and_threads(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["shares", "600"]).run_well()?;
    let libs = report(test, &recorded.path, &["--libs"])?;
    let own = shares_in(&libs, "shares")?.first().copied().unwrap_or_default();
    expect(own > 80.0, format_args!("shares has {own} %:\n{libs}"))?;
    let threads = report(test, &recorded.path, &["--threads"])?;
    expect_contains("the threads", &threads, "t-0")?;
    expect_eq("the thread's share", shares_in(&threads, "t-0")?, vec![100.0])
}

fn terminal(test: &Context<'_>) -> Verdict {
    let recorded = test.record_command(&["rustc", "--version"]).run_well()?;
    for view in ["--functions", "--tree", "--inverted", "--lines", "--libs", "--threads", "--processes"] {
        let call =
            test.nyquist(&["report", view]).path(&recorded.path).env("LC_ALL", "C.UTF-8").on_terminal();
        let text = call.run()?.succeeded()?.stderr;
        let longest = text.lines().map(|line| line.trim_end().chars().count()).max().unwrap_or(0);
        expect(longest <= 80, format_args!("{view} has a line of {longest}:\n{text}"))?;
    }
    Ok(())
}

fn colours(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["shares", "100"]).run_well()?;
    let call = |no_color: &str| {
        let call =
            test.nyquist(&["report"]).path(&recorded.path).env("NO_COLOR", no_color).env("TERM", "xterm");
        call.env("LC_ALL", "C.UTF-8").on_terminal().run()?.succeeded()
    };
    let coloured = call("")?.stderr;
    expect(coloured.contains('\u{1b}') && coloured.contains('█'), format_args!("no colours: {coloured}"))?;
    let plain = call("1")?.stderr;
    expect(!plain.contains('\u{1b}') && !plain.contains('█'), format_args!("colours: {plain}"))
}

fn filters(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["shares", "1000"]).run_well()?;
    let check = |options: &[&str], has: &str, has_not: &str| -> Verdict {
        let text = report(test, &recorded.path, options)?;
        let has_word = |name: &str| text.split_whitespace().any(|word| word == name);
        expect(has_word(has) && !has_word(has_not), format_args!("{options:?}:\n{text}"))
    };
    check(&["--focus", "^beta$"], "beta", "alpha")?;
    check(&["--ignore", "^beta$"], "alpha", "beta")?;
    check(&["--show", "^alpha$"], "alpha", "main")?;
    check(&["--hide", "^middle$"], "main", "middle")?;
    check(&["--lib", "shares", "--limit", "0"], "alpha", "[kernel.kallsyms]")?;
    check(&["--thread", "shares"], "alpha", "none")?;
    check(&["--thread", "t-0", "--process", "shares"], "alpha", "none")?;
    check(&["--category", "user"], "alpha", "[kernel.kallsyms]")?;
    // The weights of two parts of the recording add up to the whole, whatever form of range is used.
    let weight = |range: &str| -> Result<u64, anyhow::Error> {
        let text = report(test, &recorded.path, &["--json", "--range", range])?;
        let json: Value = serde_json::from_str(&text)?;
        json["weight"].as_u64().ok_or_else(|| anyhow::anyhow!("no weight"))
    };
    let (first, rest) = (weight("-300ms")?, weight("0.3s-")?);
    expect_eq("the sum of two parts", first + rest, weight("0-1min")?)?;
    expect(first > 0 && rest > first, format_args!("{first} before 300 ms, {rest} after"))
}

/// Runs a call that must fail with one sentence. Returns its messages.
fn refused(test: &Context<'_>, args: &[&str], path: &Path) -> Result<String, super::expect::Stop> {
    let finished = test.nyquist(args).path(path).run()?;
    expect(!finished.status.success(), format_args!("{args:?} was accepted"))?;
    expect(finished.stdout.is_empty(), "something was printed on the standard output")?;
    let sentences = finished.stderr.lines().filter(|line| line.starts_with("error: ")).count();
    expect_eq("sentences", sentences, 1)?;
    Ok(finished.stderr)
}

fn nothing_matches(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["shares", "100"]).run_well()?;
    let check = |filter: &[&str], printed: &str| -> Verdict {
        for command in [&["report"][..], &["report", "--tree", "--json"], &["annotate", "alpha"]] {
            let args = [command, filter].concat();
            expect_contains("stderr", &refused(test, &args, &recorded.path)?, printed)?;
        }
        Ok(())
    };
    check(&["--thread", "nobody"], "no thread of the profile matches `nobody`")?;
    check(&["--process", "nobody"], "no process of the profile matches `nobody`")?;
    check(&["--lib", "nothing"], "no library of the profile matches `nothing`")?;
    check(&["--category", "Nothing"], "no category of the profile matches `Nothing`")?;
    check(&["--focus", "nothing_like_that"], "nothing in the profile matches `nothing_like_that`")?;
    check(&["--range", "1min-2min"], "no sample passes the filters")?;
    check(&["--off-cpu"], "`nyquist record --off-cpu` records them")
}

fn bad_regex(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["shares", "50"]).run_well()?;
    for flag in ["--focus", "--ignore", "--show", "--hide", "--thread", "--lib"] {
        let printed = refused(test, &["report", flag, "alp(ha"], &recorded.path)?;
        expect_contains(
            flag,
            &printed,
            "`alp(ha` is not a regular expression: unclosed group (at character 4)",
        )?;
        expect_contains(flag, &printed, "hint: alp(ha\n         ^")?;
    }
    Ok(())
}

fn names(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["inlines-v0", "300"]).run_well()?;
    let short = report(test, &recorded.path, &["--limit", "0"])?;
    let full = report(test, &recorded.path, &["--limit", "0", "--full-names"])?;
    expect_contains("short names", &short, "<Square as Shape>::area")?;
    expect_contains("full names", &full, "Square<u32> as ")
}

fn columns(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["shares", "100"]).run_well()?;
    let text = report(test, &recorded.path, &["--columns", "name,self,handle", "--limit", "1"])?;
    let heading = text.lines().rev().nth(2).unwrap_or_default();
    expect_eq("the headings", heading.split_whitespace().collect(), vec!["FUNCTION", "SELF", "HANDLE"])
}

/// The recorded profile without names, as a recorder without symbols saves it: it has only addresses.
fn unnamed(test: &Context<'_>, profile: &Value) -> Result<PathBuf, anyhow::Error> {
    let mut json = profile.clone();
    json["meta"]["symbolicated"] = json_value!(false);
    let shared = &mut json["shared"];
    let hex = |address: &Value| format!("{:#x}", address.as_i64().unwrap_or(0));
    let addresses: Vec<Value> = shared["frameTable"]["address"].as_array().cloned().unwrap_or_default();
    let strings = shared["stringArray"].as_array().map_or(0, Vec::len);
    // Each frame gets a separate function, named after its address, in the lib of its earlier function.
    let funcs: Vec<usize> = indexes(&shared["frameTable"]["func"]);
    for column in
        ["isJS", "relevantForJS", "resource", "source", "lineNumber", "columnNumber", "originalLocation"]
    {
        let Some(old) = shared["funcTable"][column].as_array().cloned() else { continue };
        shared["funcTable"][column] = funcs.iter().map(|&func| old[func].clone()).collect();
    }
    shared["funcTable"]["name"] = (0..funcs.len()).map(|index| json_value!(strings + index)).collect();
    shared["funcTable"]["length"] = json_value!(funcs.len());
    shared["frameTable"]["func"] = (0..funcs.len()).map(|index| json_value!(index)).collect();
    if let Some(strings) = shared["stringArray"].as_array_mut() {
        strings.extend(addresses.iter().map(|address| json_value!(hex(address))));
    }
    for depth in shared["frameTable"]["inlineDepth"].as_array_mut().into_iter().flatten() {
        *depth = json_value!(0);
    }
    for symbol in shared["frameTable"]["nativeSymbol"].as_array_mut().into_iter().flatten() {
        *symbol = Value::Null;
    }
    let path = test.fresh("unnamed.json");
    fs::write(&path, json.to_string())?;
    Ok(path)
}

fn indexes(column: &Value) -> Vec<usize> {
    let values = column.as_array().into_iter().flatten();
    values.filter_map(Value::as_u64).map(|index| index as usize).collect()
}

fn without_names(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["shares", "600"]).run_well()?;
    let path = unnamed(test, &recorded.profile.json)?;
    let text = report(test, &path, &["--limit", "3"])?;
    let own = shares_in(&text, "alpha")?.first().copied().unwrap_or_default();
    let truth = recorded.profile.self_share("alpha") * 100.0;
    expect((own - truth).abs() < 0.1, format_args!("alpha has {own} % and not {truth} %:\n{text}"))
}

fn documented(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["inlines-v0", "300"]).run_well()?;
    let path = recorded.path.display().to_string();
    let documents = json_docs::Documents::read()?;
    let report = |view: &str| test.nyquist(&["report", view, "--json", &path]).run()?.succeeded();
    for view in ["functions", "tree", "inverted", "lines", "libs", "threads", "markers"] {
        let json = report(&format!("--{view}"))?.stdout_text();
        documents.hold(&["report", view], &serde_json::from_str(&json)?)?;
    }
    let annotate = test.nyquist(&["annotate", "outer_frame", &path, "--json"]).run()?.succeeded()?;
    documents.hold(&["annotate"], &serde_json::from_str(&annotate.stdout_text())?)?;
    let picture = test.nyquist(&["flamegraph", "--json"]).path(&recorded.path).run()?.succeeded()?;
    documents.hold(&["flamegraph"], &serde_json::from_str(&picture.stdout_text())?)?;
    let script =
        test.nyquist(&["script", "--json", "--limit", "9"]).path(&recorded.path).run()?.succeeded()?;
    let script = script.stdout_text();
    expect_eq("the samples", script.lines().count(), 9)?;
    for line in script.lines() {
        documents.hold(&["script"], &serde_json::from_str(line)?)?;
    }
    let diff = test.nyquist(&["diff", &path, &path, "--all", "--json"]).run()?.succeeded()?;
    documents.hold(&["diff"], &serde_json::from_str(&diff.stdout_text())?)?;
    for question in ["summary", "functions", "tree", "lines", "threads", "libs", "timeline"] {
        let json = test.nyquist(&["query", &path, question, "--json"]).run()?.succeeded()?;
        documents.hold(&["query", question], &serde_json::from_str(&json.stdout_text())?)?;
    }
    for question in ["function", "callers", "source"] {
        let json = test.nyquist(&["query", &path, question, "outer_frame", "--json"]).run()?.succeeded()?;
        documents.hold(&["query", question], &serde_json::from_str(&json.stdout_text())?)?;
    }
    Ok(())
}

fn script(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["shares", "200"]).run_well()?;
    let script = |options: &[&str]| -> Result<Vec<String>, anyhow::Error> {
        let text =
            test.nyquist(&["script"]).args(options).path(&recorded.path).run()?.succeeded()?.stdout_text();
        Ok(text.split("\n\n").filter(|sample| !sample.trim().is_empty()).map(str::to_owned).collect())
    };
    let all = script(&[])?;
    expect_eq("samples", all.len() as f64, recorded.profile.count())?;
    let in_alpha = script(&["--focus", "^alpha$"])?;
    let holds = in_alpha.iter().all(|sample| sample.contains(" alpha+0x") && sample.contains("cpu-clock:"));
    expect(holds && !in_alpha.is_empty(), format_args!("not all are in alpha: {in_alpha:?}"))?;
    let first = script(&["--limit", "3"])?;
    expect_eq(
        "the first samples",
        first.iter().map(|it| it.trim()).collect(),
        all[..3].iter().map(|it| it.trim()).collect::<Vec<_>>(),
    )
}

fn summary(test: &Context<'_>) -> Verdict {
    let printed = test.record(&["shares", "300"]).run_well()?.finished.stderr;
    let lines = printed.lines().count();
    expect((3..=6).contains(&lines), format_args!("{lines} lines: {printed}"))?;
    expect_contains("the times", &printed, " of CPU time (user ")?;
    expect_contains("the hottest functions", &printed, "Most time is in alpha ")?;
    let quiet = test.record(&["shares", "50"]).options(&["-q"]).run_well()?.finished.stderr;
    expect_eq("what -q leaves", quiet.trim(), "")
}
