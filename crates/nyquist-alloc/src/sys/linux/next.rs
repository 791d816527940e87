//! The allocator that the program would have without the preloaded library: the next function of each name.
//!
//! The search is made at the first allocation, when all libraries that the program needs are mapped.

use crate::protocol::flag;
use core::ffi::{c_char, c_void};
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

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

/// The address of a symbol that the program may lack; 0 if it does.
macro_rules! weak_symbol {
    ($name:literal) => {{
        let address: usize;
        #[cfg(target_arch = "x86_64")]
        // SAFETY: it reads the address of a symbol.
        unsafe {
            core::arch::asm!(concat!(".weak ", $name), concat!("mov {0}, qword ptr [rip + ", $name, "@GOTPCREL]"), out(reg) address);
        }
        #[cfg(target_arch = "aarch64")]
        // SAFETY: it reads the address of a symbol.
        unsafe {
            core::arch::asm!(concat!(".weak ", $name), concat!("adrp {0}, :got:", $name), concat!("ldr {0}, [{0}, :got_lo12:", $name, "]"), out(reg) address);
        }
        address
    }};
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

/// The recorder's flags of this program.
static FLAGS: AtomicU64 = AtomicU64::new(0);

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
        if cfg!(not(nyquist_operators)) && has_own_operators() {
            FLAGS.store(flag::OPERATORS_NOT_SEEN, Ordering::Relaxed);
        }
        SEARCH.store(2, Ordering::Release);
    }
    let found = FOUND.get(which as usize)?.load(Ordering::Relaxed);
    (found != 0).then_some(found)
}

/// What the recorder should know of this program.
pub(super) fn flags() -> u64 {
    FLAGS.load(Ordering::Relaxed)
}

/// Whether the library that has the allocator has C++'s operators, too. Then they are no callers of `malloc`.
fn has_own_operators() -> bool {
    let operator = look_up(c"_Znwm".as_ptr());
    let Some(allocator) = FOUND.first().map(|place| place.load(Ordering::Relaxed)) else { return false };
    operator != 0
        && allocator != 0
        && library_of(operator).is_some_and(|it| library_of(allocator) == Some(it))
}

/// What `dladdr` returns of an address (`Dl_info`).
#[repr(C)]
struct AddressInfo {
    file: *const c_char,
    /// Where the file is mapped.
    base: *mut c_void,
    symbol: *const c_char,
    address: *mut c_void,
}

/// Where the library of an address is mapped.
fn library_of(address: usize) -> Option<usize> {
    let function = weak_symbol!("dladdr");
    if function == 0 {
        return None;
    }
    let mut info = AddressInfo {
        file: core::ptr::null(),
        base: core::ptr::null_mut(),
        symbol: core::ptr::null(),
        address: core::ptr::null_mut(),
    };
    // SAFETY: the symbol has this type, and writes no more than the structure.
    let found = unsafe {
        core::mem::transmute::<usize, extern "C" fn(usize, *mut AddressInfo) -> i32>(function)(
            address, &mut info,
        )
    };
    (found != 0).then_some(info.base as usize)
}

/// Looks a name up behind this library; 0 if the program has none. Before version 2.34, glibc has the function for this
/// in a library of its own, which a program may lack; then there is no allocator to be found.
pub(super) fn look_up(name: *const c_char) -> usize {
    const NEXT: *mut c_void = usize::MAX as *mut c_void;
    let function = weak_symbol!("dlsym");
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
