//! Code that is no longer in a file on disk: programs and libraries in memory files, and text that was moved
//! to other memory.

use super::by::{BOTH, By};
use super::context::Context;
use super::expect::{Verdict, expect_eq, expect_share};
use super::names::expect_lines;
use super::profile::Frame;
use super::test::{SHARES, Test};

pub(super) const TESTS: &[Test] = &[
    Test::new("a_program_in_a_memory_file_has_its_names", program).quick().in_pairs(SHARES),
    Test::new("a_library_in_a_memory_file_has_its_names", library).in_pairs(SHARES),
    Test::new("a_plain_user_has_names_from_memory_files", plain_user).in_pairs(SHARES),
    Test::new("text_moved_to_other_memory_is_the_files", moved).quick().in_pairs(SHARES),
];

fn program(test: &Context<'_>) -> Verdict {
    let program = test.workload("shares").display().to_string();
    for by in BOTH {
        expect_lines(&test.record(&["from_memory", "program", &program, "500"]).by(by).run_well()?)?;
    }
    Ok(())
}

/// Checks that the library's function has samples, below a function of the program that has loaded the
/// library.
fn expect_library(test: &Context<'_>, by: By, as_user: bool) -> Verdict {
    let [library, host] =
        ["libplugin.so", "plugin_host"].map(|name| test.workload(name).display().to_string());
    let recording = test.record(&["from_memory", "library", &library, &host, "400", "@"]).by(by);
    let recorded = if as_user { recording.by_plain_user() } else { recording }.run_well()?;
    let held = recorded.profile.share_of_stacks(|stack: &[&Frame]| {
        let place = |name: &str| stack.iter().position(|frame| frame.function == name);
        place("main").is_some() && place("main") < place("plugin_inner")
    });
    let expected = recorded.true_share("plugin_inner")?;
    expect_share("the library and its caller", held, expected, recorded.profile.count())?;
    let frame = recorded.profile.frame_of(|frame| frame.function == "plugin_inner");
    expect_eq("its lib", frame.and_then(|frame| frame.lib), Some("memfd:in-memory".to_owned()))
}

fn library(test: &Context<'_>) -> Verdict {
    BOTH.into_iter().try_for_each(|by| expect_library(test, by, false))
}

/// Plain users may not follow the links of `/proc` to mappings.
fn plain_user(test: &Context<'_>) -> Verdict {
    let program = test.workload("shares").display().to_string();
    let recording = test.record(&["from_memory", "program", &program, "500"]).by_plain_user();
    expect_lines(&recording.run_well()?)?;
    expect_library(test, By::Best, true)
}

fn moved(test: &Context<'_>) -> Verdict {
    for by in BOTH {
        let recorded = test.record(&["moved_code", "500"]).by(by).run_well()?;
        let held = recorded.profile.share_of_stacks(|stack: &[&Frame]| {
            let place = |name: &str| stack.iter().position(|frame| frame.function == name);
            place("main").is_some() && place("main") < place("outer") && place("outer") < place("inner")
        });
        let expected = recorded.true_share("inner")?;
        expect_share("the moved functions and their caller", held, expected, recorded.profile.count())?;
        let line = recorded.profile.frame_of(|frame| frame.function == "inner" && frame.line.is_some());
        expect_eq("its lib", line.and_then(|frame| frame.lib), Some("moved_code".to_owned()))?;
    }
    Ok(())
}
