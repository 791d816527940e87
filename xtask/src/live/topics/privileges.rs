//! Under sudo, work that does not need root's rights runs with the rights of the user who ran sudo. Nothing
//! has other rights afterwards.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::context::Context;
use super::expect::{Verdict, expect, expect_contains, expect_eq, need_root, skip};
use super::http::Client;
use super::invocation::{Invocation, PLAIN_USER, Running};
use super::profile::Profile;
use super::server::{link_of, urls_of};
use super::test::Test;

pub(super) const TESTS: &[Test] = &[
    Test::new("under_sudo_no_cache_is_made_through_links", linked_cache),
    Test::new("a_home_that_is_not_there_stays_away", no_home),
    Test::new("after_a_recording_root_is_given_up", recorded_server),
    Test::new("threads_of_a_live_page_cannot_become_root", live_page),
    Test::new("what_root_alone_may_read_has_names", closed_program),
    Test::new("what_root_alone_may_write_stays_roots", closed_output),
    Test::new("a_file_of_roots_is_read_without_root", closed_input),
    Test::new("capabilities_end_with_the_recording", capabilities),
    Test::new("under_sudo_no_helper_program_is_roots", helpers),
];

/// Sets the environment that sudo sets: the variables name the user who ran sudo.
fn by_sudo(call: Invocation<'_>) -> Invocation<'_> {
    let id = PLAIN_USER.to_string();
    call.env("SUDO_UID", id.clone()).env("SUDO_GID", id).env("SUDO_USER", "nobody")
}

/// A folder that only root may enter.
fn closed_folder(test: &Context<'_>) -> Result<PathBuf> {
    let folder = test.path("closed");
    fs::create_dir(&folder)?;
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700))?;
    Ok(folder)
}

/// A home folder of the plain user.
fn users_home(test: &Context<'_>) -> Result<PathBuf> {
    let home = test.path("home");
    fs::create_dir(&home)?;
    chown(&home, Some(PLAIN_USER), Some(PLAIN_USER))?;
    Ok(home)
}

/// The names in a folder.
fn names(folder: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    Ok(entries.iter().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect())
}

fn linked_cache(test: &Context<'_>) -> Verdict {
    need_root()?;
    let (home, closed) = (users_home(test)?, closed_folder(test)?);
    symlink(&closed, home.join(".cache"))?;
    let by_user = |call| by_sudo(call).env("HOME", home.display().to_string());
    let recorded = test.record(&["shares", "200"]).with(by_user).run_well()?;
    expect(recorded.profile.functions().contains_key("alpha"), "alpha has no name")?;
    let top = test.nyquist(&["top", "--batch", "-n", "1", "--"]).path(&test.workload("shares"));
    by_user(top.args(&["500"])).run()?.succeeded()?;
    by_user(test.nyquist(&["report", "--json"]).path(&recorded.path)).run()?.succeeded()?;
    expect_eq("what was made behind the link", names(&closed)?, Vec::<String>::new())?;
    // Files behind the link that look like a cache are not removed, either.
    let answers = closed.join("nyquist/answers");
    fs::create_dir_all(&answers)?;
    fs::write(answers.join("kept.answers"), "kept")?;
    by_user(test.nyquist(&["cache", "clear"])).run()?;
    expect_eq("what is left behind the link", names(&answers)?, vec!["kept.answers".to_owned()])?;
    // If the link leads to a folder of the user, it is followed.
    let own = home.join("own");
    fs::create_dir(&own)?;
    chown(&own, Some(PLAIN_USER), Some(PLAIN_USER))?;
    fs::remove_file(home.join(".cache"))?;
    symlink(&own, home.join(".cache"))?;
    test.record(&["shares", "200"]).with(by_user).run_well()?;
    let made = fs::metadata(own.join("nyquist/answers"))?;
    expect_eq("the owner of the cache", (made.uid(), made.gid()), (PLAIN_USER, PLAIN_USER))
}

