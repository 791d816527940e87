//! Follows a page: runs its commands one after another, and compares the form of what they print with what the page
//! shows.

use std::collections::BTreeSet;

use super::context::Context;
use super::expect::{Verdict, expect};
use super::tool_chain::with_tool_chain;

/// Lines that depend on chance: whether any function is slower or faster beyond noise, or is left out of a table.
const BY_CHANCE: &[&str] = &[
    "Slower",
    "Faster",
    "Unchanged",
    "CHANGE",
    " more",
    "functions differ",
    "note:",
    "hint:",
    "A CPU was used for",
];

/// A command with the lines that the page shows of its output.
struct Step<'p> {
    command: &'p str,
    shown: Vec<&'p str>,
}

/// The commands of a page: the lines that begin with `$ `, each with the lines behind it in its block.
fn steps(page: &str) -> Vec<Step<'_>> {
    let mut steps: Vec<Step<'_>> = Vec::new();
    let (mut is_fenced, mut is_open) = (false, false);
    for line in page.lines() {
        if line.starts_with("```") {
            (is_fenced, is_open) = (!is_fenced, false);
            continue;
        }
        let is_indented = line.starts_with("    ");
        let code =
            if is_fenced { Some(line) } else { line.strip_prefix("    ").or(line.is_empty().then_some("")) };
        is_open &= code.is_some();
        match code.and_then(|code| code.strip_prefix("$ ")) {
            Some(command) if is_fenced || is_indented => {
                steps.push(Step { command, shown: Vec::new() });
                is_open = true;
            }
            _ => {
                if let (true, Some(code), Some(step)) = (is_open, code, steps.last_mut()) {
                    step.shown.push(code);
                }
            }
        }
    }
    steps
}

/// Runs every command of a page in a folder of the test. `adapt` may add to a command what the page's reader does not
/// see.
pub(crate) fn follow(
    test: &Context<'_>,
    page: &str,
    folder: &str,
    adapt: impl Fn(&str) -> String,
) -> Verdict {
    let steps = steps(page);
    expect(!steps.is_empty(), "the page has no commands")?;
    let mut folder = test.path(folder);
    for step in steps {
        if let Some(inner) = step.command.strip_prefix("cd ") {
            folder.push(inner);
            continue;
        }
        let line = format!("cd '{}' && {{ {}\n}} 2>&1", folder.display(), adapt(step.command));
        let call = with_tool_chain(test, test.program("bash").args(&["-ec", &line]));
        let printed = call.run()?.succeeded()?.stdout_text();
        let faults = differences(&step.shown, &printed);
        expect(
            faults.is_empty(),
            format_args!("`{}` prints other lines than the page shows:\n{}", step.command, faults.join("\n")),
        )?;
    }
    Ok(())
}

/// The lines that only one of the two has. The page may leave lines out with `...`, and rows of tables differ.
fn differences(shown: &[&str], printed: &str) -> Vec<String> {
    let is_whole = !shown.iter().any(|line| line.trim() == "...");
    let forms =
        |lines: &mut dyn Iterator<Item = &str>| -> BTreeSet<String> { lines.filter_map(form).collect() };
    let (page, real) = (forms(&mut shown.iter().copied()), forms(&mut printed.lines()));
    if page.is_empty() {
        return Vec::new();
    }
    let missing = page.difference(&real).map(|line| format!("only on the page: {line}"));
    let extra = real.difference(&page).filter(|_| is_whole).map(|line| format!("not on the page: {line}"));
    missing.chain(extra).collect()
}

/// A line without what differs from run to run: numbers, units and paths. `None` of a row of a table, and of lines by
/// chance.
fn form(line: &str) -> Option<String> {
    let first = line.trim().chars().next()?;
    let is_row = first.is_ascii_digit()
        || "+-~<│├└⋮.".contains(first)
        || line.starts_with("    ")
        || line.trim().starts_with("new ")
        || has_handle(line);
    if is_row || BY_CHANCE.iter().any(|part| line.contains(part)) {
        return None;
    }
    let line = line.replace(", which is noise", "");
    // What follows depends on what the process has used, and on which kinds of CPU time and functions there were.
    let line = ["% of a CPU", " of CPU time (", ", not ", " time is in ", " with what it calls:"]
        .iter()
        .fold(&*line, |line, end| line.split(end).next().unwrap_or_default());
    let args = line.split_whitespace().map(|word| match word.trim_matches(['(', ')', ',', ':']) {
        word if word.contains('/') => "PATH".to_owned(),
        "s" | "ms" | "us" | "ns" => "UNIT".to_owned(),
        word if word.chars().any(|letter| letter.is_ascii_digit()) => "#".to_owned(),
        word => word.to_owned(),
    });
    Some(args.collect::<Vec<String>>().join(" "))
}

/// Whether a line begins with the handle of a function or a thread, as rows of `query` do.
fn has_handle(line: &str) -> bool {
    let number = line.strip_prefix("f-").or_else(|| line.strip_prefix("t-"));
    number.is_some_and(|number| number.starts_with(|letter: char| letter.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_compared_by_their_form() {
        let page = "```console\n$ nyquist report a\napp: 1.06 s of CPU time in 1.11 s, 1 thread\n\n SELF   NAME\n32.5%  f\n```\ntext\n";
        let steps = steps(page);
        assert_eq!(steps[0].command, "nyquist report a");
        let real = "app: 2.06 s of CPU time in 900 ms, 1 thread\n\n SELF      NAME\n 1.5%  g\n";
        assert!(differences(&steps[0].shown, real).is_empty());
        let other = real.replace("NAME", "LIB NAME");
        assert_eq!(
            differences(&steps[0].shown, &other),
            ["only on the page: SELF NAME", "not on the page: SELF LIB NAME"]
        );
        assert!(differences(&["...", "app: 1 s"], "x\napp: 3 s\n").is_empty());
    }
}
