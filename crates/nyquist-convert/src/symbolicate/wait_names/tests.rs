//! Tests of what threads wait for: stacks of real programs, the innermost function first.

use super::search::{Answer, Found, clue, search};
use crate::event::WaitReason;

/// Parses a stack: `function` or `lib!function`, separated by ` < `. Functions without a lib are the program's.
fn found(first: WaitReason, stack: &str) -> Option<Found> {
    let functions = stack.split(" < ").map(|function| {
        let (lib, name) = function.split_once('!').unwrap_or(("app", function));
        clue(name, lib)
    });
    search(first, functions)
}

fn answer(first: WaitReason, stack: &str) -> String {
    match found(first, stack).map(|found| found.answer) {
        Some(Answer::Reason(reason)) => reason.text().to_owned(),
        Some(Answer::Idle(runtime)) => format!("idle: {runtime}"),
        None => "-".to_owned(),
    }
}

fn check(first: WaitReason, stacks: &[(&str, &str)]) {
    for (expected, stack) in stacks {
        assert_eq!(answer(first, stack), *expected, "{stack}");
    }
}

#[test]
fn waits_by_pthreads_are_told_apart() {
    check(
        WaitReason::Futex,
        &[
            ("lock", "libc.so.6!__lll_lock_wait < libc.so.6!___pthread_mutex_lock < work < main"),
            ("lock", "libc.so.6!__lll_lock_wait < libc.so.6!__pthread_mutex_lock_full < work < main"),
            ("lock", "libc.so.6!0x8a1b0 < libc.so.6!pthread_mutex_lock < work < main"),
            ("lock", "libc.so.6!__lll_lock_wait_private < libc.so.6!malloc < work"),
            (
                "lock",
                "libc.so.6!__lll_lock_wait < libc.so.6!__pthread_mutex_cond_lock < libc.so.6!___pthread_cond_wait < work",
            ),
            ("rwlock", "libc.so.6!__futex_abstimed_wait64 < libc.so.6!___pthread_rwlock_rdlock < work"),
            (
                "condition variable",
                "libc.so.6!__futex_abstimed_wait_common64 < libc.so.6!__futex_abstimed_wait_cancelable64 < libc.so.6!__pthread_cond_wait_common < libc.so.6!___pthread_cond_wait < work",
            ),
            (
                "condition variable",
                "libc.so.6!__syscall_cancel_arch < libc.so.6!__internal_syscall_cancel < libc.so.6!__syscall_cancel < libc.so.6!__futex_abstimed_wait_common < libc.so.6!pthread_cond_timedwait@@GLIBC_2.3.2 < work",
            ),
            (
                "end of a thread",
                "libc.so.6!__futex_abstimed_wait_common < libc.so.6!__pthread_clockjoin_ex < work",
            ),
            ("semaphore", "libc.so.6!do_futex_wait < libc.so.6!__new_sem_wait_slow64.constprop.0 < work"),
            ("barrier", "libc.so.6!futex_wait < libc.so.6!___pthread_barrier_wait < work"),
            ("once", "libc.so.6!futex_wait < libc.so.6!__pthread_once_slow < work"),
            ("once", "libc.so.6!syscall < libstdc++.so.6!__cxa_guard_acquire < work"),
            // musl, linked into the program.
            ("lock", "__timedwait_cp < __timedwait < __pthread_mutex_timedlock < work"),
            ("condition variable", "__timedwait_cp < __pthread_cond_timedwait < work"),
            ("end of a thread", "__timedwait_cp < __pthread_timedjoin_np < work"),
            // A thread's own futex.
            ("-", "libc.so.6!syscall < my_futex_wait < work < pthread_mutex_lock"),
            ("-", "0x7f0010 < libc.so.6!pthread_mutex_lock"),
            // The kernel's part comes first where it was recorded.
            (
                "lock",
                "[kernel.kallsyms]!futex_wait < [kernel.kallsyms]!do_syscall_64 < libc.so.6!pthread_mutex_lock < work",
            ),
        ],
    );
}

