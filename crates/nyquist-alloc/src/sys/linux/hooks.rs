//! The functions that the preloaded library has in place of the C library's. Each calls the next one of its name.
//!
//! C++'s operators of libstdc++ and libc++ call `malloc` and `free`, so they need no hooks of their own. Those of other
//! allocators do not: see `operators`.

use super::arch::Caller;
use super::bootstrap;
use super::next::{Next, next};
use super::recorder::{self, Released};
use super::thread;
use core::ptr::null_mut;

/// Defines exported functions that pass on their arguments, and behind these the registers of their caller: the
/// stack pointer, the frame pointer, and the return address.
macro_rules! hooks {
    ($($name:ident $registers:tt => $hook:ident;)*) => {$(
        #[cfg(target_arch = "x86_64")]
        #[unsafe(naked)]
        #[no_mangle]
        unsafe extern "C" fn $name() {
            hooks!(@x86_64 $registers, $hook)
        }

        #[cfg(target_arch = "aarch64")]
        #[unsafe(naked)]
        #[no_mangle]
        unsafe extern "C" fn $name() {
            hooks!(@aarch64 $registers, $hook)
        }
    )*};
    (@x86_64 1, $hook:ident) => { hooks!(@x86 "rsi", "rdx", "rcx", $hook) };
    (@x86_64 2, $hook:ident) => { hooks!(@x86 "rdx", "rcx", "r8", $hook) };
    (@x86_64 3, $hook:ident) => { hooks!(@x86 "rcx", "r8", "r9", $hook) };
    (@x86 $sp:literal, $fp:literal, $ip:literal, $hook:ident) => {
        core::arch::naked_asm!(
            ".cfi_startproc",
            "endbr64",
            concat!("lea ", $sp, ", [rsp + 8]"),
            concat!("mov ", $fp, ", rbp"),
            concat!("mov ", $ip, ", qword ptr [rsp]"),
            "jmp {hook}",
            ".cfi_endproc",
            hook = sym $hook,
        )
    };
    (@aarch64 1, $hook:ident) => { hooks!(@arm "x1", "x2", "x3", $hook) };
    (@aarch64 2, $hook:ident) => { hooks!(@arm "x2", "x3", "x4", $hook) };
    (@aarch64 3, $hook:ident) => { hooks!(@arm "x3", "x4", "x5", $hook) };
    (@arm $sp:literal, $fp:literal, $ip:literal, $hook:ident) => {
        core::arch::naked_asm!(
            ".cfi_startproc",
            concat!("mov ", $sp, ", sp"),
            concat!("mov ", $fp, ", x29"),
            concat!("mov ", $ip, ", x30"),
            "b {hook}",
            ".cfi_endproc",
            hook = sym $hook,
        )
    };
}

hooks! {
    malloc 1 => on_malloc;
    calloc 2 => on_calloc;
    realloc 2 => on_realloc;
    reallocarray 3 => on_reallocarray;
    posix_memalign 3 => on_posix_memalign;
    aligned_alloc 2 => on_aligned_alloc;
    memalign 2 => on_memalign;
    valloc 1 => on_valloc;
    pvalloc 1 => on_pvalloc;
}

/// Calls the allocator, which may call itself, and notes what it returns.
#[inline(always)]
fn allocate(size: usize, caller: Caller, call: impl FnOnce() -> *mut u8) -> *mut u8 {
    if recorder::is_off() {
        return call();
    }
    let thread = thread::state();
    if thread.is_inside.replace(true) {
        return call();
    }
    let block = call();
    if block.is_null() || bootstrap::size_of(block).is_some() {
        thread.is_inside.set(false);
        return block;
    }
    let held = held(block);
    thread.is_inside.set(false);
    recorder::allocated(block as usize, size, held, || caller);
    block
}

/// The bytes that the allocator holds for a block. They are counted where samples are taken, so that the moment
/// of the peak is exact. An allocator may allocate for the answer: the thread has to be inside of it.
#[inline(always)]
pub(super) fn held(block: *mut u8) -> usize {
    match next(Next::UsableSize) {
        // SAFETY: it is the allocator's own function, for a block of it.
        Some(function) => unsafe {
            core::mem::transmute::<usize, extern "C" fn(*mut u8) -> usize>(function)(block)
        },
        None => 0,
    }
}

/// Calls the next function of a name; returns nothing if there is none.
macro_rules! call_next {
    ($which:ident($($argument:expr),*) as $type:ty, otherwise $other:expr) => {
        match next(Next::$which) {
            // SAFETY: the function has the type of its name, and the program's own arguments are passed on.
            Some(function) => unsafe { core::mem::transmute::<usize, $type>(function)($($argument),*) },
            None => $other,
        }
    };
}

unsafe extern "C" fn on_malloc(size: usize, sp: usize, fp: usize, ip: usize) -> *mut u8 {
    allocate(
        size,
        Caller { ip, sp, fp },
        || call_next!(Malloc(size) as extern "C" fn(usize) -> *mut u8, otherwise bootstrap::allocate(size, 16)),
    )
}

unsafe extern "C" fn on_calloc(count: usize, size: usize, sp: usize, fp: usize, ip: usize) -> *mut u8 {
    let bytes = count.saturating_mul(size);
    allocate(bytes, Caller { ip, sp, fp }, || {
        call_next!(Calloc(count, size) as extern "C" fn(usize, usize) -> *mut u8,
            otherwise bootstrap::allocate(bytes, 16))
    })
}

