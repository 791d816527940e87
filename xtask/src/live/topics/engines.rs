//! ClickHouse and Spark over 1,000 profiles: the recipes of `docs/fleet` give what DuckDB's do, and sums are those of
//! the report.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use super::context::Context;
use super::expect::{Stop, Verdict, expect, expect_eq, skip};
use super::fleet::recorded_tables;
use super::pypi::{self, Package};
use super::tables::DUCKDB;
use super::test::Test;

pub(super) const TESTS: &[Test] = &[
    Test::new("clickhouse_answers_as_duckdb_does", clickhouse),
    Test::new("spark_answers_as_duckdb_does", spark),
];

/// The engines. That of ClickHouse is a library, and that of Spark runs in Java.
const CLICKHOUSE: Package = Package { name: "chdb-core", version: "26.9.0" };
const SPARK: Package = Package { name: "pyspark", version: "4.3.0" };

/// Runs queries by DuckDB, and prints the seconds and the rows of each as JSON.
const BY_DUCKDB: &str = "import duckdb
duckdb.execute('set enable_progress_bar = false')
def rows(sql):
    result = duckdb.execute(sql)
    names = [column[0] for column in result.description]
    return [dict(zip(names, row)) for row in result.fetchall()]";

/// The same by ClickHouse.
const BY_CLICKHOUSE: &str = "import chdb, json
def rows(sql):
    return [json.loads(line) for line in chdb.query(sql, 'JSONEachRow').data().splitlines()]";

/// The same by Spark, with two workers in its process. Folders are columns of text. Small files are read together.
const BY_SPARK: &str = "from pyspark.sql import SparkSession
builder = SparkSession.builder.master('local[2]')
for key, value in {
    'spark.driver.host': '127.0.0.1', 'spark.driver.bindAddress': '127.0.0.1',
    'spark.ui.enabled': 'false', 'spark.ui.showConsoleProgress': 'false', 'spark.sql.shuffle.partitions': '4',
    'spark.sql.files.openCostInBytes': '65536', 'spark.sql.sources.parallelPartitionDiscovery.threshold': '5000',
    'spark.sql.session.timeZone': 'UTC', 'spark.sql.sources.partitionColumnTypeInference.enabled': 'false',
}.items():
    builder = builder.config(key, value)
session = builder.getOrCreate()
def rows(sql):
    return [row.asDict() for row in session.sql(sql.rstrip().rstrip(';')).collect()]";

/// What follows each of them.
const PRINTED: &str = "
import json, sys, time
def timed(sql):
    started = time.monotonic()
    return {'rows': rows(sql), 'seconds': time.monotonic() - started}
print(json.dumps([timed(sql) for sql in sys.argv[1:]], default=str))
if 'session' in globals():
    session.stop()";

/// The recipes, and what identifies a row of theirs.
pub(crate) const RECIPES: [(&str, &[&str]); 7] = [
    ("hottest.sql", &["function"]),
    ("versions.sql", &["function"]),
    ("hosts.sql", &["host"]),
    ("over_time.sql", &["date", "hour"]),
    ("flamegraph.sql", &["line"]),
    ("allocating.sql", &["function"]),
    ("allocating_versions.sql", &["function"]),
];

/// An engine.
pub(crate) struct Engine {
    pub(crate) name: &'static str,
    /// The folder of its recipes.
    recipes: &'static str,
    /// What it calls all tables.
    tables: &'static str,
    /// Where its modules are.
    pub(crate) modules: PathBuf,
    script: &'static str,
}

impl Engine {
    pub(crate) fn duckdb() -> Result<Self, Stop> {
        let (tables, modules) = ("'profiles/**/*.parquet'", pypi::folder_of(DUCKDB)?);
        Ok(Self { name: "DuckDB", recipes: "docs/fleet", tables, modules, script: BY_DUCKDB })
    }

    pub(crate) fn clickhouse() -> Result<Self, Stop> {
        let (tables, modules) = ("file('profiles/**/*.parquet')", pypi::folder_of(CLICKHOUSE)?);
        let recipes = "docs/fleet/clickhouse";
        Ok(Self { name: "ClickHouse", recipes, tables, modules, script: BY_CLICKHOUSE })
    }

    pub(crate) fn spark() -> Result<Self, Stop> {
        let (tables, modules) = ("parquet.`profiles`", pypi::folder_with_dependencies(SPARK)?);
        Ok(Self { name: "Spark", recipes: "docs/fleet/spark", tables, modules, script: BY_SPARK })
    }

    /// The program of Python that runs queries.
    pub(crate) fn program(&self) -> String {
        format!("{}{PRINTED}", self.script)
    }

    /// A recipe as it is written down.
    pub(crate) fn recipe(&self, name: &str) -> Result<String, Stop> {
        Ok(fs::read_to_string(crate::paths::root().join(self.recipes).join(name))?)
    }

