//! `nyquist setup`: shows changes that permit more to be recorded, asks for confirmation, and applies them.
//! Nothing is changed without confirmation.

mod apply;
mod capabilities;
mod plan;

use crate::args::SetupArgs;
use crate::failure::Failure;
use crate::page;
use crate::setup::asking::agrees;
use nyquist_record::linux::machine::{Settings, is_root, requested_ring_kb};
use std::path::Path;

/// Runs the subcommand and returns the exit status.
pub(crate) fn run(args: SetupArgs) -> Result<u8, Failure> {
    if args.capabilities { give_capabilities(args) } else { change_settings(args) }?;
    Ok(0)
}

fn change_settings(args: SetupArgs) -> Result<(), Failure> {
    let settings = Settings::now();
    if settings.perf_event_paranoid.is_none() {
        return Err(Failure::new("this kernel was built without perf events: no setting changes that")
            .hint("programs are recorded by ptrace: nyquist record --backend ptrace"));
    }
    let changes = plan::changes(&settings, requested_ring_kb());
    if changes.is_empty() && !args.lasting {
        return page::print("Nothing to change: the settings allow all that recording needs.\n");
    }
    let until = if args.lasting { "for good" } else { "until the machine is started again" };
    let are = if is_done(args, is_root()) { "are" } else { "would be" };
    let mut shown = format!("These settings {are} changed, {until}:\n{}", plan::describe(&changes));
    let file = plan::lasting(&settings, requested_ring_kb());
    if args.lasting {
        let lines = file.lines().map(|line| format!("      {line}\n"));
        let is = if is_done(args, is_root()) { "is" } else { "would be" };
        shown.extend([format!("  /{} {is} written:\n", apply::LASTING)].into_iter().chain(lines));
    }
    if !wants(args, &shown)? {
        return Ok(());
    }
    apply::set(Path::new("/"), &changes)?;
    if args.lasting {
        apply::move_to_end(Path::new("/"), &file)?;
    }
    page::print("Done.\n")
}

fn give_capabilities(args: SetupArgs) -> Result<(), Failure> {
    let program = capabilities::own_program()?;
    let is = if is_done(args, is_root()) { "is" } else { "would be" };
    let shown = format!("This file {is} given capabilities:\n{}", capabilities::describe(&program));
    if wants(args, &shown)? {
        capabilities::give(&program)?;
        page::print("Done.\n")?;
    }
    Ok(())
}

/// Whether the changes will be made, unless the user refuses.
fn is_done(args: SetupArgs, is_root: bool) -> bool {
    is_root && !args.dry_run
}

/// Shows the changes, and asks whether to apply them. Without root it fails with the command to run.
fn wants(args: SetupArgs, shown: &str) -> Result<bool, Failure> {
    page::print(shown)?;
    if args.dry_run {
        return page::print("Nothing was changed (--dry-run).\n").map(|()| false);
    }
    if !is_root() {
        let program = capabilities::own_program()?;
        let options = [(args.lasting, " --lasting"), (args.capabilities, " --capabilities")];
        let options: String = options.iter().filter(|(given, _)| *given).map(|(_, option)| *option).collect();
        return Err(Failure::new("only root may change this")
            .hint(format!("sudo {} setup{options}", program.display())));
    }
    agrees(args.yes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_done_is_not_said_to_be() {
        let args =
            |yes, dry_run| SetupArgs { lasting: false, capabilities: false, user: false, yes, dry_run };
        assert!(is_done(args(true, false), true) && is_done(args(false, false), true));
        assert!(!is_done(args(true, false), false) && !is_done(args(false, true), true));
    }
}
