//! C++'s operators `new` and `delete`, for programs whose allocator has its own: jemalloc, tcmalloc, mimalloc.
//!
//! Each calls the next operator of its name, and passes on its exceptions: the frame between has unwind information,
//! and nothing to clean up. An allocation counts here if the thread's count of allocations has not changed meanwhile.
//! So operators that call `malloc` count once.

use super::arch::Caller;
use super::bootstrap;
use super::hooks;
use super::next::look_up;
use super::recorder;
use super::thread;
use core::ffi::CStr;
use core::sync::atomic::{AtomicUsize, Ordering};

/// What an operator calls, and what is needed after the call. It is returned in two registers.
#[repr(C)]
struct Call {
    /// The function. It takes the operator's arguments.
    function: usize,
    /// For `new` the allocations of the thread so far; for `delete` whether the thread was inside the allocator.
    before: usize,
}

/// Defines the operators: their names are mangled by the Itanium ABI of C++, for a `size_t` of 64 bits.
macro_rules! operators {
    ($($kind:ident $name:ident = $index:literal;)*) => {
        const NAMES: &[&CStr] = &[$(name!($name)),*];
        $(
            #[unsafe(naked)]
            #[no_mangle]
            unsafe extern "C" fn $name() {
                operators!(@$kind $index)
            }
        )*
    };
    (@new $index:literal) => { calls_through!($index, before_new, after_new) };
    (@delete $index:literal) => { calls_through!($index, before_delete, after_delete) };
}

/// The name of an identifier.
macro_rules! name {
    ($name:ident) => {
        match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
            Ok(name) => name,
            Err(_) => c"",
        }
    };
}

/// The code of an operator: it saves its three arguments, asks what to call, calls that with the arguments, and goes on
/// with what was returned, the first argument, the registers of its caller, and what was noted before.
#[cfg(target_arch = "x86_64")]
macro_rules! calls_through {
    ($index:literal, $before:ident, $after:ident) => {
        core::arch::naked_asm!(
            ".cfi_startproc",
            "endbr64",
            "sub rsp, 40",
            ".cfi_adjust_cfa_offset 40",
            "mov qword ptr [rsp], rdi",
            "mov qword ptr [rsp + 8], rsi",
            "mov qword ptr [rsp + 16], rdx",
            concat!("mov esi, ", $index),
            "call {before}",
            "mov qword ptr [rsp + 24], rdx",
            "mov rdi, qword ptr [rsp]",
            "mov rsi, qword ptr [rsp + 8]",
            "mov rdx, qword ptr [rsp + 16]",
            "call rax",
            "mov rdi, rax",
            "mov rsi, qword ptr [rsp]",
            "mov r9, qword ptr [rsp + 24]",
            "add rsp, 40",
            ".cfi_adjust_cfa_offset -40",
            "lea rdx, [rsp + 8]",
            "mov rcx, rbp",
            "mov r8, qword ptr [rsp]",
            "jmp {after}",
            ".cfi_endproc",
            before = sym $before,
            after = sym $after,
        )
    };
}

/// The code of an operator: it saves its three arguments, asks what to call, calls that with the arguments, and goes on
/// with what was returned, the first argument, the registers of its caller, and what was noted before.
#[cfg(target_arch = "aarch64")]
macro_rules! calls_through {
    ($index:literal, $before:ident, $after:ident) => {
        core::arch::naked_asm!(
            ".cfi_startproc",
            "stp x29, x30, [sp, #-64]!",
            ".cfi_def_cfa_offset 64",
            ".cfi_offset 29, -64",
            ".cfi_offset 30, -56",
            "stp x0, x1, [sp, #16]",
            "str x2, [sp, #32]",
            concat!("mov w1, #", $index),
            "bl {before}",
            "str x1, [sp, #40]",
            "mov x8, x0",
            "ldp x0, x1, [sp, #16]",
            "ldr x2, [sp, #32]",
            "blr x8",
            "ldr x1, [sp, #16]",
            "ldr x5, [sp, #40]",
            "ldp x29, x30, [sp], #64",
            ".cfi_def_cfa_offset 0",
            ".cfi_restore 29",
            ".cfi_restore 30",
            "mov x2, sp",
            "mov x3, x29",
            "mov x4, x30",
            "b {after}",
            ".cfi_endproc",
            before = sym $before,
            after = sym $after,
        )
    };
}

/// The first operator with an alignment, and the first `delete`.
const FIRST_ALIGNED_NEW: usize = 4;
const FIRST_DELETE: usize = 8;