#[test]
fn locks_with_an_owner_are_those_of_glibc() {
    let has_owner = |first, stack| found(first, stack).is_some_and(|found| found.has_owner);
    for stack in [
        "libc.so.6!__lll_lock_wait < libc.so.6!pthread_mutex_lock < work",
        "libc.so.6!futex_wait < libc.so.6!pthread_rwlock_wrlock < work",
    ] {
        // A profile whose names are looked up again has the reason already.
        for first in [WaitReason::Futex, WaitReason::Lock, WaitReason::ReadWriteLock] {
            assert!(has_owner(first, stack), "{stack}");
        }
    }
    assert!(
        has_owner(WaitReason::Lock, "libc.so.6!__pthread_mutex_lock_full < work"),
        "by priority inheritance"
    );
    for stack in [
        "libc.so.6!syscall < std::sys::sync::mutex::futex::Mutex::lock_contended < work",
        "libc.so.6!__lll_lock_wait_private < libc.so.6!malloc < work",
        "libc.so.6!futex_wait < libc.so.6!pthread_cond_wait < work",
    ] {
        assert!(!has_owner(WaitReason::Futex, stack), "{stack}");
    }
}

#[test]
fn waits_by_rusts_libraries_are_told_apart() {
    const PARK: &str = "libc.so.6!syscall < std::sys::pal::unix::futex::futex_wait < std::sys::sync::thread_parking::futex::Parker::park < std::thread::Thread::park < std::thread::park";
    let after_park = |rest: &str| format!("{PARK} < {rest}");
    let [parked, received, sent, scoped] = [
        "app::main",
        "std::sync::mpmc::context::Context::wait_until < std::sync::mpmc::list::Channel<T>::recv::{{closure}} < std::sync::mpmc::context::Context::with::{{closure}} < std::sync::mpmc::list::Channel<T>::recv < std::sync::mpmc::Receiver<T>::recv < app::main",
        "std::sync::mpmc::context::Context::wait_until < std::sync::mpmc::zero::Channel<T>::send::{{closure}} < std::sync::mpsc::SyncSender<T>::send < app::main",
        "std::thread::scoped::scope < app::main",
    ]
    .map(after_park);
    check(
        WaitReason::Futex,
        &[
            ("park", &parked),
            ("channel receive", &received),
            ("channel send", &sent),
            ("end of a thread", &scoped),
            (
                "lock",
                "libc.so.6!syscall < std::sys::pal::unix::futex::futex_wait < std::sys::sync::mutex::futex::Mutex::lock_contended < std::sync::poison::mutex::Mutex<T>::lock < app::main",
            ),
            (
                "lock",
                "libc.so.6!syscall < std::sys::unix::locks::futex_mutex::Mutex::lock_contended < app::main",
            ),
            (
                "rwlock",
                "libc.so.6!syscall < std::sys::sync::rwlock::futex::RwLock::read_contended < app::main",
            ),
            (
                "condition variable",
                "libc.so.6!syscall < std::sys::sync::condvar::futex::Condvar::wait < std::sync::poison::condvar::Condvar::wait < app::main",
            ),
            (
                "barrier",
                "libc.so.6!syscall < std::sys::sync::condvar::futex::Condvar::wait < std::sync::condvar::Condvar::wait < std::sync::barrier::Barrier::wait < app::main",
            ),
            ("once", "libc.so.6!syscall < std::sys::sync::once::futex::Once::call < app::main"),
            (
                "condition variable",
                "libc.so.6!syscall < std::sys::sync::condvar::futex::Condvar::wait < app::initialize < std::sys::sync::once::futex::Once::call < app::main",
            ),
            (
                "end of a thread",
                "libc.so.6!__pthread_clockjoin_ex < std::sys::thread::unix::Thread::join < std::thread::JoinHandle<T>::join < app::main",
            ),
            ("lock", "libc.so.6!syscall < parking_lot::raw_mutex::RawMutex::lock_slow < app::main"),
            (
                "rwlock",
                "libc.so.6!syscall < parking_lot::raw_rwlock::RawRwLock::lock_shared_slow < app::main",
            ),
            (
                "condition variable",
                "libc.so.6!syscall < parking_lot::condvar::Condvar::wait_until_internal < app::main",
            ),
            (
                "channel receive",
                "libc.so.6!syscall < std::thread::park < crossbeam_channel::context::Context::wait_until < crossbeam_channel::flavors::array::Channel<T>::recv < crossbeam_channel::channel::Receiver<T>::recv < app::main",
            ),
            (
                "future",
                "libc.so.6!syscall < std::sync::condvar::Condvar::wait < rayon_core::sleep::Sleep::sleep < rayon_core::registry::WorkerThread::wait_until_cold < rayon_core::join::join_context::{{closure}} < app::main",
            ),
            (
                "idle: Rayon",
                "libc.so.6!syscall < std::sync::condvar::Condvar::wait < rayon_core::sleep::Sleep::sleep < rayon_core::registry::WorkerThread::wait_until_cold < rayon_core::registry::main_loop < rayon_core::registry::ThreadBuilder::run",
            ),
        ],
    );
    // The arguments of the call said something before the names were known.
    check(
        WaitReason::Park,
        &[("channel receive", &received), ("park", &parked), ("-", "libc.so.6!syscall < app::wait")],
    );
}