fn no_home(test: &Context<'_>) -> Verdict {
    let home = test.path("no-home");
    test.record(&["shares", "100"]).with(|call| call.env("HOME", home.display().to_string())).run_well()?;
    expect(!home.exists(), "a home folder was made")?;
    let refused = test.nyquist(&["cache"]).env("HOME", home.display().to_string()).run()?;
    expect_eq("the status", refused.code(), 1)?;
    expect_contains("stderr", &refused.stderr, "so nothing is cached")?;
    expect(!home.exists(), "a home folder was made")
}

/// The users, the groups and the capabilities of all threads of a process, as the kernel lists them.
fn rights(pid: u32) -> Result<Vec<String>> {
    const WANTED: [&str; 6] = ["Uid:", "Gid:", "Groups:", "CapInh:", "CapPrm:", "CapEff:"];
    let mut all = Vec::new();
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        // A thread may end meanwhile.
        let Ok(status) = fs::read_to_string(thread?.path().join("status")) else { continue };
        let lines = status.lines().filter(|line| WANTED.iter().any(|name| line.starts_with(name)));
        all.push(lines.map(str::trim_end).collect::<Vec<_>>().join("; "));
    }
    all.dedup();
    Ok(all)
}

/// Checks that all threads of a process have exactly the rights of the plain user.
fn expect_plain_users(running: &Running<'_>) -> Verdict {
    let found = rights(running.pid())?;
    let ids =
        [PLAIN_USER.to_string(), PLAIN_USER.to_string(), PLAIN_USER.to_string(), PLAIN_USER.to_string()];
    let ids = ids.join("\t");
    let none = format!("CapInh:\t{0:016x}; CapPrm:\t{0:016x}; CapEff:\t{0:016x}", 0);
    for rights in &found {
        let begins = rights.starts_with(&format!("Uid:\t{ids}; Gid:\t{ids}; "));
        expect(begins && rights.ends_with(&none), format_args!("its threads have {found:?}"))?;
    }
    Ok(())
}

/// Waits until the profile is served, checks the rights of the server, and ends it.
fn expect_served_by_plain_user(running: Running<'_>) -> Verdict {
    let looked = look_at_server(&running);
    end(running)?;
    looked
}

/// Ends a server, whatever the test has found. Otherwise, the server would run for ever.
fn end(running: Running<'_>) -> Verdict {
    running.signal(libc::SIGKILL)?;
    running.wait()?;
    Ok(())
}

fn look_at_server(running: &Running<'_>) -> Verdict {
    let (profile, _) = urls_of(&link_of(running)?)?;
    expect_plain_users(running)?;
    let (authority, path) =
        profile.strip_prefix("http://").and_then(|url| url.split_once('/')).context("a URL")?;
    let port = authority.rsplit(':').next().context("a port")?.parse().context("a port")?;
    expect_eq("the status of the profile", Client::new(port).get(&format!("/{path}"))?.status, 200)
}

fn recorded_server(test: &Context<'_>) -> Verdict {
    need_root()?;
    let output = test.path("served.json.gz");
    let call = test.nyquist(&["record", "--serve", "--no-open", "-o"]).path(&output).args(&["--"]);
    let running = by_sudo(call.path(&test.workload("shares")).args(&["200"])).start()?;
    expect_served_by_plain_user(running)?;
    expect_eq("the profile's owner", fs::metadata(&output)?.uid(), PLAIN_USER)?;
    expect(Profile::read(&output)?.functions().contains_key("alpha"), "alpha has no name")
}