    /// The rows of the queries.
    fn answers(&self, test: &Context<'_>, queries: &[String]) -> Result<Vec<Vec<Value>>, Stop> {
        let queries: Vec<_> = queries.iter().map(String::as_str).collect();
        let modules = self.modules.display().to_string();
        let python = test.program("python3").env("PYTHONPATH", &modules).env("SPARK_LOCAL_IP", "127.0.0.1");
        let printed = python.args(&["-c", &self.program()]).args(&queries).run()?.succeeded()?;
        let printed: Vec<Value> = serde_json::from_str(&printed.stdout_text())?;
        Ok(printed.into_iter().map(|it| it["rows"].as_array().cloned().unwrap_or_default()).collect())
    }
}

fn clickhouse(test: &Context<'_>) -> Verdict {
    compare(test, &Engine::clickhouse()?)
}

fn spark(test: &Context<'_>) -> Verdict {
    if test.program("java").args(&["-version"]).run().is_err() {
        return skip("java is not installed");
    }
    compare(test, &Engine::spark()?)
}

fn compare(test: &Context<'_>, engine: &Engine) -> Verdict {
    make_profiles(test)?;
    let duckdb = Engine::duckdb()?;
    let asked = |engine: &Engine| -> Result<Vec<String>, Stop> {
        let sums = format!(
            "select function, sum(value) as value from {} where kind = 'cpu' group by function",
            engine.tables
        );
        let recipes = RECIPES.iter().map(|(name, _)| engine.recipe(name).map(|text| without_limit(&text)));
        [Ok(sums)].into_iter().chain(recipes).collect()
    };
    let expected = duckdb.answers(test, &asked(&duckdb)?)?;
    let answers = engine.answers(test, &asked(engine)?)?;
    expect_eq("answers", answers.len(), 1 + RECIPES.len())?;
    for (function, weight) in reported(test)? {
        let row = answers[0].iter().find(|row| row["function"] == *function);
        expect_eq(&function, row.and_then(|row| row["value"].as_u64()).unwrap_or_default(), weight)?;
    }
    for (((name, key), expected), answer) in RECIPES.iter().zip(&expected[1..]).zip(&answers[1..]) {
        expect(!expected.is_empty(), format_args!("{name}: no rows"))?;
        same_rows(name, key, (expected, answer))?;
    }
    Ok(())
}

/// The recipe for all rows: which are the first can depend on the last digit of a sum.
fn without_limit(recipe: &str) -> String {
    let lines = recipe.lines().map(|line| if line.starts_with("limit ") { ";" } else { line });
    lines.collect::<Vec<_>>().join("\n")
}

/// 1,000 profiles in the folder `profiles`: of 100 hosts, on two days, of two versions of a service. The folder `one`
/// has the same of one host, for the report.
fn make_profiles(test: &Context<'_>) -> Verdict {
    let versions = [recorded_tables(test, "1", "v1")?, recorded_tables(test, "2", "v2")?];
    let one = test.path("one/date=2026-01-01/host=all");
    fs::create_dir_all(&one)?;
    for number in 0..1000 {
        let (host, version, date) = (number / 10, number % 2, 1 + number / 2 % 2);
        let files: &[PathBuf] = &versions[version];
        // Any of them, so that hosts differ.
        let from = &files[(number.wrapping_mul(0x9e37_79b9) >> 8) % files.len()];
        let folder = test.path(&format!("profiles/date=2026-01-0{date}/host=web{host:02}"));
        fs::create_dir_all(&folder)?;
        let name = format!("{number}.parquet");
        fs::copy(from, folder.join(&name))?;
        fs::hard_link(folder.join(&name), one.join(name))?;
    }
    Ok(())
}

/// Each function's value by `nyquist report`.
fn reported(test: &Context<'_>) -> Result<BTreeMap<String, u64>, Stop> {
    let report = test.nyquist(&["report", "--json", "--limit", "0"]).path(&test.path("one"));
    let report: Value = serde_json::from_str(&report.run()?.succeeded()?.stdout_text())?;
    let interval = report["interval_ns"].as_u64().unwrap_or_default();
    let functions = report["functions"].as_array().into_iter().flatten();
    let own = functions.map(|function| {
        let name = function["function"].as_str().unwrap_or_default().to_owned();
        (name, function["self"].as_u64().unwrap_or_default() * interval)
    });
    Ok(own.filter(|(_, own)| *own > 0).collect())
}

/// Compares rows by their keys. Shares are rounded to a digit, and may differ by that.
fn same_rows(recipe: &str, key: &[&str], (expected, found): (&[Value], &[Value])) -> Verdict {
    let by_key = |rows: &[Value]| -> BTreeMap<String, Value> {
        let key = |row: &Value| key.iter().map(|name| row[*name].to_string()).collect::<Vec<_>>().join(" ");
        rows.iter().map(|row| (key(row), row.clone())).collect()
    };
    let (expected, found) = (by_key(expected), by_key(found));
    expect_eq(recipe, found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>())?;
    for (key, row) in &expected {
        for (column, value) in row.as_object().into_iter().flatten() {
            let other = &found[key][column];
            let is_same = match (value.as_f64(), other.as_f64()) {
                (Some(value), Some(other)) => (value - other).abs() < 0.11,
                _ => value == other,
            };
            expect(is_same, format_args!("{recipe}, {key}: {column} is {other}, and {value} in DuckDB"))?;
        }
    }
    Ok(())
}