#[test]
fn tokios_workers_are_idle_where_they_park() {
    const POOL: &str = "tokio::runtime::blocking::pool::Inner::run < tokio::runtime::blocking::pool::Spawner::spawn_thread::{{closure}} < std::sys::backtrace::__rust_begin_short_backtrace";
    const WORKER: &str = "tokio::runtime::scheduler::multi_thread::worker::run < <tokio::runtime::blocking::task::BlockingTask<T> as core::future::future::Future>::poll";
    let of_worker = |inner: &str| format!("{inner} < {WORKER} < {POOL}");
    check(
        WaitReason::Futex,
        &[
            (
                "idle: Tokio",
                &of_worker(
                    "libc.so.6!syscall < parking_lot_core::thread_parker::imp::ThreadParker::futex_wait < parking_lot::condvar::Condvar::wait_until_internal < tokio::loom::std::parking_lot::Condvar::wait < tokio::runtime::scheduler::multi_thread::park::Inner::park_condvar < tokio::runtime::scheduler::multi_thread::park::Inner::park",
                ),
            ),
            (
                "idle: Tokio",
                &of_worker(
                    "libc.so.6!syscall < std::sys::sync::condvar::futex::Condvar::wait < tokio::runtime::scheduler::multi_thread::park::Inner::park",
                ),
            ),
            (
                "lock",
                &of_worker(
                    "libc.so.6!syscall < std::sys::sync::mutex::futex::Mutex::lock_contended < app::handle < tokio::runtime::task::core::Core<T,S>::poll",
                ),
            ),
            (
                "channel receive",
                &of_worker(
                    "libc.so.6!syscall < std::thread::park < std::sync::mpmc::list::Channel<T>::recv < tokio::runtime::task::core::Core<T,S>::poll",
                ),
            ),
            (
                "condition variable",
                &of_worker("libc.so.6!syscall < std::sync::condvar::Condvar::wait < app::handle"),
            ),
            (
                "idle: Tokio",
                &format!(
                    "libc.so.6!syscall < std::sync::condvar::Condvar::wait_timeout < tokio::loom::std::Condvar::wait_timeout < {POOL}"
                ),
            ),
            (
                "future",
                "libc.so.6!syscall < std::sync::condvar::Condvar::wait < tokio::runtime::park::Inner::park < tokio::runtime::park::CachedParkThread::block_on < tokio::runtime::context::blocking::BlockingRegionGuard::block_on < app::main",
            ),
        ],
    );
    check(
        WaitReason::Events,
        &[
            (
                "-",
                &of_worker(
                    "libc.so.6!epoll_wait < mio::sys::unix::selector::epoll::Selector::select < tokio::runtime::io::driver::Driver::turn < tokio::runtime::scheduler::multi_thread::park::Inner::park",
                ),
            ),
            (
                "idle: async-io",
                "libc.so.6!epoll_wait < polling::Poller::wait < async_io::reactor::ReactorLock::react < async_io::driver::main_loop < std::thread::spawn",
            ),
        ],
    );
}

