//! The functions of runtimes that say what a thread waits for, by runtime.
//!
//! How functions are written says [`Function`]. Where the functions of a runtime cannot tell contention from
//! idleness, the reason is [`WaitReason::Park`].

use super::row::{Follows, Function, Meaning, Row};
use crate::event::WaitReason::{
    self, Barrier, ChannelReceive, ChannelSend, ConditionVariable, Future, Lock, Once, Park, ReadWriteLock,
    Semaphore, Sleep, ThreadEnd,
};

macro_rules! functions {
    ($($function:literal),* $(,)?) => { &[$(Function($function)),*] };
}

/// Functions that make the system call of the wait themselves.
const fn direct(runtime: &'static str, reason: WaitReason, functions: &'static [Function]) -> Row {
    let meaning = Meaning::Reason(reason);
    Row { runtime, meaning, follows: Follows::Nothing, has_owner: false, functions }
}

/// Functions that may wait by functions of another runtime.
const fn over(runtime: &'static str, reason: WaitReason, functions: &'static [Function]) -> Row {
    Row { follows: Follows::Any, ..direct(runtime, reason, functions) }
}

/// Functions in which workers wait that have nothing to do.
const fn idle(runtime: &'static str, functions: &'static [Function]) -> Row {
    let meaning = Meaning::Idle(runtime);
    Row { runtime, meaning, follows: Follows::Any, has_owner: false, functions }
}

