//! What programs have allocated, as nyquist, heaptrack and DHAT count it, and the sites that have most of it.

mod counted;
mod dhat;
mod heaptrack;
mod names;
mod nyquist;
mod tool;

use anyhow::Result;

use self::counted::{Agreement, Counted, MEASURES, TOP};
use super::bench::Bench;
use super::programs::{Program, deterministic};

/// A tool, with what it has counted in each run.
struct Tool {
    name: &'static str,
    runs: Vec<Counted>,
}

pub(super) fn run(bench: &Bench<'_>) -> Result<()> {
    let mut counted = Vec::new();
    for program in deterministic(bench)? {
        eprintln!("sites of {}", program.name);
        let tools = count(bench, &program)?;
        counted.push((program, tools));
    }
    println!(
        "\n| program | tool | bytes in all | blocks | bytes at the peak | bytes at the end |\n|---|---|---|---|---|---|"
    );
    for (program, tools) in &counted {
        for tool in tools {
            print_sums(program, tool);
        }
    }
    println!(
        "\n| program | nyquist beside | measure | sites | of the other's top {TOP} by name | the same within 1 % | all differences, of the sites' sum |\n|---|---|---|---|---|---|---|"
    );
    let mut different = Vec::new();
    for (program, tools) in &counted {
        let Some((own, others)) = tools.split_first() else { continue };
        for (name, other) in pairs(own, others) {
            let agreements = own.runs[0].agreements(other);
            for (measure, agreement) in MEASURES.iter().zip(agreements) {
                let Some(agreement) = agreement else { continue };
                println!("| {} | {name} | {measure} | {} |", program.name, cells(&agreement));
                different.extend(agreement.different.into_iter().map(|it| (program.name, name, measure, it)));
            }
        }
    }
    println!("\n| program | beside | measure | site | nyquist | the other |\n|---|---|---|---|---|---|");
    for (program, name, measure, (site, own, other)) in different {
        println!("| {program} | {name} | {measure} | `{site}` | {own:.0} | {other:.0} |");
    }
    Ok(())
}

fn count(bench: &Bench<'_>, program: &Program) -> Result<Vec<Tool>> {
    type Count = fn(&Bench<'_>, &Program) -> Result<Counted>;
    // Two runs of a tool say how far it differs from itself. DHAT takes minutes for a compiler.
    let has_dhat = usize::from(dhat::is_there());
    let tools: [(&'static str, usize, Count); 4] = [
        ("nyquist", 2, nyquist::count),
        ("heaptrack", if heaptrack::is_there() { 2 } else { 0 }, heaptrack::count),
        ("DHAT", has_dhat, dhat::count),
        ("DHAT, by the caller of `realloc`", has_dhat, dhat::count_by_caller),
    ];
    let counted = tools.into_iter().filter(|(_, runs, _)| *runs > 0).map(|(name, runs, count)| {
        let runs = (0..runs).map(|_| count(bench, program)).collect::<Result<_>>()?;
        Ok(Tool { name, runs })
    });
    counted.collect()
}

/// What nyquist's first run is compared with: its second, and the first of each other tool.
fn pairs<'a>(own: &'a Tool, others: &'a [Tool]) -> Vec<(&'static str, &'a Counted)> {
    let again = own.runs.get(1).map(|run| ("itself", run));
    let others = others.iter().filter_map(|tool| Some((tool.name, tool.runs.first()?)));
    again.into_iter().chain(others).collect()
}

/// The least and the greatest sums of a tool's runs.
fn print_sums(program: &Program, tool: &Tool) {
    let sums: Vec<_> = tool.runs.iter().map(Counted::sums).collect();
    let cell = |at: usize| {
        let of_runs = || sums.iter().filter_map(|sums| sums[at]);
        let (least, greatest) = (of_runs().fold(f64::MAX, f64::min), of_runs().fold(0.0, f64::max));
        match of_runs().next() {
            None => "–".to_owned(),
            Some(_) if least < greatest => format!("{least:.0}–{greatest:.0}"),
            Some(_) => format!("{least:.0}"),
        }
    };
    println!("| {} | {} | {} | {} | {} | {} |", program.name, tool.name, cell(0), cell(1), cell(2), cell(3));
}

fn cells(agreement: &Agreement) -> String {
    let Agreement { count, same_names, same_sums, apart, .. } = agreement;
    format!("{count} | {same_names} | {same_sums} | {:.2} %", 100.0 * apart)
}