operators! {
    new _Znwm = 0;
    new _Znam = 1;
    new _ZnwmRKSt9nothrow_t = 2;
    new _ZnamRKSt9nothrow_t = 3;
    new _ZnwmSt11align_val_t = 4;
    new _ZnamSt11align_val_t = 5;
    new _ZnwmSt11align_val_tRKSt9nothrow_t = 6;
    new _ZnamSt11align_val_tRKSt9nothrow_t = 7;
    delete _ZdlPv = 8;
    delete _ZdaPv = 9;
    delete _ZdlPvm = 10;
    delete _ZdaPvm = 11;
    delete _ZdlPvRKSt9nothrow_t = 12;
    delete _ZdaPvRKSt9nothrow_t = 13;
    delete _ZdlPvSt11align_val_t = 14;
    delete _ZdaPvSt11align_val_t = 15;
    delete _ZdlPvmSt11align_val_t = 16;
    delete _ZdaPvmSt11align_val_t = 17;
    delete _ZdlPvSt11align_val_tRKSt9nothrow_t = 18;
    delete _ZdaPvSt11align_val_tRKSt9nothrow_t = 19;
}

static FOUND: [AtomicUsize; NAMES.len()] = [const { AtomicUsize::new(0) }; NAMES.len()];

/// The next operator of a name. A child process can lack them, and load C++ libraries for itself alone: it gets
/// operators that call `malloc` and `free`.
#[inline(always)]
fn operator(index: usize) -> usize {
    let found = FOUND.get(index).map_or(0, |place| place.load(Ordering::Relaxed));
    if found != 0 { found } else { search(index) }
}

#[cold]
fn search(index: usize) -> usize {
    let found = NAMES.get(index).map_or(0, |name| look_up(name.as_ptr()));
    let found = if found == 0 { substitute(index) } else { found };
    if let Some(place) = FOUND.get(index) {
        place.store(found, Ordering::Relaxed);
    }
    found
}

/// What stands in for an operator that the program lacks.
fn substitute(index: usize) -> usize {
    match index {
        2 | 3 => new_or_null as *const () as usize,
        6 | 7 => aligned_new_or_null as *const () as usize,
        FIRST_DELETE.. => hooks::free as *const () as usize,
        FIRST_ALIGNED_NEW.. => aligned_new as *const () as usize,
        _ => new as *const () as usize,
    }
}

extern "C" fn new_or_null(size: usize) -> *mut u8 {
    hooks::malloc_for_operator(size.max(1), 16)
}

extern "C" fn aligned_new_or_null(size: usize, alignment: usize) -> *mut u8 {
    hooks::malloc_for_operator(size.max(1), alignment)
}

extern "C" fn new(size: usize) -> *mut u8 {
    or_end(new_or_null(size))
}

extern "C" fn aligned_new(size: usize, alignment: usize) -> *mut u8 {
    or_end(aligned_new_or_null(size, alignment))
}

/// Ends the program if there is no memory: an exception would need C++'s library, which it does not have.
fn or_end(block: *mut u8) -> *mut u8 {
    if block.is_null() {
        super::arch::trap();
    }
    block
}

/// Does nothing, in place of a `delete`.
extern "C" fn nothing(_: *mut u8) {}

unsafe extern "C" fn before_new(_: usize, index: u32) -> Call {
    Call { function: operator(index as usize), before: thread::state().allocations.get() as usize }
}

/// Notes the allocation, unless `malloc` has done so.
unsafe extern "C" fn after_new(
    block: *mut u8,
    size: usize,
    sp: usize,
    fp: usize,
    ip: usize,
    before: usize,
) -> *mut u8 {
    let thread = thread::state();
    let is_new =
        !recorder::is_off() && !thread.is_inside.get() && thread.allocations.get() as usize == before;
    if is_new && !block.is_null() && bootstrap::size_of(block).is_none() {
        recorder::allocated(block as usize, size, hooks::held(block), || Caller { ip, sp, fp });
    }
    block
}

unsafe extern "C" fn before_delete(block: *mut u8, index: u32) -> Call {
    let thread = thread::state();
    let before = usize::from(thread.is_inside.get());
    if block.is_null() || bootstrap::size_of(block).is_some() {
        return Call { function: nothing as *const () as usize, before };
    }
    // It may call `free`.
    thread.is_inside.set(true);
    if !recorder::is_off() && before == 0 {
        recorder::release(block as usize, hooks::held(block)).record();
    }
    Call { function: operator(index as usize), before }
}

unsafe extern "C" fn after_delete(_: usize, _: usize, _: usize, _: usize, _: usize, before: usize) {
    thread::state().is_inside.set(before != 0);
}
