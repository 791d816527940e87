//! `nyquist annotate`: which lines and instructions of a function take the time.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::context::Context;
use super::expect::{Verdict, expect, expect_contains, expect_eq, expect_measured};
use super::test::{SHARES, Test};

pub(super) const TESTS: &[Test] = &[
    Test::new("a_lines_source_stands_beside_its_share", source).quick(),
    Test::new("inlined_code_is_of_its_own_file_and_line", inlined).quick().in_pairs(SHARES),
    Test::new("instructions_have_shares_and_lines", instructions),
    Test::new("the_hottest_line_comes_first", hottest),
    Test::new("missing_files_are_named", missing),
    Test::new("inlined_code_without_source_is_one_line", folded),
    Test::new("the_librarys_source_is_its_compilers", library_source),
    Test::new("a_missing_function_is_said_to_be_missing", unknown),
    Test::new("an_inlined_function_names_its_callers", inlined_into),
    Test::new("a_terminal_gets_what_fits_it", terminal),
];

fn annotate(test: &Context<'_>, args: &[&str], path: &Path) -> Result<String, anyhow::Error> {
    Ok(test.nyquist(&["annotate"]).args(args).path(path).run()?.succeeded()?.stdout_text())
}

/// The number of the line with this mark in a file, counted from 1.
fn marked(file: &str, mark: &str) -> Result<usize, anyhow::Error> {
    let text = fs::read_to_string(crate::paths::root().join("workloads").join(file))?;
    let found = text.lines().position(|line| line.ends_with(mark));
    Ok(1 + found.ok_or_else(|| anyhow::anyhow!("no {mark} in {file}"))?)
}

fn source(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["shares", "300"]).run_well()?;
    let text = annotate(test, &["alpha", "--source"], &recorded.path)?;
    let line = text.lines().find(|line| line.contains("void alpha(long ms)")).unwrap_or_default();
    let shares: Vec<f64> =
        line.split_whitespace().filter_map(|word| word.strip_suffix('%')?.parse().ok()).collect();
    let whole = recorded.profile.total_share("alpha") * 100.0;
    let holds = shares.get(1).is_some_and(|total| (total - whole).abs() < 0.1);
    expect(holds, format_args!("alpha's line has {shares:?}, the function {whole}:\n{text}"))?;
    expect(!text.contains("add "), format_args!("instructions, though only source was requested:\n{text}"))
}

/// The lines of a file in the JSON, with the self and total weight of each.
fn lines_of(json: &Value, file: &str) -> Vec<(u64, u64, u64)> {
    let files = json["files"].as_array().into_iter().flatten();
    let of_file = files.filter(|it| it["file"].as_str().is_some_and(|path| path.ends_with(file)));
    let lines = of_file.flat_map(|file| file["lines"].as_array().into_iter().flatten());
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    lines.map(|line| (number(&line["line"]), number(&line["self"]), number(&line["total"]))).collect()
}

fn inlined_into(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["inlines-v0", "200"]).run_well()?;
    let text = annotate(test, &["deepest_inline"], &recorded.path)?;
    expect_contains("the heading", &text, "inlined into inlines::outer_frame\n")?;
    let without = test.nyquist(&["annotate", "deepest_inline", "--no-inline"]).path(&recorded.path).run()?;
    expect_eq(&without.line, without.code(), 1)?;
    expect_contains(&without.line, &without.stderr, "`deepest_inline` is inlined into inlines::outer_frame")?;
    let outer = annotate(test, &["outer_frame"], &recorded.path)?;
    expect(!outer.contains("inlined into"), format_args!("outer_frame was compiled:\n{outer}"))
}