unsafe extern "C" fn on_realloc(block: *mut u8, size: usize, sp: usize, fp: usize, ip: usize) -> *mut u8 {
    let caller = Caller { ip, sp, fp };
    if block.is_null() {
        return allocate(size, caller, || reallocated(block, size));
    }
    if let Some(len) = bootstrap::size_of(block) {
        return from_bootstrap(block, len, size, caller);
    }
    if recorder::is_off() {
        return reallocated(block, size);
    }
    let thread = thread::state();
    if thread.is_inside.replace(true) {
        return reallocated(block, size);
    }
    let released = recorder::release(block as usize, held(block));
    let moved = reallocated(block, size);
    let held = if moved.is_null() { 0 } else { held(moved) };
    thread.is_inside.set(false);
    note_move(released, (moved, held), size, caller);
    moved
}

/// Notes what came of a block that was to be resized: it was freed, and there is a new one at the caller's
/// stack, or it has stayed.
fn note_move(released: Released, (moved, held): (*mut u8, usize), size: usize, caller: Caller) {
    if moved.is_null() && size > 0 {
        return recorder::restore(released);
    }
    released.record();
    if !moved.is_null() {
        recorder::allocated(moved as usize, size, held, || caller);
    }
}

fn reallocated(block: *mut u8, size: usize) -> *mut u8 {
    call_next!(Realloc(block, size) as extern "C" fn(*mut u8, usize) -> *mut u8,
        otherwise bootstrap::allocate(size, 16))
}

/// Resizes a block from the time before the allocator was found.
fn from_bootstrap(block: *mut u8, len: usize, size: usize, caller: Caller) -> *mut u8 {
    // SAFETY: the arguments are those of the hook.
    let new = unsafe { on_malloc(size, caller.sp, caller.fp, caller.ip) };
    if !new.is_null() {
        // SAFETY: both blocks have at least as many bytes, and the new one was allocated just now.
        unsafe { core::ptr::copy_nonoverlapping(block, new, len.min(size)) };
    }
    new
}

unsafe extern "C" fn on_reallocarray(
    block: *mut u8,
    count: usize,
    size: usize,
    sp: usize,
    fp: usize,
    ip: usize,
) -> *mut u8 {
    match count.checked_mul(size) {
        // SAFETY: the arguments are those of the hook.
        Some(bytes) => unsafe { on_realloc(block, bytes, sp, fp, ip) },
        // The allocator sets the error, because no block is as large.
        None => reallocated(block, usize::MAX),
    }
}

unsafe extern "C" fn on_posix_memalign(
    place: *mut *mut u8,
    alignment: usize,
    size: usize,
    sp: usize,
    fp: usize,
    ip: usize,
) -> i32 {
    const NO_MEMORY: i32 = 12;
    let mut status = NO_MEMORY;
    allocate(size, Caller { ip, sp, fp }, || {
        status = call_next!(PosixMemalign(place, alignment, size)
            as extern "C" fn(*mut *mut u8, usize, usize) -> i32, otherwise NO_MEMORY);
        // SAFETY: the function has succeeded, so it has written the program's place.
        if status == 0 { unsafe { *place } } else { null_mut() }
    });
    status
}

unsafe extern "C" fn on_aligned_alloc(
    alignment: usize,
    size: usize,
    sp: usize,
    fp: usize,
    ip: usize,
) -> *mut u8 {
    allocate(size, Caller { ip, sp, fp }, || {
        call_next!(AlignedAlloc(alignment, size) as extern "C" fn(usize, usize) -> *mut u8,
            otherwise bootstrap::allocate(size, alignment))
    })
}

unsafe extern "C" fn on_memalign(alignment: usize, size: usize, sp: usize, fp: usize, ip: usize) -> *mut u8 {
    allocate(size, Caller { ip, sp, fp }, || {
        call_next!(Memalign(alignment, size) as extern "C" fn(usize, usize) -> *mut u8,
            otherwise bootstrap::allocate(size, alignment))
    })
}

unsafe extern "C" fn on_valloc(size: usize, sp: usize, fp: usize, ip: usize) -> *mut u8 {
    allocate(
        size,
        Caller { ip, sp, fp },
        || call_next!(Valloc(size) as extern "C" fn(usize) -> *mut u8, otherwise null_mut()),
    )
}

unsafe extern "C" fn on_pvalloc(size: usize, sp: usize, fp: usize, ip: usize) -> *mut u8 {
    allocate(
        size,
        Caller { ip, sp, fp },
        || call_next!(Pvalloc(size) as extern "C" fn(usize) -> *mut u8, otherwise null_mut()),
    )
}

/// A block for an operator of C++ that the program lacks.
#[cfg(nyquist_operators)]
pub(super) fn malloc_for_operator(size: usize, alignment: usize) -> *mut u8 {
    if alignment <= 16 {
        return call_next!(Malloc(size) as extern "C" fn(usize) -> *mut u8, otherwise bootstrap::allocate(size, 16));
    }
    let size = size.checked_next_multiple_of(alignment).unwrap_or(usize::MAX);
    call_next!(AlignedAlloc(alignment, size) as extern "C" fn(usize, usize) -> *mut u8,
        otherwise bootstrap::allocate(size, alignment))
}

#[no_mangle]
pub(super) unsafe extern "C" fn free(block: *mut u8) {
    if block.is_null() || bootstrap::size_of(block).is_some() {
        return;
    }
    let thread = thread::state();
    let was_inside = thread.is_inside.replace(true);
    if !recorder::is_off() && !was_inside {
        recorder::release(block as usize, held(block)).record();
    }
    call_next!(Free(block) as extern "C" fn(*mut u8), otherwise());
    thread.is_inside.set(was_inside);
}

#[no_mangle]
unsafe extern "C" fn malloc_usable_size(block: *mut u8) -> usize {
    match bootstrap::size_of(block) {
        Some(len) => len,
        None if block.is_null() => 0,
        None => held(block),
    }
}
