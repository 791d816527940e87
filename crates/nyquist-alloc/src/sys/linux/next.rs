//! The allocator that the program would have without the preloaded library: the next function of each name.

use core::ffi::{c_char, c_void};
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// A function of an allocator.
#[derive(Clone, Copy)]
pub(super) enum Next {
    Malloc,
    Calloc,
    Realloc,
    PosixMemalign,
    AlignedAlloc,
    Memalign,
    Valloc,
    Pvalloc,
    Free,
    UsableSize,
}

const NAMES: [&core::ffi::CStr; 10] = [
    c"malloc",
    c"calloc",
    c"realloc",
    c"posix_memalign",
    c"aligned_alloc",
    c"memalign",
    c"valloc",
    c"pvalloc",
    c"free",
    c"malloc_usable_size",
];

static FOUND: [AtomicUsize; NAMES.len()] = [const { AtomicUsize::new(0) }; NAMES.len()];

/// 0 before the search, 1 while it goes on, 2 after it.
static SEARCH: AtomicU32 = AtomicU32::new(0);

/// The address of a function. `None` while it is looked for, and if the program has none.
#[inline(always)]
pub(super) fn next(which: Next) -> Option<usize> {
    let found = FOUND.get(which as usize).map_or(0, |place| place.load(Ordering::Relaxed));
    if found != 0 { Some(found) } else { search(which) }
}

#[cold]
fn search(which: Next) -> Option<usize> {
    if SEARCH.compare_exchange(0, 1, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
        for (name, place) in NAMES.iter().zip(&FOUND) {
            place.store(look_up(name.as_ptr()), Ordering::Relaxed);
        }
        SEARCH.store(2, Ordering::Release);
    }
    let found = FOUND.get(which as usize)?.load(Ordering::Relaxed);
    (found != 0).then_some(found)
}

/// Looks a name up behind this library. Before version 2.34, glibc has the function for this in a library of its
/// own, which a program may lack; then there is no allocator to be found.
fn look_up(name: *const c_char) -> usize {
    const NEXT: *mut c_void = usize::MAX as *mut c_void;
    let function: usize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: it reads the address of a symbol, which is 0 if the program has none.
    unsafe {
        core::arch::asm!(".weak dlsym", "mov {0}, qword ptr [rip + dlsym@GOTPCREL]", out(reg) function);
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: it reads the address of a symbol, which is 0 if the program has none.
    unsafe {
        core::arch::asm!(".weak dlsym", "adrp {0}, :got:dlsym", "ldr {0}, [{0}, :got_lo12:dlsym]", out(reg) function);
    }
    if function == 0 {
        return 0;
    }
    // SAFETY: the symbol has this type, and the name ends with a zero.
    unsafe {
        core::mem::transmute::<usize, extern "C" fn(*mut c_void, *const c_char) -> usize>(function)(
            NEXT, name,
        )
    }
}
