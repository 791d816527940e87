//! A program whose allocator is wrapped: it keeps 1,000 blocks of 1,000 bytes, and frees as many.
#[global_allocator]
static ALLOCATOR: nyquist_alloc::Recorded<std::alloc::System> =
    nyquist_alloc::Recorded::new(std::alloc::System);

#[inline(never)]
fn keeps() {
    for number in 0..1000_u32 {
        std::mem::forget(std::hint::black_box(vec![number as u8; 1000]));
    }
}

#[inline(never)]
fn frees() {
    for number in 0..1000_u32 {
        drop(std::hint::black_box(vec![number as u8; 1000]));
    }
}

fn main() {
    keeps();
    frees();
}
