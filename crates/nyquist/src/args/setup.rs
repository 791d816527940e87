//! The arguments of `nyquist setup`.

use clap::Args;

/// Examples of what this system has.
const EXAMPLES: &str = if cfg!(target_os = "linux") {
    "Examples:
  nyquist setup --user                 Install completions and man pages below your home folder
  nyquist setup --dry-run              Show what would be changed
  sudo nyquist setup                   Allow recording with kernel code to everybody, until reboot
  sudo nyquist setup --lasting         The same for good
  sudo nyquist setup --capabilities    Leave the machine as it is: give this program the privileges"
} else {
    "Examples:
  nyquist setup --user                 Install completions and man pages below your home folder
  nyquist setup --dry-run              Show what would be changed
  nyquist setup                        Sign this program, so that it may record others"
};

/// `nyquist setup`
#[derive(Clone, Copy, Debug, Args)]
#[command(after_help = EXAMPLES)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct SetupArgs {
    /// Keep the settings across reboots, in /etc/sysctl.d/60-nyquist.conf
    #[arg(long, conflicts_with = "capabilities")]
    pub(crate) lasting: bool,
    /// Give this program cap_perfmon, cap_sys_ptrace and cap_syslog instead of changing settings
    #[arg(long)]
    pub(crate) capabilities: bool,
    /// Install completions (bash, zsh, fish) and man pages for yourself, and say what to add to your shell's
    /// variables; the machine's settings stay as they are
    #[arg(long, conflicts_with_all = ["lasting", "capabilities", "yes"])]
    pub(crate) user: bool,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Only show what would be changed
    #[arg(long, conflicts_with = "yes")]
    pub(crate) dry_run: bool,
}