#[test]
fn waits_of_go_are_told_apart() {
    check(
        WaitReason::Futex,
        &[
            (
                "idle: Go",
                "runtime.futex.abi0 < runtime.futexsleep < runtime.notesleep < runtime.mPark < runtime.stopm < runtime.findRunnable < runtime.schedule < runtime.park_m < runtime.mcall",
            ),
            (
                "idle: Go",
                "runtime.futex < runtime.futexsleep < runtime.notesleep < runtime.stopm < runtime.findRunnable",
            ),
            (
                "lock",
                "runtime.futex < runtime.futexsleep < runtime.lock2 < runtime.lockWithRank < runtime.chansend",
            ),
            (
                "park",
                "runtime.futex < runtime.futexsleep < runtime.notetsleep_internal < runtime.notetsleepg < os/signal.signal_recv < os/signal.loop",
            ),
            ("park", "runtime.futex < runtime.futexsleep < runtime.notesleep < main.work < runtime.stopm"),
        ],
    );
    check(WaitReason::Sleep, &[("idle: Go", "runtime.usleep.abi0 < runtime.sysmon < runtime.mstart1")]);
    check(
        WaitReason::Events,
        &[("-", "internal/runtime/syscall.Syscall6 < runtime.netpoll < runtime.findRunnable")],
    );
}

#[test]
fn waits_of_virtual_machines_are_told_apart() {
    const WAIT: &str = "libc.so.6!__futex_abstimed_wait_common < libc.so.6!pthread_cond_wait";
    let after_wait = |rest: &str| format!("{WAIT} < {rest}");
    let cases = [
        (
            "lock",
            "libjvm.so!os::PlatformEvent::park() < libjvm.so!ObjectMonitor::EnterI(JavaThread*) < libjvm.so!ObjectMonitor::enter(JavaThread*)",
        ),
        ("lock", "libjvm.so!PlatformEvent::park() < libjvm.so!ObjectMonitor::enter_internal(JavaThread*)"),
        (
            "condition variable",
            "libjvm.so!ObjectMonitor::wait(long, bool, JavaThread*) < libjvm.so!JVM_MonitorWait < JIT!0x7f",
        ),
        (
            "lock",
            "libjvm.so!ObjectMonitor::EnterI(JavaThread*) < libjvm.so!ObjectMonitor::wait(long, bool, JavaThread*)",
        ),
        (
            "park",
            "libjvm.so!Parker::park(bool, long) < libjvm.so!Unsafe_Park < JIT!0x7f < libjvm.so!JavaCalls::call_helper",
        ),
        (
            "sleep",
            "libjvm.so!ParkEvent::park(long) < libjvm.so!JavaThread::sleep(long) < libjvm.so!JVM_Sleep",
        ),
        (
            "idle: Java",
            "libjvm.so!PlatformMonitor::wait(unsigned long) < libjvm.so!VMThread::wait_for_operation() < libjvm.so!VMThread::run()",
        ),
        (
            "idle: Java",
            "libjvm.so!PosixSemaphore::wait() < libjvm.so!WorkerTaskDispatcher::worker_run_task() < libjvm.so!WorkerThread::run()",
        ),
        (
            "idle: Java",
            "libjvm.so!Monitor::wait(long) < libjvm.so!GangWorker::loop() < libjvm.so!Thread::call_run()",
        ),
        (
            "idle: Node.js",
            "uv_cond_wait < node::TaskQueue<v8::Task>::BlockingPop() < node::(anonymous namespace)::PlatformWorkerThread(void*)",
        ),
        ("idle: libuv", "uv_cond_wait < worker < libc.so.6!start_thread"),
        ("condition variable", "worker < main"),
        ("lock", "take_gil < PyEval_RestoreThread < time_sleep"),
        ("lock", "drop_gil.cold < _PyEval_EvalFrameDefault"),
        ("lock", "PyCOND_TIMEDWAIT < take_gil < eval_frame_handle_pending < _PyEval_EvalFrameDefault"),
        (
            "idle: Node.js",
            "uv_cond_wait < node::(anonymous namespace)::PlatformWorkerThread(void*) < libc.so.6!start_thread",
        ),
        (
            "idle: Java",
            "libjvm.so!os::PlatformMonitor::wait(long) < libjvm.so!Monitor::wait_without_safepoint_check(long) < libjvm.so!G1ConcurrentMarkThread::run_service() < libjvm.so!ConcurrentGCThread::run()",
        ),
        (
            "future",
            "libjvm.so!PosixSemaphore::wait() < libjvm.so!WorkGang::run_task(AbstractGangTask*) < libjvm.so!G1ConcurrentMarkThread::run_service()",
        ),
        (
            "idle: Java",
            "libjvm.so!Monitor::wait(long) < libjvm.so!JVM_WaitForReferencePendingList < JIT!0x5c94",
        ),
    ];
    for (expected, stack) in cases {
        assert_eq!(answer(WaitReason::Futex, &after_wait(stack)), expected, "{stack}");
    }
    check(
        WaitReason::Futex,
        &[
            (
                "park",
                "libc.so.6!do_futex_wait < libc.so.6!__new_sem_wait_slow64 < PyThread_acquire_lock_timed < acquire_timed < lock_PyThread_acquire_lock",
            ),
            (
                "park",
                "libc.so.6!sem_clockwait < _PySemaphore_Wait < _PyParkingLot_Park < _PyMutex_LockTimed < PyMutex_Lock",
            ),
            (
                "barrier",
                "libjvm.so!futex(int volatile*, int, int) < libjvm.so!LinuxWaitBarrier::wait(int) < libjvm.so!SafepointSynchronize::block(JavaThread*)",
            ),
            (
                "idle: Node.js",
                "libc.so.6!sem_wait < uv_sem_wait < node::inspector::(anonymous namespace)::StartIoThreadMain(void*) < libc.so.6!start_thread",
            ),
        ],
    );
    check(
        WaitReason::Events,
        &[
            (
                "-",
                "libc.so.6!epoll_pwait < uv__io_poll < uv_run < node::SpinEventLoop(node::Environment*) < main",
            ),
            (
                "idle: Node.js",
                "libc.so.6!epoll_pwait < uv__io_poll < uv_run < node::WorkerThreadsTaskRunner::DelayedTaskScheduler::Run()",
            ),
        ],
    );
}

