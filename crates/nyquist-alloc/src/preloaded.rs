//! The root of the library that is preloaded into programs. It is built by the build script, without the
//! standard library and without dependencies.

#![no_std]

pub mod protocol;
mod sys;

/// Nothing panics here. If it did, the program would go on waiting here, and not be harmed further.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}
