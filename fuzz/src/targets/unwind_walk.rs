//! Walking arbitrary stacks over a real module: this program.

use std::fs::File;
use std::sync::{Arc, OnceLock};

use arbitrary::Unstructured;
use nyquist_object::{Architecture, Elf, FileSource};
use nyquist_unwind::Module;

/// Takes one input.
pub fn run(bytes: &[u8]) {
    static MODULE: OnceLock<Arc<Module>> = OnceLock::new();
    let module = MODULE.get_or_init(|| {
        let file = File::open("/proc/self/exe").expect("this program can be read");
        let elf = Elf::open(FileSource::new(file)).expect("this program is an ELF file");
        Arc::new(Module::from_elf(&elf).expect("this program has unwind information"))
    });
    let _ = crate::walk::walk(Architecture::X86_64, module, 0x400_0000, &mut Unstructured::new(bytes));
}