fn inlined(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["inlines-v0", "600"]).run_well()?;
    let text = annotate(test, &["outer_frame", "--json"], &recorded.path)?;
    let json: Value = serde_json::from_str(&text)?;
    let lines = lines_of(&json, "inlines.rs");
    let total = |mark: &str| -> Result<u64, anyhow::Error> {
        let expected = marked("inlines.rs", mark)? as u64;
        Ok(lines.iter().find(|(line, ..)| *line == expected).map_or(0, |(_, _, total)| *total))
    };
    let whole = json["total"].as_u64().unwrap_or(0);
    expect_measured(whole > 100, format_args!("outer_frame has {whole} samples"))?;
    expect_eq("the call of middle_inline", total("// line: middle_inline")?, whole)?;
    expect_eq("the call of deepest_inline", total("// line: deepest_inline")?, whole)?;
    let spin = total("// line: spin")?;
    expect(spin * 10 > whole * 9 && spin <= whole, format_args!("the loop has {spin} of {whole}"))?;
    // The code of the loop itself is in the standard library's files, and takes the time.
    let own: u64 = json["files"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|file| {
            let lines = file["lines"].as_array().into_iter().flatten();
            lines.filter_map(|line| line["self"].as_u64()).sum::<u64>()
        })
        .sum();
    expect(own * 10 > whole * 9 && own <= whole, format_args!("the lines have {own} of {whole} themselves"))
}

fn instructions(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["shares", "300"]).run_well()?;
    let text = annotate(test, &["alpha", "--asm"], &recorded.path)?;
    expect(text.contains("ret") && text.contains("call"), format_args!("no instructions:\n{text}"))?;
    expect_contains("the instructions' lines", &text, "shares.c:4")?;
    let hot = text.lines().skip(3).filter(|line| line.contains('%')).count();
    expect(hot > 0, format_args!("no instruction has a share:\n{text}"))?;
    let json: Value = serde_json::from_str(&annotate(test, &["alpha", "--json"], &recorded.path)?)?;
    let instructions = json["code"][0]["instructions"].as_array().cloned().unwrap_or_default();
    let own: u64 = instructions.iter().filter_map(|one| one["self"].as_u64()).sum();
    // Code that is inlined into a function counts for the function's lines and instructions, but not for its
    // self weight.
    let files = json["files"].as_array().cloned().unwrap_or_default();
    let lines = files.iter().filter_map(|file| file["lines"].as_array()).flatten();
    let of_lines: u64 = lines.filter_map(|line| line["self"].as_u64()).sum();
    expect_eq("the sum of all instructions", own, of_lines)?;
    expect(own >= json["self"].as_u64().unwrap_or(u64::MAX), "the instructions have less than the function")
}

fn hottest(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["shares", "300"]).run_well()?;
    let text = annotate(test, &["middle", "--hottest", "--source"], &recorded.path)?;
    // A line has its total only, or its self share before it.
    let lines = text.lines().filter(|line| line.contains("shares.c:"));
    let total =
        |line: &str| line.split_whitespace().map_while(|word| word.strip_suffix('%')).last()?.parse().ok();
    let shares: Vec<f64> = lines.filter_map(total).collect();
    expect(shares.len() >= 3 && shares.is_sorted_by(|a, b| a >= b), format_args!("{shares:?}:\n{text}"))
}

fn missing(test: &Context<'_>) -> Verdict {
    let (program, source) = (test.fresh("gone"), test.fresh("gone.c"));
    fs::write(&source, "int main(void) { for (volatile long i = 0; i < 300000000; i++); return 0; }\n")?;
    let (program_text, source_text) = (program.display().to_string(), source.display().to_string());
    test.program("gcc").args(&["-g", "-O1", "-o", &program_text, &source_text]).run()?.succeeded()?;
    let recorded = test.record_command(&[&program_text]).run_well()?;
    fs::remove_file(&program)?;
    fs::remove_file(&source)?;
    let text = annotate(test, &["main"], &recorded.path)?;
    expect_contains("the note on source", &text, &format!("no source of {source_text}: no such file"))?;
    expect_contains("the note on code", &text, &format!("{program_text}: no such file"))?;
    expect(text.contains('%'), format_args!("no shares:\n{text}"))
}

