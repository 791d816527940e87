//! `nyquist report`: the functions of a profile as a table or as JSON.

use crate::args::ReportArgs;
use crate::failure::{Failure, io_reason};
use crate::load;
use crate::number::{grouped, percent};
use crate::printer::Printer;
use nyquist_analysis::{Amount, Filter, Function, FunctionTable, Summary};
use nyquist_profile::Profile;
use serde_json::{Value, json};
use std::io::{self, IsTerminal as _, Write};

/// Runs the subcommand.
pub(crate) fn run(args: &ReportArgs) -> Result<(), Failure> {
    let profile = load::read(&args.file, Printer::new(args.verbosity))?;
    let everything = Filter::default();
    let table = nyquist_analysis::functions(&profile, &everything);
    let summary = nyquist_analysis::summary(&profile, &everything);
    let limit = if args.limit == 0 { usize::MAX } else { args.limit };
    let text = if args.json {
        let json = to_json(&profile, &summary, &table, limit);
        format!("{json:#}\n")
    } else {
        to_text(&profile, &summary, &table, limit, terminal_width())
    };
    match io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()) {
        // Whoever reads has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(Failure::new(format!("cannot write the report: {}", io_reason(&error)))),
        Ok(()) => Ok(()),
    }
}

/// The terminal's width; `None` where the table goes elsewhere, and nothing is cut.
fn terminal_width() -> Option<usize> {
    let stdout = io::stdout();
    if !stdout.is_terminal() {
        return None;
    }
    let columns = rustix::termios::tcgetwinsize(&stdout).map_or(0, |size| size.ws_col);
    Some(if columns == 0 { 80 } else { usize::from(columns) })
}

/// The JSON of `docs/report-json.md`.
fn to_json(profile: &Profile, summary: &Summary, table: &FunctionTable, limit: usize) -> Value {
    let share = |weight: u64| ratio(weight, table.total.weight);
    let function = |function: &Function| {
        json!({
            "function": function.name,
            "lib": function.lib,
            "file": function.file,
            "self": function.self_amount.weight,
            "total": function.total.weight,
            "self_share": share(function.self_amount.weight),
            "total_share": share(function.total.weight),
        })
    };
    json!({
        "schema": "nyquist-report/1",
        "profile": profile.meta().product,
        "interval_ns": summary.interval_ns,
        "duration_ns": summary.duration_ns,
        "cpu_ns": summary.cpu_ns,
        "samples": summary.samples,
        "lost_samples": summary.lost_samples,
        "weight": table.total.weight,
        "user_weight": summary.user.weight,
        "kernel_weight": summary.kernel.weight,
        "kernel_not_permitted_weight": summary.kernel_not_permitted.weight,
        "not_sampled_weight": summary.not_sampled.weight,
        "truncated_weight": summary.truncated.weight,
        "function_count": table.functions.len(),
        "functions": table.functions.iter().take(limit).map(function).collect::<Vec<_>>(),
    })
}

fn to_text(
    profile: &Profile,
    summary: &Summary,
    table: &FunctionTable,
    limit: usize,
    width: Option<usize>,
) -> String {
    let mut text = heading(profile, summary);
    let rows: Vec<Row> =
        table.functions.iter().take(limit).map(|function| Row::new(function, table, summary)).collect();
    let columns = Columns::fit(&rows, width);
    text.push_str(&columns.line(["SELF", "", "TOTAL", ""], "LIB", "FUNCTION"));
    for row in &rows {
        text.push_str(&columns.line(
            [&row.own[0], &row.own[1], &row.total[0], &row.total[1]],
            &row.lib,
            &row.name,
        ));
    }
    let more = table.functions.len() - rows.len();
    if more > 0 {
        text.push_str(&grouped(more as u64));
        text.push_str(" more functions (--limit 0 shows all)\n");
    }
    text
}

/// What was recorded, in two or three lines.
fn heading(profile: &Profile, summary: &Summary) -> String {
    let total = summary.total.weight;
    let seconds = |weight: u64| (weight * summary.interval_ns) as f64 / 1e9;
    let share = |amount: Amount| percent(ratio(amount.weight, total));
    let mut shares =
        vec![format!("user {}", share(summary.user)), format!("kernel {}", share(summary.kernel))];
    if summary.kernel_not_permitted.weight > 0 {
        shares[1].push_str(" (not permitted to sample)");
    }
    if summary.not_sampled.weight > 0 {
        shares.push(format!("not sampled {}", share(summary.not_sampled)));
    }
    let mut lines = vec![
        format!(
            "{}: {:.2} s of CPU time in {:.2} s, {}",
            profile.meta().product,
            seconds(total),
            summary.duration_ns as f64 / 1e9,
            count_of_threads(summary)
        ),
        shares.join(", "),
    ];
    if summary.lost_samples > 0 {
        lines.push(format!("{} samples were lost", grouped(summary.lost_samples)));
    }
    if summary.truncated.weight > 0 {
        let share = share(summary.truncated);
        lines.push(format!("{share} in stacks that do not reach their root"));
    }
    lines.join("\n") + "\n\n"
}

