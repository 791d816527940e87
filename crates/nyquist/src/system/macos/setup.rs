//! `nyquist setup`: signs this program, so that the system lets it look at other programs. Nothing is changed
//! without confirmation.

use crate::args::SetupArgs;
use crate::failure::{Failure, io_reason};
use crate::page;
use crate::system::asking::agrees;
use nyquist_record::macos::{Entitlement, sign_file};
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// Runs the subcommand and returns the exit status.
pub(crate) fn run(args: SetupArgs) -> Result<u8, Failure> {
    let only_linux = [(args.lasting, "--lasting"), (args.capabilities, "--capabilities")];
    if let Some((_, option)) = only_linux.into_iter().find(|(is_given, _)| *is_given) {
        return Err(Failure::new(format!("{option} is for Linux: here, setup signs this program"))
            .hint(format!("leave out {option}")));
    }
    let program = env::current_exe().and_then(fs::canonicalize);
    let program =
        program.map_err(|error| Failure::because("cannot find the file of this program", &error))?;
    page::print(shown(&program, args.dry_run))?;
    if args.dry_run {
        page::print("Nothing was changed (--dry-run).\n")?;
    } else if agrees(args.yes)? {
        sign(&program)?;
        page::print("Done.\n")?;
    }
    Ok(0)
}

/// The text to show before the change.
fn shown(program: &Path, dry_run: bool) -> String {
    let is = if dry_run { "would be" } else { "is" };
    format!(
        "This file {is} signed on this machine, with the entitlement {}:\n  {}\n      \
         nyquist can then record your programs; the system may ask for an administrator's password once\n      \
         a signature that it has now is replaced, and a new version of the file has to be signed again\n",
        Entitlement::Debugger.name(),
        program.display()
    )
}

/// Signs a copy beside the file, and puts it in its place: the system ends a program whose file is changed while
/// it runs.
fn sign(program: &Path) -> Result<(), Failure> {
    let copy = temporary_path(program);
    let cannot = |what: &str, error: &io::Error| {
        Failure::new(format!("cannot {what} {}: {}", copy.display(), io_reason(error)))
            .hint(format!("sudo {} setup", program.display()))
    };
    // It must be a new file: the copy follows no link that is there.
    fs::File::create_new(&copy).map_err(|error| cannot("write", &error))?;
    let replace = || {
        fs::copy(program, &copy).map_err(|error| cannot("write", &error))?;
        sign_file(&copy, Entitlement::Debugger)
            .map_err(|why| Failure::new(format!("{} cannot be signed: {why}", program.display())))?;
        fs::rename(&copy, program).map_err(|error| cannot("rename", &error))
    };
    let replaced = replace();
    if replaced.is_err() {
        let _ = fs::remove_file(&copy);
    }
    replaced
}

fn temporary_path(program: &Path) -> PathBuf {
    let mut name = program.as_os_str().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    name.into()
}