/// The threads of the page keep what `setresuid` needs in each thread, and can have nothing else back.
fn live_page(test: &Context<'_>) -> Verdict {
    need_root()?;
    let (output, over) = (test.path("live.json.gz"), test.path("over"));
    let call = test.nyquist(&["record", "--live", "--no-open", "-o"]).path(&output).args(&["--"]);
    let running = by_sudo(call.path(&test.workload("endless")).args(&["1"]).path(&over)).start()?;
    link_of(&running)?;
    running.wait_until_sampling()?;
    let looked = look_at_live_threads(&running);
    fs::write(&over, "")?;
    let looked_again = running.wait_until("the profile", || output.exists()).map_err(Into::into);
    let looked_again = looked_again.and_then(|()| look_at_server(&running));
    end(running)?;
    looked.and(looked_again)
}

fn look_at_live_threads(running: &Running<'_>) -> Verdict {
    const TO_CHANGE_USER: u64 = 1 << 6 | 1 << 7;
    let folder = format!("/proc/{}/task", running.pid());
    for name in ["nyquist-server", "nyquist-live"] {
        let threads = || fs::read_dir(&folder).into_iter().flatten().flatten();
        let statuses = || threads().filter_map(|it| fs::read_to_string(it.path().join("status")).ok());
        let is_it = |status: &String| status.starts_with(&format!("Name:\t{name}\n"));
        let retained = ["CapPrm:", "CapEff:"].map(|set| format!("\n{set}\t{TO_CHANGE_USER:016x}\n"));
        let has_only_these = |status: &String| retained.iter().all(|line| status.contains(line));
        let what = format!("{name} to give up all other rights");
        running.wait_until(&what, || statuses().find(is_it).is_some_and(|it| has_only_these(&it)))?;
        let status = statuses().find(is_it).context("the thread has ended")?;
        let user = status.lines().find_map(|line| line.strip_prefix("Uid:"));
        let user = user.and_then(|users| users.split_whitespace().last());
        expect_eq(name, user, Some(&*PLAIN_USER.to_string()))?;
    }
    Ok(())
}

fn closed_program(test: &Context<'_>) -> Verdict {
    need_root()?;
    let (program, ready) = (closed_folder(test)?.join("endless"), test.path("ready"));
    fs::copy(test.workload("endless"), &program)?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o700))?;
    let target = test.program(&program).args(&["1"]).env("WORKLOAD_READY", ready.display().to_string());
    let target = target.start()?;
    target.wait_for_file(&ready)?;
    let output = test.path("attached.json.gz");
    let pid = target.pid().to_string();
    let call = test.nyquist(&["record", "-s", "-d", "1", "-p", &pid, "-o"]).path(&output);
    let finished = by_sudo(call).run()?.succeeded()?;
    target.signal(libc::SIGKILL)?;
    target.wait()?;
    let functions = Profile::read(&output)?.functions();
    expect(functions.contains_key("main_loop"), format_args!("main_loop is not in {functions:?}"))?;
    expect(!finished.stderr.contains("have no names"), &finished.stderr)?;
    expect_eq("the profile's owner", fs::metadata(&output)?.uid(), PLAIN_USER)
}

fn closed_output(test: &Context<'_>) -> Verdict {
    need_root()?;
    let (home, closed) = (users_home(test)?, closed_folder(test)?);
    let output = closed.join("p.json.gz");
    let call = test.nyquist(&["record", "-s", "-o"]).path(&output).args(&["--"]);
    let call = by_sudo(call.path(&test.workload("shares")).args(&["200"]));
    call.env("HOME", home.display().to_string()).run()?.succeeded()?;
    expect_eq("the profile's owner", fs::metadata(&output)?.uid(), 0)?;
    expect(Profile::read(&output)?.functions().contains_key("alpha"), "alpha has no name")?;
    // The caches still belong to the user.
    expect_eq("the cache's owner", fs::metadata(home.join(".cache/nyquist/answers"))?.uid(), PLAIN_USER)?;
    let call = test.nyquist(&["export", "--format", "folded", "-o"]).path(&closed.join("p.folded"));
    by_sudo(call.path(&output)).run()?.succeeded()?;
    expect_eq("the owner of what is exported", fs::metadata(closed.join("p.folded"))?.uid(), 0)
}

