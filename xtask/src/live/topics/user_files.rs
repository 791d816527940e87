//! `nyquist setup --user`: README's lines on a fresh account, and what shells and `man` then know.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::context::Context;
use super::expect::{Verdict, expect, expect_contains, expect_eq, need_root};
use super::invocation::{Invocation, PLAIN_USER};
use super::test::Test;

pub(super) const TESTS: &[Test] = &[
    Test::new("readme_installs_on_a_fresh_account", fresh_account).quick(),
    Test::new("bash_completes_commands_options_and_events", bash),
    Test::new("bash_completes_cargo_nyquist", cargo_in_bash),
    Test::new("the_users_own_completions_of_cargo_stay", own_cargo),
    Test::new("user_files_are_not_written_through_links", links),
];

/// A home folder of the plain user, with nothing but the programs that `cargo install` puts there.
struct Account<'a> {
    test: &'a Context<'a>,
    home: PathBuf,
}

impl<'a> Account<'a> {
    fn fresh(test: &'a Context<'a>) -> Result<Self> {
        let home = test.fresh("home");
        let programs = home.join(".cargo/bin");
        fs::create_dir_all(&programs)?;
        let from = test.nyquist_path().parent().unwrap_or(Path::new("/"));
        for program in ["nyquist", "cargo-nyquist"] {
            fs::copy(from.join(program), programs.join(program))?;
        }
        for folder in [&home, &home.join(".cargo"), &programs] {
            chown(folder, Some(PLAIN_USER), Some(PLAIN_USER))?;
        }
        Ok(Self { test, home })
    }

