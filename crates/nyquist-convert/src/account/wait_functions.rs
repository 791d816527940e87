//! What a thread waits for, by the functions of the kernel that it waits in.

use crate::event::WaitReason;
use nyquist_object::Avma;
use nyquist_symbols::KernelSymbols;
use rustc_hash::FxHashMap;

/// The reasons of waits by addresses in the kernel. Each address is looked up once.
#[derive(Debug, Default)]
pub(crate) struct WaitFunctions {
    symbols: Option<Box<KernelSymbols>>,
    known: FxHashMap<Avma, KernelFunction>,
}

/// What a function of the kernel says about a wait.
#[derive(Clone, Copy, Debug, Default)]
struct KernelFunction {
    reason: Option<WaitReason>,
    /// Whether it serves the system call whose first argument is the address of a futex.
    takes_futex: bool,
}

impl WaitFunctions {
    /// Finds functions by the symbols of the recorded kernel, if they are known.
    pub(crate) fn new(symbols: Option<KernelSymbols>) -> Self {
        Self { symbols: symbols.map(Box::new), known: FxHashMap::default() }
    }

    /// The reason of a wait with this kernel stack, innermost first. If the stack has a page fault, that is
    /// the reason, whatever the kernel waits for to handle it. Otherwise the innermost function that has a
    /// reason determines it.
    pub(crate) fn reason(&mut self, kernel_stack: &[Avma]) -> WaitReason {
        let mut found = None;
        for address in kernel_stack {
            match self.of_address(*address).reason {
                Some(WaitReason::Page) => return WaitReason::Page,
                reason => found = found.or(reason),
            }
        }
        found.unwrap_or(WaitReason::Other)
    }

    /// Whether the thread is in the system call whose first argument is the address of a futex.
    pub(crate) fn take_futex(&mut self, kernel_stack: &[Avma]) -> bool {
        kernel_stack.iter().any(|address| self.of_address(*address).takes_futex)
    }

    /// The function at a return address, which is the address after the call.
    fn of_address(&mut self, address: Avma) -> KernelFunction {
        let Some(symbols) = &self.symbols else { return KernelFunction::default() };
        *self.known.entry(address).or_insert_with(|| {
            let symbol = symbols.lookup(Avma(address.0.saturating_sub(1))).symbol;
            symbol.map_or_else(KernelFunction::default, |symbol| KernelFunction {
                reason: of_function(&symbol.name),
                takes_futex: *symbol.name == *"do_futex",
            })
        })
    }
}

/// The prefixes of the names of functions that indicate a reason. The names are those of Linux 5.4 to 6.18.
const BEGINNINGS: [(WaitReason, &[&str]); 14] = [
    (
        WaitReason::Page,
        &["handle_mm_fault", "exc_page_fault", "do_page_fault", "do_mem_abort", "handle_userfault"],
    ),
    (
        WaitReason::Lock,
        &["futex_lock_pi", "rt_mutex_", "__rt_mutex_", "flock_lock", "posix_lock", "fcntl_setlk"],
    ),
    (WaitReason::Futex, &["futex_", "__futex_", "do_futex"]),
    (WaitReason::Lock, &["__mutex_lock", "mutex_lock", "rwsem_down_", "__down"]),
    (WaitReason::Semaphore, &["__do_semtimedop"]),
    (WaitReason::Stopped, &["do_signal_stop", "ptrace_stop", "ptrace_notify"]),
    // The compiler puts the first one into the last one. A stop has its own function.
    (WaitReason::Frozen, &["do_freezer_trap", "__refrigerator", "get_signal"]),
    (WaitReason::Sleep, &["do_nanosleep", "hrtimer_nanosleep", "common_nsleep", "msleep"]),
    (WaitReason::Pipe, &["pipe_", "anon_pipe_", "fifo_", "wait_for_partner"]),
    (
        WaitReason::Network,
        &[
            "unix_",
            "__unix_",
            "tcp_",
            "udp_",
            "inet_",
            "inet6_",
            "inet_csk_",
            "sock_",
            "sk_",
            "skb_",
            "__skb_",
            "netlink_",
            "vsock_",
        ],
    ),
    (
        WaitReason::Events,
        &[
            "ep_poll",
            "do_epoll_",
            "do_poll",
            "do_sys_poll",
            "do_select",
            "core_sys_select",
            "io_cqring_wait",
            "eventfd_",
            "inotify_",
        ],
    ),
    (WaitReason::Child, &["do_wait", "__do_wait", "kernel_wait4", "wait_for_vfork_done"]),
    (
        WaitReason::Signal,
        &[
            "sigsuspend",
            "do_sigtimedwait",
            "__do_sys_pause",
            "__se_sys_pause",
            "__x64_sys_pause",
            "__arm64_sys_pause",
        ],
    ),
    (WaitReason::Terminal, &["n_tty_", "tty_"]),
];

