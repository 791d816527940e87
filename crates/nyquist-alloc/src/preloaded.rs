//! The root of the library that is preloaded into programs. It is built by the build script, without the
//! standard library and without dependencies.

#![no_std]
#![allow(dead_code, reason = "the protocol also has what only the reader of its files needs")]

pub mod protocol;
mod sys;

/// Nothing panics here. If it did, the program would go on waiting here, and not be harmed further.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}
