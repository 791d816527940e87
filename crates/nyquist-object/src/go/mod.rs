//! Go's own table of functions (`.gopclntab`), which every Go program has for its runtime, stripped or
//! not. It has a header, the list of functions, a record for each, and lists of values by instruction.
//!
//! The layout is that of Go's `runtime/symtab.go` (`pcHeader`, `functab`, `step`), `runtime/runtime2.go`
//! (`_func`) and "Go 1.2 Runtime Symbol Information" (golang.org/s/go12symtab). The versions of
//! Go 1.2, 1.16, 1.18 and 1.20 are supported, of either byte order and size of pointers.

mod func_header;
mod header;
mod pc_value;
#[cfg(test)]
mod tests;

pub use func_header::{FuncHeader, FunctionDetails};
pub use header::{ListEntry, TableHeader, Version};
pub use pc_value::{PcValue, PcValueReader};