    fn bash(&self, script: &str) -> Invocation<'a> {
        let call = self.test.program("bash").args(&["-ec", script]).by_plain_user();
        call.env("HOME", self.home.display().to_string())
            .env("SHELL", "/bin/bash")
            .env("PATH", "/usr/bin:/bin")
    }

    fn completions(&self, name: &str) -> PathBuf {
        self.home.join(".local/share/bash-completion/completions").join(name)
    }

    /// What bash would offer at the end of a line, with the completions of this file.
    fn offered(&self, file: &str, line: &str) -> Result<String> {
        // The words as bash divides them, which ends one at each colon and equals sign.
        let script = format!(
            ". '{}'
             COMP_LINE='{line}' COMP_POINT=${{#COMP_LINE}} COMP_WORDS=()
             rest=$COMP_LINE
             while [[ $rest =~ ^[[:space:]]*([^[:space:]:=]+|[:=]+)(.*)$ ]]; do COMP_WORDS+=(\"${{BASH_REMATCH[1]}}\"); rest=${{BASH_REMATCH[2]}}; done
             [[ $COMP_LINE == *[[:space:]:=] ]] && COMP_WORDS+=('')
             COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
             [[ $(complete -p \"${{COMP_WORDS[0]}}\") =~ ' -F '([^ ]+) ]]
             \"${{BASH_REMATCH[1]}}\" \"${{COMP_WORDS[0]}}\" \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD - 1]}}\" || true
             printf '%s ' \"${{COMPREPLY[@]}}\"",
            self.completions(file).display()
        );
        let path = format!("{}/.cargo/bin:/usr/bin:/bin", self.home.display());
        Ok(self.bash(&script).env("PATH", path).run()?.succeeded()?.stdout_text())
    }
}

/// The lines of README behind those that get the sources and build them.
fn readme_lines() -> Result<Vec<String>> {
    let text = fs::read_to_string(crate::paths::root().join("README.md"))?;
    let lines = text.lines().skip_while(|line| !line.contains("cargo install --path crates/nyquist"));
    let own = lines.skip(1).take_while(|line| line.starts_with("    ") || line.starts_with('~'));
    Ok(own.map(|line| line.split(" # ").next().unwrap_or_default().trim().to_owned()).collect())
}

fn fresh_account(test: &Context<'_>) -> Verdict {
    need_root()?;
    let account = Account::fresh(test)?;
    let lines = readme_lines()?;
    expect(
        lines.iter().any(|line| line.contains("setup --user")),
        format_args!("README has only {lines:?}"),
    )?;
    let printed = account.bash(&lines.join("\n")).run()?.succeeded()?.stdout_text();
    let added: Vec<&str> =
        printed.lines().map(str::trim).filter(|line| line.starts_with("export ")).collect();
    expect_eq("lines to add", added.len(), 2)?;
    // With the lines added, the programs and their pages are found.
    let check = format!("{}\nnyquist --version\ncargo-nyquist --version\necho $MANPATH", added.join("\n"));
    let found = account.bash(&check).run()?.succeeded()?.stdout_text();
    expect_contains("the versions", &found, "cargo-nyquist")?;
    for page in ["nyquist.1", "nyquist-record.1", "cargo-nyquist.1", "cargo-nyquist-bench.1"] {
        let path = account.home.join(".local/share/man/man1").join(page);
        let text = fs::read_to_string(&path)?;
        expect_contains(page, &text, ".SH EXAMPLES\n.nf\n")?;
        expect_eq("the rights to a page", fs::metadata(&path)?.permissions().mode() & 0o777, 0o644)?;
    }
    if Path::new("/usr/bin/man").exists() {
        let lookup = format!("{}\nman -w nyquist cargo-nyquist", added.join("\n"));
        let found = account.bash(&lookup).run()?.succeeded()?.stdout_text();
        expect_contains("what man finds", &found, "/.local/share/man/man1/cargo-nyquist.1")?;
    }
    for path in [".config/fish/completions/nyquist.fish", ".local/share/zsh/site-functions/_cargo-nyquist"] {
        expect(account.home.join(path).is_file(), format_args!("there is no {path}"))?;
    }
    // A second time, and with the lines in place, there is nothing more to add.
    let again = format!("{}\nnyquist setup --user", added.join("\n"));
    let printed = account.bash(&again).run()?.succeeded()?.stdout_text();
    expect(!printed.contains("Add to"), format_args!("there is more to add:\n{printed}"))
}

fn bash(test: &Context<'_>) -> Verdict {
    need_root()?;
    let account = Account::fresh(test)?;
    account.bash("~/.cargo/bin/nyquist setup --user").run()?.succeeded()?;
    let offered = |line: &str| account.offered("nyquist", line);
    let commands = offered("nyquist ")?;
    let args: Vec<&str> = commands.split_whitespace().collect();
    expect(args.contains(&"record") && !args.contains(&"cargo"), format_args!("commands: {commands}"))?;
    expect_contains("options", &offered("nyquist record --off")?, "--off-cpu")?;
    for line in ["nyquist record -e page-f", "nyquist report --event=page-f", "nyquist stat -e page-f"] {
        expect_contains(line, &offered(line)?, "page-faults")?;
    }
    expect_contains(
        "the second event",
        &offered("nyquist record -e page-faults,minor")?,
        "page-faults,minor-faults",
    )
}

fn cargo_in_bash(test: &Context<'_>) -> Verdict {
    need_root()?;
    let account = Account::fresh(test)?;
    account.bash("~/.cargo/bin/nyquist setup --user").run()?.succeeded()?;
    let check = |line: &str, expected: &str, hidden: &str| {
        let offered = account.offered("cargo", line)?;
        let has = |word: &str| offered.split_whitespace().any(|offer| offer == word);
        expect(has(expected) && !has(hidden), format_args!("{line}: {offered}"))
    };
    check("cargo nyquist ", "bench", "launch")?;
    check("cargo nyquist bench --prof", "--profile-time", "--bin")?;
    check("cargo nyquist --bi", "--bin", "bench")?;
    check("cargo +nightly nyquist te", "test", "bench")?;
    check("cargo nyquist -e page-f", "page-faults", "--event")
}

/// Where rustup's completions of cargo are, nyquist's are added by a line that is printed.
fn own_cargo(test: &Context<'_>) -> Verdict {
    need_root()?;
    let account = Account::fresh(test)?;
    let own = account.completions("cargo");
    let script = format!(
        "mkdir -p '{}'; echo '_cargo() {{ COMPREPLY=(build); }}; complete -F _cargo cargo' > '{}'",
        own.parent().unwrap_or(&own).display(),
        own.display()
    );
    account.bash(&script).run()?.succeeded()?;
    let before = fs::read_to_string(&own)?;
    let printed = account.bash("~/.cargo/bin/nyquist setup --user").run()?.succeeded()?.stdout_text();
    expect_eq("the user's file", fs::read_to_string(&own)?, before)?;
    let line =
        printed.lines().find(|line| line.ends_with("&& _complete_cargo_nyquist")).unwrap_or_default().trim();
    account.bash(&format!("echo \"{line}\" >> '{}'", own.display())).run()?.succeeded()?;
    expect_contains("of nyquist", &account.offered("cargo", "cargo nyquist be")?, "bench")?;
    expect_contains("of cargo", &account.offered("cargo", "cargo bu")?, "build")
}

/// A link of another user in the way is refused, and what it leads to stays as it is.
fn links(test: &Context<'_>) -> Verdict {
    need_root()?;
    let account = Account::fresh(test)?;
    let (secret, folder) = (test.fresh("secret"), account.completions(""));
    fs::write(&secret, "secret")?;
    fs::create_dir_all(&folder)?;
    let link = account.completions("nyquist");
    symlink(&secret, &link)?;
    std::os::unix::fs::lchown(&link, Some(PLAIN_USER), Some(PLAIN_USER))?;
    // Root installs into this home, as under `su` without a login.
    let call = test.nyquist(&["setup", "--user"]).env("HOME", account.home.display().to_string());
    let finished = call.run()?;
    expect_eq(&finished.line, finished.code(), 1)?;
    expect_contains(&finished.line, &finished.stderr, "is a link of user")?;
    expect_eq("the secret", fs::read_to_string(&secret)?, "secret".to_owned())
}
