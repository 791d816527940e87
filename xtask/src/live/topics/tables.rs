//! Parquet tables, queried by DuckDB and read back.

use serde_json::Value;

use super::context::Context;
use super::expect::{Stop, Verdict, expect, expect_contains, expect_eq};
use super::formats::reported_weight;
use super::pypi::{self, Package};
use super::test::Test;

pub(super) const TESTS: &[Test] = &[
    Test::new("duckdb_counts_what_the_report_does", duckdb_counts),
    Test::new("a_folder_of_tables_is_one_profile", folder),
    Test::new("tables_are_rewritten_by_duckdb", rewritten),
];

/// The engine.
pub(super) const DUCKDB: Package = Package { name: "duckdb", version: "2.0.1" };

/// Runs a query and prints its rows as JSON. Long queries would print their progress, too.
const QUERY: &str = "import duckdb, json, sys
duckdb.execute('set enable_progress_bar = false')
result = duckdb.execute(sys.argv[1])
names = [column[0] for column in result.description or []]
print(json.dumps([dict(zip(names, row)) for row in result.fetchall()], default=str))";

/// The rows of a query.
pub(super) fn query(test: &Context<'_>, sql: &str) -> Result<Vec<Value>, Stop> {
    let modules = pypi::folder_of(DUCKDB)?.display().to_string();
    let program = test.program("python3").env("PYTHONPATH", &modules).args(&["-c", QUERY, sql]);
    Ok(serde_json::from_str(&program.run()?.succeeded()?.stdout_text())?)
}

/// Records a workload, and exports it as a table. Returns the paths of the profile and of the table.
fn exported(test: &Context<'_>, table: &str) -> Result<(String, String), Stop> {
    let recorded = test.record(&["shares", "300"]).run_well()?;
    let (profile, table) = (recorded.path.display().to_string(), test.path(table).display().to_string());
    test.nyquist(&["export", &profile, "-o", &table]).run()?.succeeded()?;
    Ok((profile, table))
}

fn duckdb_counts(test: &Context<'_>) -> Verdict {
    let (profile, table) = exported(test, "profile.parquet")?;
    let text =
        test.nyquist(&["report", "--json", "--limit", "0", &profile]).run()?.succeeded()?.stdout_text();
    let report: Value = serde_json::from_str(&text)?;
    let interval = report["interval_ns"].as_u64().unwrap_or_default();
    let sums = query(
        test,
        &format!(
            "select function, sum(value)::bigint as value, count(distinct service) as services from '{table}' where kind = 'cpu' group by function"
        ),
    )?;
    for function in report["functions"].as_array().into_iter().flatten() {
        let (name, own) = (
            function["function"].as_str().unwrap_or_default(),
            function["self"].as_u64().unwrap_or_default(),
        );
        let row = sums.iter().find(|row| row["function"] == name);
        let sum = row.and_then(|row| row["value"].as_u64()).unwrap_or_default();
        expect_eq(name, sum, own * interval)?;
    }
    let checks = query(
        test,
        &format!(
            "select count(*) filter (where frames[-1].function <> function or len(frames) <> len(string_split(stack, ';'))) as wrong,
             bool_and(unit = 'nanoseconds' and service = 'shares' and process = 'shares' and pid = tid) as named,
             count(*) filter (where list_contains([frame.function for frame in frames], 'alpha')) as alpha,
             typeof(any_value(time)) as kind
             from '{table}'"
        ),
    )?;
    let check = checks.first().ok_or_else(|| Stop::Failed("a query without a row".into()))?;
    expect_eq("wrong stacks", check["wrong"].as_u64(), Some(0))?;
    expect_eq("names", check["named"].as_bool(), Some(true))?;
    expect_eq("the type of times", check["kind"].as_str(), Some("TIMESTAMP WITH TIME ZONE"))?;
    expect(check["alpha"].as_u64() > Some(0), format_args!("alpha is on no stack: {check}"))?;
    let again = reported_weight(test, &table)?;
    expect_eq("the weight read back", again, reported_weight(test, &profile)?)
}

fn folder(test: &Context<'_>) -> Verdict {
    let (profile, table) = exported(test, "one.parquet")?;
    let weight = reported_weight(test, &profile)?;
    for place in ["all/date=2026-01-01/host=a", "all/date=2026-01-02/host=a"] {
        std::fs::create_dir_all(test.path(place))?;
        std::fs::copy(&table, test.path(place).join("1.parquet"))?;
    }
    let folder = test.path("all");
    let all = folder.display().to_string();
    expect_eq("the weight of two tables", reported_weight(test, &all)?, 2 * weight)?;
    let rows = query(
        test,
        &format!("select host, count(distinct date) as dates from '{all}/**/*.parquet' group by host"),
    )?;
    expect_eq("the hosts", rows.len(), 1)?;
    expect_eq("the dates", rows[0]["dates"].as_u64(), Some(2))?;
    let other = folder.join("date=2026-01-02/host=b");
    std::fs::create_dir_all(&other)?;
    std::fs::copy(&table, other.join("1.parquet"))?;
    let refused = test.nyquist(&["report"]).path(&folder).run()?;
    expect(refused.code() != 0, "the profiles of two hosts are one report")?;
    expect_contains("what is said", &refused.stderr, "2 hosts")
}

/// DuckDB writes optional columns, and compresses with snappy unless told otherwise.
fn rewritten(test: &Context<'_>) -> Verdict {
    let (_, table) = exported(test, "own.parquet")?;
    let other = test.path("other.parquet").display().to_string();
    query(test, &format!("copy (from '{table}') to '{other}' (format parquet)"))?;
    let refused = test.nyquist(&["report", &other]).run()?;
    expect(refused.code() == 1, format_args!("status {}", refused.code()))?;
    expect_contains("what is said", &refused.stderr, "another")
}
