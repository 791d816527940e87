//! Which function has allocated: the caller of what only passes on to an allocator, as it is the caller of `malloc`.

use crate::id::{FuncId, StackId};
use crate::profile::Profile;
use crate::sample::Sample;

/// The C library's. A recording has none of them, but other tools' files may: they may have their own in their place.
const OF_C: [&str; 11] = [
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "posix_memalign",
    "aligned_alloc",
    "memalign",
    "valloc",
    "pvalloc",
    "__libc_malloc",
    "__libc_realloc",
];

/// C++'s operators. Their parameters are behind them.
const OPERATORS: [&str; 2] = ["operator new(", "operator new[]("];

/// The types of C++'s standard libraries that have [`ALLOCATE`]: their template arguments are behind them.
const STANDARD_ALLOCATORS: [&str; 6] = [
    "std::__new_allocator<",
    "__gnu_cxx::new_allocator<",
    "std::allocator<",
    "std::allocator_traits<std::allocator<",
    "std::__1::allocator<",
    "std::__1::allocator_traits<std::__1::allocator<",
];

/// Their function that allocates.
const ALLOCATE: &str = ">::allocate";

/// Rust's, which a compiler puts between a program and its allocator. Some versions have a path before them.
const OF_RUST: [&str; 9] = [
    "__rust_alloc",
    "__rust_alloc_zeroed",
    "__rust_realloc",
    "__rdl_alloc",
    "__rdl_alloc_zeroed",
    "__rdl_realloc",
    "__rg_alloc",
    "__rg_alloc_zeroed",
    "__rg_realloc",
];

/// The starts of the names of those of Rust's standard library.
const OF_RUSTS_LIBRARY: [&str; 4] = [
    "alloc::alloc::",
    "<alloc::alloc::Global>::",
    "<alloc::alloc::Global as core::alloc::",
    "<std::alloc::System as core::alloc::",
];

/// The functions of a profile that only pass on to an allocator.
pub(crate) struct AllocationFunctions {
    /// Whether each function is one.
    are_such: Vec<bool>,
}

impl AllocationFunctions {
    /// O(functions).
    pub(crate) fn of(profile: &Profile) -> Self {
        let functions = (0..profile.funcs().len()).map(FuncId::from_index);
        Self { are_such: functions.map(|function| is_such(profile.func_name(function))).collect() }
    }

    /// The stack without the innermost frames of such functions, if others called them.
    pub(crate) fn caller(&self, profile: &Profile, stack: Option<StackId>) -> Option<StackId> {
        let is_caller = |stack: &StackId| {
            let function = profile.frame(profile.stack(*stack).frame).func;
            !self.are_such.get(function.index()).copied().unwrap_or(false)
        };
        stack.and_then(|stack| profile.ancestors(stack).find(is_caller)).or(stack)
    }
}

impl Profile {
    /// The same profile with each sample at the caller of the functions that only pass on to an allocator. For profiles
    /// whose samples are allocations. O(samples × depth).
    #[must_use]
    pub fn at_allocation_callers(mut self) -> Self {
        let functions = AllocationFunctions::of(&self);
        for at in 0..self.threads.len() {
            let mut samples = std::mem::take(&mut self.threads[at].samples);
            samples.map_each(|sample| Sample { stack: functions.caller(&self, sample.stack), ..sample });
            self.threads[at].samples = samples;
        }
        self
    }
}

/// Whether a function of that name only passes on to an allocator.
fn is_such(name: &str) -> bool {
    let starts_with = |starts: &[&str]| starts.iter().any(|start| name.starts_with(start));
    OF_C.contains(&name)
        || starts_with(&OPERATORS)
        || (starts_with(&STANDARD_ALLOCATORS) && name.contains(ALLOCATE))
        || OF_RUST.contains(&name.rsplit("::").next().unwrap_or(name))
        || starts_with(&OF_RUSTS_LIBRARY)
        || name.contains("GlobalAlloc for std::alloc::System>::")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_that_allocate_for_others_are_known() {
        for name in [
            "malloc",
            "posix_memalign",
            "operator new(unsigned long)",
            "operator new[](std::size_t, std::align_val_t)",
            "std::__new_allocator<std::pair<int const, char> >::allocate(unsigned long, void const*)",
            "std::allocator_traits<std::allocator<int> >::allocate",
            "alloc::alloc::alloc_zeroed",
            "<alloc::alloc::Global as core::alloc::Allocator>::allocate",
            "<alloc::alloc::Global>::alloc_impl_runtime",
            "__rust_alloc",
            "_RNvCsf1_7___rustc::__rust_realloc",
            "std::sys::alloc::unix::<impl core::alloc::global::GlobalAlloc for std::alloc::System>::alloc",
        ] {
            assert!(is_such(name), "{name}");
        }
        for name in [
            "operator new_thing(int)",
            "Pool::operator new(unsigned long)",
            "std::_Vector_base<int, std::allocator<int> >::_M_allocate",
            "std::allocator<int>::allocator",
            "alloc::raw_vec::RawVecInner<A>::finish_grow",
            "my__rust_alloc",
            "xmalloc",
            "std::malloc_stats",
        ] {
            assert!(!is_such(name), "{name}");
        }
    }
}