/// All rows. Those of a runtime come before those of what it is made of only where both match a function.
pub(super) const ROWS: &[Row] = &[
    // glibc and musl.
    Row {
        has_owner: true,
        ..direct("glibc", Lock, functions!["pthread_mutex_*lock", "pthread_mutex_*lock_full"])
    },
    Row { has_owner: true, ..direct("glibc", ReadWriteLock, functions!["pthread_rwlock_*"]) },
    direct(
        "glibc",
        Lock,
        functions!["lll_lock_wait_private", "pthread_cond_signal", "pthread_cond_broadcast"],
    ),
    direct("glibc", ConditionVariable, functions!["pthread_cond_*wait"]),
    direct("glibc", ThreadEnd, functions!["pthread_join", "pthread_*join_*"]),
    direct("glibc", Semaphore, functions!["new_sem_wait*", "sem_*wait", "do_futex_wait"]),
    direct("glibc", Barrier, functions!["pthread_barrier_wait"]),
    direct("glibc", Once, functions!["pthread_once*", "cxa_guard_acquire"]),
    // C++.
    direct(
        "libstdc++",
        Future,
        functions![
            "atomic_futex_unsigned_base::_M_futex_wait_until*",
            "std..__atomic_futex_unsigned_base::_M_futex_wait_until*"
        ],
    ),
    direct("libc++", Park, functions!["std..*contention_wait*", "std..*platform_wait*"]),
    over("libstdc++", Semaphore, functions!["std..counting_semaphore::*", "std..__atomic_semaphore::*"]),
    over("libstdc++", Barrier, functions!["std..latch::*", "std..barrier::*"]),
    over("libstdc++", ThreadEnd, functions!["std..thread::join", "std..jthread::join"]),
    over(
        "libstdc++",
        ConditionVariable,
        functions!["std..condition_variable::*", "std..condition_variable_any::*"],
    ),
    over(
        "libstdc++",
        Future,
        functions![
            "std..__basic_future::*",
            "std..future::*",
            "std..shared_future::*",
            "std..__assoc_sub_state::*"
        ],
    ),
    // Rust's standard library, parking_lot, crossbeam.
    direct("std", Lock, functions!["std..Mutex::lock_contended", "std..Mutex::lock"]),
    direct("std", ReadWriteLock, functions!["std..RwLock::*_contended"]),
    direct("std", Once, functions!["std..Once::call", "std..Once::wait", "std..Once::call_once*"]),
    over("std", ConditionVariable, functions!["std..Condvar::wait*"]),
    over("std", Park, functions!["std..Parker::park*", "std..thread::park*", "std..Thread::park*"]),
    over(
        "std",
        ThreadEnd,
        functions![
            "std..Thread::join",
            "std..JoinInner::join",
            "std..JoinHandle::join",
            "std..scoped::scope"
        ],
    ),
    over("std", ChannelReceive, functions!["std..Channel::recv*", "std..Receiver::recv*"]),
    over("std", ChannelSend, functions!["std..Channel::send*", "std..SyncSender::send*"]),
    over("std", Barrier, functions!["std..Barrier::wait"]),
    direct("parking_lot", Lock, functions!["parking_lot..RawMutex::lock_slow"]),
    direct(
        "parking_lot",
        ReadWriteLock,
        functions!["parking_lot..RawRwLock::lock_*_slow", "parking_lot..RawRwLock::wait_for_readers"],
    ),
    direct("parking_lot", ConditionVariable, functions!["parking_lot..Condvar::wait*"]),
    direct("parking_lot", Once, functions!["parking_lot..Once::call_once_slow"]),
    over("crossbeam", Park, functions!["crossbeam_utils..Inner::park", "crossbeam_utils..Parker::park*"]),
    over(
        "crossbeam",
        ChannelReceive,
        functions!["crossbeam_channel..Channel::recv*", "crossbeam_channel..Receiver::recv*"],
    ),
    over(
        "crossbeam",
        ChannelSend,
        functions!["crossbeam_channel..Channel::send*", "crossbeam_channel..Sender::send*"],
    ),
    // Rayon, Tokio, async-io.
    over("Rayon", Future, functions!["rayon_core..Sleep::sleep", "rayon_core..LockLatch::wait*"]),
    idle("Rayon", functions!["rayon_core..registry::main_loop", "rayon_core..ThreadBuilder::run"]),
    over("Tokio", Future, functions!["tokio::runtime::park..Inner::park*", "tokio..CachedParkThread::*"]),
    idle("Tokio", functions!["tokio..Inner::park_condvar", "tokio..pool::Inner::run*"]),
    // It also waits for events, which is not idle.
    Row { follows: Follows::Another, ..idle("Tokio", functions!["tokio..multi_thread::park::Inner::park*"]) },
    idle("async-io", functions!["async_io..driver::main_loop"]),
    // Go.
    direct("Go", Lock, functions!["runtime.lock2"]),
    direct("Go", Park, functions!["runtime.notesleep", "runtime.notetsleep*"]),
    idle("Go", functions!["runtime.stopm", "runtime.sysmon", "runtime.templateThread"]),
    // The Java virtual machine.
    over(
        "Java",
        Lock,
        functions!["ObjectMonitor::EnterI", "ObjectMonitor::ReenterI", "ObjectMonitor::*enter*"],
    ),
    over("Java", ConditionVariable, functions!["ObjectMonitor::wait"]),
    over("Java", Park, functions!["Parker::park"]),
    over("Java", Sleep, functions!["JavaThread::sleep*"]),
    over("Java", Barrier, functions!["LinuxWaitBarrier::wait", "SafepointSynchronize::block"]),
    idle(
        "Java",
        functions![
            "WorkerTaskDispatcher::worker_run_task",
            "*GangTaskDispatcher::worker_wait_for_task",
            "GangWorker::wait_for_task",
            "GangWorker::loop",
            "VMThread::wait_for_operation",
            "VMThread::loop",
            "CompileQueue::get",
            "JVM_WaitForReferencePendingList",
            "signal_thread_entry",
            "os::signal_wait",
            "WatcherThread::sleep",
            "ServiceThread::service_thread_entry",
            "NotificationThread::notification_thread_entry",
            "MonitorDeflationThread::monitor_deflation_thread_entry",
            "G1ServiceThread::*",
            "G1ConcurrentMarkThread::*wait*",
            "G1ConcurrentRefineThread::wait*",
        ],
    ),
    // Its service threads wait in a function that also does their work.
    over("Java", ConditionVariable, functions!["PlatformMonitor::wait", "Monitor::wait*"]),
    over("Java", Semaphore, functions!["PosixSemaphore::wait"]),
    over(
        "Java's jobs",
        Future,
        functions![
            "WorkGang::run_task",
            "WorkerThreads::run_task",
            "VMThread::execute",
            "VMThread::wait_until_executed"
        ],
    ),
    Row {
        follows: Follows::Own,
        ..idle("Java", functions!["*Thread::run_service", "NMethodSweeper::sweeper_loop"])
    },
    // libuv, Node.js, Chromium.
    direct("libuv", Lock, functions!["uv_mutex_lock"]),
    over("libuv", ConditionVariable, functions!["uv_cond_wait", "uv_cond_timedwait"]),
    Row { follows: Follows::Own, ..idle("libuv", functions!["worker"]) },
    idle(
        "Node.js",
        functions![
            "node..TaskQueue::BlockingPop",
            "node..*PlatformWorkerThread",
            "node..DelayedTaskScheduler::*",
            "node..*StartIoThreadMain",
            "node..DelayedTaskScheduler::Run"
        ],
    ),
    idle("Chromium", functions!["Delegate::WaitForWork"]),
    // CPython. Its conditions, queues and events are made of locks, as its locks are.
    over("CPython", Lock, functions!["take_gil", "drop_gil*"]),
    over(
        "CPython",
        Park,
        functions![
            "PyThread_acquire_lock_timed*",
            "PyMutex_LockTimed",
            "PyMutex_Lock",
            "PyParkingLot_Park",
            "PySemaphore_*Wait"
        ],
    ),
    // OpenMP, oneTBB.
    direct("OpenMP", Barrier, functions!["gomp_*barrier_wait*"]),
    direct("OpenMP", Lock, functions!["gomp_mutex_lock_slow", "gomp_set_lock*"]),
    idle("OpenMP", functions!["gomp_thread_start", "kmp_launch_thread"]),
    over("OpenMP", Barrier, functions!["kmp_suspend_*", "kmp_*barrier*"]),
    idle("oneTBB", functions!["private_worker::run"]),
    // Qt, GLib.
    direct("Qt", Lock, functions!["QBasicMutex::lockInternal", "QMutex::lock*"]),
    over("Qt", ConditionVariable, functions!["QWaitCondition::wait*"]),
    idle("Qt", functions!["QThreadPoolThread::run"]),
    direct("GLib", Lock, functions!["g_mutex_lock*"]),
    over("GLib", ConditionVariable, functions!["g_cond_wait*"]),
    idle("GLib", functions!["g_thread_pool_*", "glib_worker_main", "gdbus_shared_thread_func"]),
    // Windows.
    direct(
        "Windows",
        Lock,
        functions!["RtlAcquireSRWLock*", "RtlpEnterCriticalSection*", "RtlEnterCriticalSection"],
    ),
    direct("Windows", ConditionVariable, functions!["RtlSleepConditionVariable*", "SleepConditionVariable*"]),
    // Abseil, Folly, jemalloc.
    direct(
        "Abseil",
        Lock,
        functions!["absl..Mutex::LockSlow", "absl..Mutex::Lock", "absl..Mutex::ReaderLock"],
    ),
    over("Abseil", ConditionVariable, functions!["absl..CondVar::Wait*", "absl..Mutex::Await*"]),
    direct("Folly", Park, functions!["folly..*nativeFutexWaitImpl"]),
    idle("Folly", functions!["folly..CPUThreadPoolExecutor::threadRun"]),
    idle("jemalloc", functions!["background_thread_entry", "je_background_thread_entry"]),
];

