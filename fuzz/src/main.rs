//! Runs the fuzz targets without instrumentation, on any compiler:
//! `fuzz-driver seeds | list | run TARGET SECONDS SEED INPUTS`.

mod drive;
mod seeds;

use std::process::ExitCode;

use nyquist_fuzz::targets::TARGETS;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match *words.as_slice() {
        ["seeds"] => seeds::write_all().map_err(|error| error.to_string()),
        ["list"] => {
            TARGETS.iter().for_each(|(name, _)| println!("{name}"));
            Ok(())
        }
        ["run", target, seconds, seed, most] => drive::run(target, seconds, seed, most),
        _ => Err("usage: fuzz-driver seeds | list | run TARGET SECONDS SEED INPUTS".to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::FAILURE
        }
    }
}