#[test]
fn waits_of_windows_are_told_apart() {
    const WAIT: &str = "ntoskrnl.exe!KeWaitForAlertByThreadId < ntdll.dll!NtWaitForAlertByThreadId";
    for (expected, stack) in [
        ("lock", "ntdll.dll!RtlAcquireSRWLockExclusive < work"),
        ("lock", "ntdll.dll!RtlpEnterCriticalSectionContended < ntdll.dll!RtlEnterCriticalSection < work"),
        (
            "condition variable",
            "ntdll.dll!RtlSleepConditionVariableSRW < KERNELBASE.dll!SleepConditionVariableSRW < work",
        ),
        ("-", "ntdll.dll!RtlWaitOnAddress < work"),
    ] {
        assert_eq!(answer(WaitReason::Park, &format!("{WAIT} < {stack}")), expected, "{stack}");
    }
}

#[test]
fn waits_of_cpp_libraries_are_told_apart() {
    const WAIT: &str = "libc.so.6!__futex_abstimed_wait_common < libc.so.6!pthread_cond_wait";
    let after_wait = |rest: &str| format!("{WAIT} < {rest}");
    let cases = [
        (
            "condition variable",
            "libstdc++.so.6!std::condition_variable::wait(std::unique_lock<std::mutex>&) < work()",
        ),
        ("idle: oneTBB", "libtbb.so.12!tbb::detail::r1::rml::private_worker::run() < libc.so.6!start_thread"),
        (
            "idle: Qt",
            "libQt5Core.so.5!QWaitConditionPrivate::wait(QDeadlineTimer) < libQt5Core.so.5!QWaitCondition::wait(QMutex*) < libQt5Core.so.5!QThreadPoolThread::run()",
        ),
        (
            "idle: jemalloc",
            "libjemalloc.so.2!background_thread_sleep < libjemalloc.so.2!background_thread_entry < libc.so.6!start_thread",
        ),
        (
            "idle: Chromium",
            "base::ConditionVariable::Wait() < base::WaitableEvent::TimedWaitImpl(base::TimeDelta) < base::internal::WorkerThread::Delegate::WaitForWork()",
        ),
    ];
    for (expected, stack) in cases {
        assert_eq!(answer(WaitReason::Futex, &after_wait(stack)), expected, "{stack}");
    }
    check(
        WaitReason::Futex,
        &[
            (
                "future",
                "libc.so.6!syscall < libstdc++.so.6!std::__atomic_futex_unsigned_base::_M_futex_wait_until(unsigned int*, unsigned int, bool) < std::__basic_future<int>::_M_get_result() const < work()",
            ),
            ("lock", "libc.so.6!pthread_mutex_lock < std::mutex::lock() < work()"),
            (
                "end of a thread",
                "libc.so.6!__pthread_clockjoin_ex < libstdc++.so.6!std::thread::join() < work()",
            ),
            (
                "barrier",
                "libgomp.so.1!gomp_team_barrier_wait_end < main._omp_fn.0 < libgomp.so.1!gomp_thread_start",
            ),
            (
                "idle: OpenMP",
                "libgomp.so.1!gomp_team_barrier_wait_end < libgomp.so.1!gomp_simple_barrier_wait < libgomp.so.1!gomp_thread_start < libc.so.6!start_thread",
            ),
            (
                "idle: OpenMP",
                "libc.so.6!pthread_cond_wait < libomp.so.5!__kmp_suspend_64 < libomp.so.5!__kmp_fork_barrier < libomp.so.5!__kmp_launch_thread",
            ),
            ("lock", "libc.so.6!syscall < libglib-2.0.so.0!g_mutex_lock_slowpath < work"),
            (
                "idle: GLib",
                "libc.so.6!syscall < libglib-2.0.so.0!g_cond_wait < libglib-2.0.so.0!g_async_queue_pop_intern_unlocked < libglib-2.0.so.0!g_thread_pool_thread_proxy",
            ),
            (
                "condition variable",
                "libc.so.6!syscall < libglib-2.0.so.0!g_cond_wait < work < libglib-2.0.so.0!g_thread_pool_thread_proxy",
            ),
            (
                "lock",
                "libc.so.6!syscall < AbslInternalPerThreadSemWait_lts_20230802 < absl::lts_20230802::Mutex::Block(absl::base_internal::PerThreadSynch*) < absl::lts_20230802::Mutex::LockSlow(int) < work()",
            ),
            (
                "condition variable",
                "libc.so.6!syscall < AbslInternalPerThreadSemWait < absl::CondVar::WaitCommon(absl::Mutex*, int) < work()",
            ),
            (
                "idle: Folly",
                "libc.so.6!syscall < folly::detail::(anonymous namespace)::nativeFutexWaitImpl(void const*) < folly::LifoSem::wait() < folly::CPUThreadPoolExecutor::threadRun(int) < libstdc++.so.6!execute_native_thread_routine",
            ),
        ],
    );
    check(
        WaitReason::Events,
        &[
            (
                "-",
                "libc.so.6!poll < libglib-2.0.so.0!g_main_context_iterate.constprop.0 < libglib-2.0.so.0!g_main_loop_run < main",
            ),
            (
                "idle: GLib",
                "libc.so.6!poll < libglib-2.0.so.0!g_main_context_iterate < libglib-2.0.so.0!g_main_context_iteration < libglib-2.0.so.0!glib_worker_main",
            ),
        ],
    );
}

/// A lock of a file is no futex, and neither functions nor idle workers say more of it.
#[test]
fn what_the_call_says_may_be_all() {
    for stack in
        ["libc.so.6!flock < work", "libc.so.6!pthread_cond_wait < work", "runtime.futex < runtime.stopm", ""]
    {
        assert_eq!(answer(WaitReason::Lock, stack), "-", "{stack}");
    }
    check(WaitReason::Sleep, &[("-", "libc.so.6!clock_nanosleep < libc.so.6!pthread_cond_wait < work")]);
}