fn closed_input(test: &Context<'_>) -> Verdict {
    need_root()?;
    let file = closed_folder(test)?.join("p.json.gz");
    let recorded = test.record(&["shares", "200"]).run_well()?;
    fs::copy(&recorded.path, &file)?;
    let reported = by_sudo(test.nyquist(&["report"]).path(&file)).run()?.succeeded()?;
    expect_contains("the report", &reported.stdout_text(), "alpha")?;
    let both = test.nyquist(&["diff"]).path(&file).path(&file);
    by_sudo(both).run()?.succeeded()?;
    expect_served_by_plain_user(by_sudo(test.nyquist(&["load", "--no-open"]).path(&file)).start()?)
}

/// A program file with capabilities gives them to a plain user's process. Here, `setpriv` does the same.
fn capabilities(test: &Context<'_>) -> Verdict {
    need_root()?;
    let id = PLAIN_USER.to_string();
    let (user, group) = (format!("--reuid={id}"), format!("--regid={id}"));
    let setpriv = ["setpriv", &user, &group, "--clear-groups", "--inh-caps=+perfmon,+sys_ptrace"];
    let setpriv = [&setpriv[..], &["--ambient-caps=+perfmon,+sys_ptrace"]].concat();
    let tried = test.program("true").under(&setpriv).run()?;
    if tried.code() != 0 {
        return skip("needs a setpriv and a kernel that know CAP_PERFMON");
    }
    let output = test.path("served.json.gz");
    let call = test.nyquist(&["record", "--serve", "--no-open", "-o"]).path(&output).args(&["--"]);
    let call = call.path(&test.workload("shares")).args(&["200"]).under(&setpriv);
    expect_served_by_plain_user(call.start()?)?;
    let load = test.nyquist(&["load", "--no-open"]).path(&output).under(&setpriv);
    expect_served_by_plain_user(load.start()?)
}

/// A program that writes the id of the user who runs it, and the file that it writes to.
fn noting(test: &Context<'_>, name: &str) -> Result<(PathBuf, PathBuf)> {
    let (program, notes) = (test.path(name), test.path(&format!("{name}.notes")));
    fs::write(&program, format!("#!/bin/sh\nid -u >> {}\nexit 1\n", notes.display()))?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
    fs::write(&notes, "")?;
    fs::set_permissions(&notes, fs::Permissions::from_mode(0o666))?;
    Ok((program, notes))
}

/// Checks that a program was run, and only by the plain user.
fn expect_run_by_plain_user(notes: &Path) -> Verdict {
    let noted = fs::read_to_string(notes)?;
    let alone = !noted.is_empty() && noted.lines().all(|user| user == PLAIN_USER.to_string());
    expect(alone, format_args!("{} was run by {noted:?}", notes.display()))
}

fn helpers(test: &Context<'_>) -> Verdict {
    need_root()?;
    let (cargo, built) = noting(test, "cargo")?;
    by_sudo(test.nyquist(&["cargo", "run"])).env("CARGO", cargo.display().to_string()).run()?;
    expect_run_by_plain_user(&built)?;
    let (browser, shown) = noting(test, "browser")?;
    let (output, closed) = (test.path("p.json.gz"), closed_folder(test)?.join("p.json.gz"));
    for (options, output) in [(&[][..], &output), (&["--as-root"][..], &output), (&[][..], &closed)] {
        let call = test.nyquist(&["record", "--serve", "-o"]).path(output).args(options).args(&["--"]);
        let call = by_sudo(call.path(&test.workload("shares")).args(&["50"]));
        let running = call.env("BROWSER", browser.display().to_string()).start()?;
        let is_shown = running.wait_until("the browser to be run", || {
            fs::read_to_string(&shown).is_ok_and(|text| !text.is_empty())
        });
        end(running)?;
        is_shown?;
        expect_run_by_plain_user(&shown)?;
        fs::write(&shown, "")?;
    }
    Ok(())
}