fn count_of_threads(summary: &Summary) -> String {
    let plural = |count: usize, one: &str, many: &str| {
        format!("{} {}", grouped(count as u64), if count == 1 { one } else { many })
    };
    format!(
        "{} in {}",
        plural(summary.threads, "thread", "threads"),
        plural(summary.processes, "process", "processes")
    )
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// A row as text.
struct Row {
    /// Share and time.
    own: [String; 2],
    total: [String; 2],
    name: String,
    lib: String,
}

impl Row {
    fn new(function: &Function, table: &FunctionTable, summary: &Summary) -> Self {
        let amounts = |weight: u64| {
            let milliseconds = weight as f64 * summary.interval_ns as f64 / 1e6;
            [
                percent(ratio(weight, table.total.weight)),
                format!("{} ms", grouped(milliseconds.round() as u64)),
            ]
        };
        Self {
            own: amounts(function.self_amount.weight),
            total: amounts(function.total.weight),
            name: function.name.clone(),
            lib: function.lib.clone().unwrap_or_default(),
        }
    }
}

/// The widths of the columns, in characters.
struct Columns {
    numbers: [usize; 4],
    lib: usize,
    /// The last column, so that long names push nothing away.
    name: usize,
}

impl Columns {
    /// Widths for the rows. Where the terminal is too narrow, names and libs are cut in the middle.
    fn fit(rows: &[Row], terminal: Option<usize>) -> Self {
        const MIN_NAME: usize = 24;
        let widest = |cells: &dyn Fn(&Row) -> &str, heading: &str| {
            rows.iter().map(|row| cells(row).chars().count()).max().unwrap_or(0).max(heading.len())
        };
        let numbers = [
            widest(&|row| &row.own[0], "SELF"),
            widest(&|row| &row.own[1], ""),
            widest(&|row| &row.total[0], "TOTAL"),
            widest(&|row| &row.total[1], ""),
        ];
        let (mut lib, mut name) = (widest(&|row| &row.lib, "LIB"), widest(&|row| &row.name, "FUNCTION"));
        if let Some(terminal) = terminal {
            let room = terminal.saturating_sub(numbers.iter().sum::<usize>() + 9).max(MIN_NAME);
            lib = lib.min(room / 4);
            name = name.min(room - lib);
        }
        Self { numbers, lib, name }
    }

    fn line(&self, numbers: [&str; 4], lib: &str, name: &str) -> String {
        let [own, own_time, total, total_time] = self.numbers;
        let line = format!(
            "{:>own$} {:>own_time$}  {:>total$} {:>total_time$}   {:<width$}  {}",
            numbers[0],
            numbers[1],
            numbers[2],
            numbers[3],
            cut(lib, self.lib),
            cut(name, self.name),
            width = self.lib
        );
        line.trim_end().to_owned() + "\n"
    }
}

/// The text in at most `width` characters: the ends of long names tell more than their middles.
fn cut(text: &str, width: usize) -> String {
    let count = text.chars().count();
    if count <= width {
        return text.to_owned();
    }
    let room = width.saturating_sub(1);
    let head: String = text.chars().take(room.div_ceil(2)).collect();
    let tail: String = text.chars().skip(count - room / 2).collect();
    format!("{head}…{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, lib: &str) -> Row {
        let amounts = ["50.0%".to_owned(), "500 ms".to_owned()];
        Row { own: amounts.clone(), total: amounts, name: name.to_owned(), lib: lib.to_owned() }
    }

    #[test]
    fn a_name_is_cut_in_its_middle() {
        let check = |text, width, expected| assert_eq!(cut(text, width), expected);
        check("short", 5, "short");
        check("abcdefghij", 7, "abc…hij");
        check("abcdefghij", 6, "abc…ij");
        check("äöüßäöüß", 3, "ä…ß");
        check("abc", 0, "…");
    }

    #[test]
    fn lines_fit_the_terminal() {
        let long = "a::very::long::path::to::a::function::with::many::parts::in::it::and::more::of::them";
        let rows = [row(long, "libwith_a_very_long_name-0123456789abcdef.so"), row("main", "app")];
        for width in [80, 100, 200] {
            let columns = Columns::fit(&rows, Some(width));
            for row in &rows {
                let line = columns.line(
                    [&row.own[0], &row.own[1], &row.total[0], &row.total[1]],
                    &row.name,
                    &row.lib,
                );
                assert!(line.trim_end().chars().count() <= width, "{width}: {line}");
            }
        }
    }

    #[test]
    fn elsewhere_nothing_is_cut() {
        let rows = [row(&"x".repeat(500), "app")];
        assert_eq!(Columns::fit(&rows, None).name, 500);
    }
}
