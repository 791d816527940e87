//! Compares the names of C++ in libraries with those that `c++filt --no-verbose` of binutils prints.
//!
//! `check-names [--verbose] /PATH...`: libraries with symbols. It also prints how long a name takes, here and with
//! `cpp_demangle`. `--verbose` prints the names that differ. What remains, with binutils 2.40:
//! - Lambdas in templates. Where a later part of the name refers to a type with `T_` in the lambda's function, c++filt
//!   takes `T_` for the parameter of that function, and it is the one of the function around the later part.
//! - A constructor behind a class that is named by a substitution: c++filt prints the name that it has read last.

use std::collections::BTreeSet;
use std::hint::black_box;
use std::io::Write as _;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

/// The share of names that must be alike: of those without lambdas, and of those with some.
const ALIKE: [f64; 2] = [0.9999, 0.85];
/// So many names must be there for that to mean something.
const MIN_NAMES: usize = 100_000;

fn main() -> ExitCode {
    let (options, files): (Vec<_>, Vec<_>) = std::env::args().skip(1).partition(|it| it.starts_with("--"));
    let is_verbose = options.iter().any(|option| option == "--verbose");
    let names: BTreeSet<String> = files.iter().flat_map(|file| names_in(file)).collect();
    let names: Vec<String> = names.into_iter().collect();
    if names.len() < MIN_NAMES {
        println!("skipped: nm finds only {} names of C++ in the libraries of gcc and rustc", names.len());
        return ExitCode::SUCCESS;
    }
    let Some(printed) = print_by_cxxfilt(&names) else {
        println!("skipped: c++filt is not installed");
        return ExitCode::SUCCESS;
    };
    let known = || names.iter().zip(&printed).filter(|(name, printed)| name != printed);
    if is_verbose {
        for (name, printed) in known().filter(|(name, printed)| nyquist_symbols::demangle(name) != **printed)
        {
            println!("{name}\n  {}\n  {printed}", nyquist_symbols::demangle(name));
        }
    }
    let mut is_well = true;
    for (what, has_lambdas, least) in [("without lambdas", false, ALIKE[0]), ("with lambdas", true, ALIKE[1])]
    {
        let these = || known().filter(|(_, printed)| printed.contains("{lambda(") == has_lambdas);
        let all = these().count();
        let differ = these().filter(|(name, printed)| nyquist_symbols::demangle(name) != **printed).count();
        println!("{all} names {what}: {differ} differ from what c++filt prints");
        is_well &= (all - differ) as f64 >= least * all as f64;
    }
    println!(
        "{:.0} ns a name, {:.0} with cpp_demangle",
        time(&names, |name| nyquist_symbols::demangle(name).len()),
        time(&names, |name| {
            cpp_demangle::Symbol::new(name).ok().and_then(|it| it.demangle().ok()).map_or(0, |it| it.len())
        }),
    );
    if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The names of C++ in both tables of a file, without versions. Names of old Rust, which look alike, are left out.
fn names_in(file: &str) -> Vec<String> {
    let symbols = |table: &[&str]| {
        let output = Command::new("nm").args(table).arg(file).stderr(Stdio::null()).output();
        String::from_utf8_lossy(&output.map(|output| output.stdout).unwrap_or_default()).into_owned()
    };
    let all = symbols(&[]) + &symbols(&["-D"]);
    let names = all.lines().filter_map(|line| line.rsplit(' ').next()?.split('@').next());
    names.filter(|name| name.starts_with("_Z") && !name.contains("17h")).map(str::to_owned).collect()
}

fn print_by_cxxfilt(names: &[String]) -> Option<Vec<String>> {
    let mut filter = Command::new("c++filt");
    filter.arg("--no-verbose").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut filter = filter.spawn().ok()?;
    let mut input = filter.stdin.take()?;
    let text = names.join("\n") + "\n";
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let output = filter.wait_with_output().ok()?;
    writer.join().ok()?.ok()?;
    let printed: Vec<String> = String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
    (printed.len() == names.len()).then_some(printed)
}

/// The time for a name, in nanoseconds.
fn time(names: &[String], demangle: impl Fn(&str) -> usize) -> f64 {
    let start = Instant::now();
    for name in names {
        black_box(demangle(name));
    }
    start.elapsed().as_nanos() as f64 / names.len() as f64
}
