//! The recorder's exit status is that of the command, as a shell shows it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use super::context::Context;
use super::expect::{Verdict, expect, expect_contains, expect_eq, expect_measured};
use super::test::Test;

pub(super) const TESTS: &[Test] = &[
    Test::new("the_commands_code_is_passed_on", code).quick(),
    Test::new("a_commands_signal_is_128_and_its_number", signal).quick(),
    Test::new("a_command_that_is_not_found_is_127", not_found).quick(),
    Test::new("a_command_that_cannot_be_run_is_126", not_executable).quick(),
    Test::new("wrong_arguments_are_2", wrong_arguments),
];

fn code(test: &Context<'_>) -> Verdict {
    for code in [0, 1, 42, 255] {
        let recorded = test.record(&["ending", "30", "exit", &code.to_string()]).run()?;
        expect_eq("the status", recorded.finished.code(), code)?;
        expect(recorded.profile.total() > 0.0, "the profile has no samples")?;
    }
    Ok(())
}

fn signal(test: &Context<'_>) -> Verdict {
    for signal in [libc::SIGSEGV, libc::SIGKILL, libc::SIGTERM, libc::SIGABRT] {
        let recorded = test.record(&["ending", "30", "signal", &signal.to_string()]).run()?;
        expect_eq("the status", recorded.finished.code(), 128 + signal)?;
        let message = format!("`ending` was ended by signal {signal} (SIG");
        expect_contains("stderr", &recorded.finished.stderr, &message)?;
        expect_measured(
            recorded.profile.total_share("last_words") > 0.5,
            "the profile lacks what ran before the signal",
        )?;
    }
    Ok(())
}

fn not_found(test: &Context<'_>) -> Verdict {
    let by_path = test.path("no-such-command").display().to_string();
    for missing in ["nyquist-no-such-command", &by_path] {
        let output = test.fresh("profile.json.gz");
        let call = test.nyquist(&["record", "-s", "-o"]).path(&output).args(&["--", missing]);
        let finished = call.run()?;
        expect_eq("the status", finished.code(), 127)?;
        expect_contains("stderr", &finished.stderr, missing)?;
        expect_contains("stderr", &finished.stderr.to_lowercase(), "no such file")?;
        expect(!output.exists(), "a profile of nothing was left behind")?;
    }
    Ok(())
}

fn not_executable(test: &Context<'_>) -> Verdict {
    let file = test.path("not-a-program");
    fs::write(&file, "text")?;
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644))?;
    let call = test.nyquist(&["record", "-s", "-o"]).path(&test.fresh("p.json.gz")).args(&["--"]).path(&file);
    let finished = call.run()?;
    expect_eq("the status", finished.code(), 126)?;
    expect_contains("stderr", &finished.stderr.to_lowercase(), "permission denied")?;
    let call = test.nyquist(&["record", "-s", "-o"]).path(&test.fresh("p.json.gz")).args(&["--"]);
    expect_eq("the status for a folder", call.path(&test.path("")).run()?.code(), 126)
}

fn wrong_arguments(test: &Context<'_>) -> Verdict {
    for args in
        [&["record"][..], &["record", "-r", "0", "true"], &["record", "-p", "x"], &["no-such-subcommand"]]
    {
        let finished = test.nyquist(args).run()?;
        expect_eq(&format!("the status of {args:?}"), finished.code(), 2)?;
        expect(
            !finished.stderr.is_empty() && finished.stdout.is_empty(),
            "the message is not on stderr alone",
        )?;
    }
    Ok(())
}