/// The paths of the standard library's files are those of the machine that built it. They do not exist here,
/// and the toolchain is hidden.
fn folded(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["inlines-v0", "300"]).run_well()?;
    let annotate = |args: &[&str]| -> Result<String, anyhow::Error> {
        let call = test.nyquist(&["annotate"]).args(args).path(&recorded.path);
        Ok(call
            .env("RUSTUP_HOME", test.path("no-rustup").display().to_string())
            .run()?
            .succeeded()?
            .stdout_text())
    };
    for options in [&["--source"][..], &["--hottest", "--source"]] {
        let args = [&["outer_frame"], options].concat();
        let text = annotate(&args)?;
        let folded = text.lines().filter(|line| line.contains("without source here (-v lists them)"));
        expect_eq("lines for what is inlined", folded.count(), 1)?;
        let body = text.split_once("TOTAL").map_or("", |(_, body)| body);
        expect(!body.contains("library/"), format_args!("a file without source is listed:\n{text}"))?;
        let all = annotate(&[&args[..], &["-v"]].concat())?;
        expect(!all.contains("-v lists them"), format_args!("folded all the same:\n{all}"))?;
        expect(all.lines().count() > text.lines().count(), format_args!("no more lines:\n{all}"))?;
        expect(!all.contains("/rustc/"), format_args!("the library's paths are long:\n{all}"))?;
        expect_contains("what gets the source", &all, "`rustup component add rust-src` gets it")?;
    }
    Ok(())
}

/// The source of the standard library comes from the toolchain whose compiler has built the program.
fn library_source(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["inlines-v0", "300"]).run_well()?;
    let lib = test.path("rustup/toolchains/built/lib/rustlib");
    let files = recorded.profile.stacks().flat_map(|(stack, _)| stack);
    let special = "git:github.com/rust-lang/rust:";
    let files: BTreeSet<_> = files.filter_map(|frame| frame.file.as_deref()?.strip_prefix(special)).collect();
    expect(!files.is_empty(), "no file has a special path")?;
    for (path, commit) in files.into_iter().filter_map(|file| file.split_once(':')) {
        let source = lib.join("src/rust").join(path);
        fs::create_dir_all(source.parent().unwrap_or(&lib))?;
        fs::write(&source, "of the library\n".repeat(10_000))?;
        let manifest = format!("[pkg.rust]\nversion = \"1.0.0 ({} 2026-01-01)\"\n", &commit[..9]);
        fs::write(lib.join("multirust-channel-manifest.toml"), manifest)?;
    }
    let call = test.nyquist(&["annotate", "outer_frame", "--source", "-v"]).path(&recorded.path);
    let call = call.env("RUSTUP_HOME", test.path("rustup").display().to_string());
    let text = call.run()?.succeeded()?.stdout_text();
    expect_contains("a file's heading", &text, "  library/core/")?;
    expect_contains("its text", &text, "of the library")?;
    expect(!text.contains("was changed after"), format_args!("its version is the commit's:\n{text}"))
}

fn unknown(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["shares", "50"]).run_well()?;
    for (args, printed) in [
        (["annotate", "no_such"], "no function with samples matches `no_such`"),
        (["annotate", "f-99999"], "there is no function f-99999"),
        (["annotate", "alp(ha"], "unclosed group (at character 4)"),
    ] {
        let finished = test.nyquist(&args).path(&recorded.path).run()?;
        expect_eq("the status", finished.code(), 1)?;
        expect_contains("stderr", &finished.stderr, printed)?;
    }
    Ok(())
}

fn terminal(test: &Context<'_>) -> Verdict {
    let recorded = test.record(&["inlines-v0", "200"]).run_well()?;
    for option in ["--context=3", "--source", "--asm", "--hottest"] {
        let call = test.nyquist(&["annotate", "outer_frame", option]).path(&recorded.path);
        let text = call.env("LC_ALL", "C.UTF-8").on_terminal().run()?.succeeded()?.stderr;
        let longest = text
            .lines()
            .filter(|line| !line.starts_with("note: "))
            .map(|line| line.trim_end().chars().count())
            .max()
            .unwrap_or(0);
        expect(longest <= 80, format_args!("{option} has a line of {longest}:\n{text}"))?;
    }
    Ok(())
}
