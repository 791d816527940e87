//! Finds return addresses from registers, stack memory and modules.
//!
//! A profiler that has the registers of a thread and a copy of its stack needs the addresses of the calls
//! that led there. This crate finds them by the unwind information of the modules whose code is on the stack,
//! and by frame pointers in code without it.
//!
//! | | 64-bit x86 | 64-bit ARM |
//! |---|---|---|
//! | ELF: `.eh_frame`, `.debug_frame` | yes | yes |
//! | Go: `.gopclntab` | yes | yes |
//! | Mach-O: `__unwind_info`, `__eh_frame` | yes | yes |
//! | PE: `.pdata`, `.xdata` | yes | yes |
//! | code without information: instructions, frame pointers | yes | yes |
//! | functions without information: all of their instructions (ELF) | yes | |
//! | signal frames of Linux | yes | yes, also those of kernels that do not describe them |
//! | signed return addresses | | by the highest address of the process's code, or by a mask that is given |
//!
//! # Entry points
//! - [`Module`]: the unwinding tables of one binary, an ELF file or a PE image, compiled once, as far as
//!   walks need it, and shared by all threads and processes.
//!   [`Module::from_sections`] takes sections that the caller has read, and needs no file.
//! - [`AddressSpace`]: which modules are mapped where in one process.
//! - [`Unwinder`]: walks stacks; one for each thread that walks.
//! - [`StackMemory`]: how a walk reads the stack; [`StackCopy`] is one over copied bytes.
//!
//! ```
//! use nyquist_object::{Avma, Elf};
//! use nyquist_unwind::{AddressSpace, Module, Registers, StackCopy, Unwinder, WalkEnd};
//! use std::sync::Arc;
//!
//! # fn walk(file: Vec<u8>, registers: [u64; 17], stack: &[u8]) -> Result<(), Box<dyn std::error::Error>> {
//! let module = Arc::new(Module::from_elf(&Elf::open(file)?)?);
//! let mut space = AddressSpace::new();
//! space.map(Avma(0x5555_5555_6000), 0x8000, Avma(0x5555_5555_4000), module);
//!
//! let registers = Registers::X86_64(registers);
//! let memory = StackCopy { start: registers.stack_pointer(), bytes: stack };
//! let mut addresses = Vec::new();
//! let end = Unwinder::new().walk(&space, &registers, &memory, &mut |frame| addresses.push(frame.address()));
//! match end {
//!     WalkEnd::Root | WalkEnd::Bottom => println!("{addresses:?}"),
//!     WalkEnd::Truncated(reason) => println!("{addresses:?}, then {reason}"),
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # The caller's duties
//! - To map all executable memory of the process, also that which has no file ([`AddressSpace::map_code`]): a
//!   return address that is in no mapping ends the walk.
//! - To pass the address of the image base, and not that of the mapping; see
//!   [`MappedModule`](nyquist_object::MappedModule).
//! - To pass memory and registers of the same moment.
//! - To map only modules of the architecture that the registers are of.
//! - To look up names by [`FrameAddress::lookup_address`], and not by the return address itself.
//!
//! # What it does not do
//! It opens no files, reads no process, and knows no names, lines or inlined functions. It does not restore a
//! thread to an outer frame as an exception does, because it does not track registers that no outer step
//! needs.
//!
//! # How it works
//! The call frame information of a module, or the `UNWIND_INFO` of its functions, is compiled to a
//! [`RuleTable`](rule_table::RuleTable) of [`Rule`](rule::Rule)s. A rule has eight bytes. It states how to find the
//! canonical frame address, the caller's frame pointer and the return address. A row that a rule cannot
//! express is marked, and evaluated with all registers when a walk needs it. The walk is repeated up to there
//! with all registers, and then continues with three. Compact unwind information only describes the bodies of
//! functions. The rows of their prologues and epilogues are derived from the instructions while it is
//! compiled, and are in the same table. Each architecture has a folder with the same files. They define which
//! registers a step tracks, how a row becomes a rule and a rule a step, and the effects of instructions.
//! Walking allocates nothing and takes no lock, except when it needs a part of a module's code for the first
//! time. The call frame information of an ELF file is compiled in parts of 32 kB when a walk needs them. In a
//! large file it is only read then. Rows that are evaluated in full lock the read parts of a large file, and
//! wait while another thread compiles a part of it.

#![forbid(unsafe_code)]

mod aarch64;
mod architecture;
mod cache;
mod call_frame_info;
mod call_instruction;
mod cfi;
mod code;
mod compile;
mod error;
mod followed_functions;
mod found_rules;
mod frame;
mod function_symbols;
mod go;
mod indexed_frame_section;
mod inferred_rules;
mod lazy_uncovered_code;
mod lost_caller;
mod macho;
mod memory;
mod module;
mod pe;
mod registers;
mod return_address;
pub mod rule;
pub mod rule_table;
mod signal_stack;
mod slow;
mod space;
mod table_parts;
mod uncovered_frame;
mod unwinder;
mod x86_64;

pub use call_instruction::CallInstruction;
pub use error::{Damage, UnwindError};
pub use frame::{FrameAddress, Reason, WalkEnd};
pub use memory::{StackCopy, StackMemory};
pub use module::{Module, Section, Sections};
pub use registers::Registers;
pub use signal_stack::SignalStack;
pub use space::AddressSpace;
pub use unwinder::{MAX_FRAMES, Unwinder};
pub use x86_64::instructions::begins_with_stack_switch;

/// The example of the page that the registry shows.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