/// The beginnings of names of libs whose functions are all parts of a runtime. Code of users is in other libs.
pub(super) const LIBS_OF_RUNTIMES: &[&str] = &[
    "libc.so",
    "ntoskrnl",
    "ntdll",
    "KERNELBASE",
    "libc-2.",
    "libc.musl-",
    "libpthread",
    "ld-linux",
    "ld-musl-",
    "ld-2.",
    "libstdc++",
    "libc++",
    "libjvm.so",
    "libgomp",
    "libomp",
    "libiomp",
    "libtbb",
    "libjemalloc",
    "libuv.so",
    "libglib-2.0",
    "libgio-2.0",
    "libQt",
];

/// Functions between the system call and a function that has a meaning. Their libs do not tell, because runtimes
/// may be in the program itself.
pub(super) const THROUGH: &[Function] = functions![
    // glibc, musl.
    "syscall",
    "internal_syscall_cancel",
    "syscall_cancel*",
    "futex_*",
    "lll_lock_wait",
    "timedwait*",
    "wait",
    "epoll_*wait*",
    "poll",
    "ppoll",
    "select",
    "pselect",
    "nanosleep",
    "clock_nanosleep*",
    "usleep",
    "libc_*",
    "pthread_cond_wait_common",
    // The languages' libraries.
    "std..*",
    "core..*",
    "alloc..*",
    "runtime.*",
    "internal/*",
    // Locks of Rust.
    "parking_lot..*",
    "parking_lot_core..*",
    "lock_api..*",
    "crossbeam_utils..*",
    "crossbeam_channel..*",
    // Runtimes.
    "tokio::loom..*",
    "mio..*",
    "polling..*",
    "rustix..*",
    "async_io..*",
    "rayon_core..WorkerThread::wait_until*",
    "rayon_core::latch..*",
    "uv_*",
    "g_cond_*",
    "g_async_queue_*",
    "g_main_*",
    "g_poll*",
    "gomp_*",
    "kmp_*",
    "tbb..*",
    "rml..*",
    "node..*",
    "folly..*",
    "PyCOND_*",
    "AbslInternalPerThreadSemWait*",
    "absl..*",
    "base..*",
];