/// The prefixes of the names of functions that wait for a file or its device.
const FILES: [&str; 18] = [
    "io_schedule",
    "folio_wait_",
    "__folio_",
    "wait_on_page_",
    "__wait_on_buffer",
    "bit_wait_io",
    "jbd2_",
    "ext4_",
    "btrfs_",
    "xfs_",
    "f2fs_",
    "blkdev_",
    "submit_bio_wait",
    "blk_",
    "balance_dirty_pages",
    "fuse_",
    "nfs_",
    "p9_",
];

/// The reason that a function of the kernel indicates.
fn of_function(name: &str) -> Option<WaitReason> {
    let begins = |beginnings: &[&str]| beginnings.iter().any(|beginning| name.starts_with(beginning));
    let known = BEGINNINGS.iter().find(|(_, beginnings)| begins(beginnings)).map(|(reason, _)| *reason);
    known.or_else(|| begins(&FILES).then_some(WaitReason::File))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KALLSYMS: &str = "ffffffff81000000 T _stext\n\
        ffffffff81000100 T __schedule\n\
        ffffffff81000200 T schedule\n\
        ffffffff81000300 T futex_wait_queue\n\
        ffffffff81000400 T io_schedule\n\
        ffffffff81000500 T exc_page_fault\n\
        ffffffff81000600 T do_wait\n\
        ffffffff81000700 T __x64_sys_wait4\n\
        ffffffff81000800 T _etext\n";

    fn reason(stack: &[u64]) -> WaitReason {
        let symbols = KernelSymbols::parse(KALLSYMS.as_bytes(), std::io::empty(), &[]).unwrap();
        let stack: Vec<_> = stack.iter().map(|offset| Avma(0xffff_ffff_8100_0000 + offset)).collect();
        WaitFunctions::new(Some(symbols)).reason(&stack)
    }

    #[test]
    fn the_innermost_function_decides_the_reason() {
        assert_eq!(reason(&[0x110, 0x210, 0x310, 0x710]), WaitReason::Futex);
        assert_eq!(reason(&[0x110, 0x210, 0x610, 0x710]), WaitReason::Child);
        assert_eq!(reason(&[0x110, 0x410, 0x610]), WaitReason::File);
        assert_eq!(reason(&[0x110, 0x210]), WaitReason::Other);
    }

    #[test]
    fn a_page_fault_waits_for_a_page_alone() {
        assert_eq!(reason(&[0x110, 0x410, 0x510]), WaitReason::Page);
    }

    /// If a call is a function's last instruction, its return address is in the next function.
    #[test]
    fn a_return_address_is_of_the_function_before() {
        assert_eq!(reason(&[0x400]), WaitReason::Futex);
    }

    #[test]
    fn without_symbols_no_reason_is_known() {
        assert_eq!(WaitFunctions::default().reason(&[Avma(0xffff_ffff_8100_0310)]), WaitReason::Other);
    }

    #[test]
    fn names_of_kernels_tell_reasons() {
        let named = [
            ("futex_wait_queue_me", WaitReason::Futex),
            ("futex_lock_pi", WaitReason::Lock),
            ("__mutex_lock.constprop.0", WaitReason::Lock),
            ("do_signal_stop", WaitReason::Stopped),
            ("get_signal", WaitReason::Frozen),
            ("hrtimer_nanosleep", WaitReason::Sleep),
            ("pipe_read", WaitReason::Pipe),
            ("anon_pipe_read", WaitReason::Pipe),
            ("unix_stream_read_generic", WaitReason::Network),
            ("sk_wait_data", WaitReason::Network),
            ("ep_poll", WaitReason::Events),
            ("do_sys_poll", WaitReason::Events),
            ("n_tty_read", WaitReason::Terminal),
            ("jbd2_log_wait_commit", WaitReason::File),
            ("folio_wait_bit_common", WaitReason::File),
        ];
        for (name, reason) in named {
            assert_eq!(of_function(name), Some(reason), "{name}");
        }
        assert_eq!(of_function("schedule_timeout"), None);
    }
}
