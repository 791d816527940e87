//! `cargo-nyquist`, which cargo runs for `cargo nyquist`: passes its arguments to the `nyquist` beside it.

use nyquist_system::replace_process;
use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let mut argv: Vec<OsString> = env::args_os().skip(1).collect();
    // Cargo passes the subcommand's name as the first argument. A direct call of this program lacks it.
    if argv.first().is_some_and(|word| word == "nyquist") {
        argv.remove(0);
    }
    let program = sibling_program().unwrap_or_else(|| PathBuf::from("nyquist"));
    // The first `--` ends nyquist's own options. One that the user typed would be taken for it.
    let error = replace_process(Command::new(&program).args(["cargo", "--"]).args(argv));
    eprintln!("error: cannot run {}: {error}", program.display());
    eprintln!(
        "\nhint: `cargo install --path crates/nyquist` in a clone installs `nyquist` and `cargo-nyquist` together"
    );
    ExitCode::FAILURE
}

/// The `nyquist` that was installed together with this program.
fn sibling_program() -> Option<PathBuf> {
    let path = env::current_exe().ok()?.with_file_name(format!("nyquist{}", env::consts::EXE_SUFFIX));
    path.is_file().then_some(path)
}
