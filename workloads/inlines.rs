// A chain of inlined functions with known lines, and a generic one: outer_frame calls middle_inline, which holds
// deepest_inline, which spins. The tests know the lines below by their markers.
#[path = "common/work.rs"]
mod work;

#[inline(always)]
fn deepest_inline(goal: u64) -> u64 {
    let began = work::thread_cpu_ns();
    loop {
        for i in 0..300_000_u32 { // line: spin
            // SAFETY: the empty statement changes nothing; it only makes the compiler keep `i`.
            unsafe { std::arch::asm!("/* {0:e} */", in(reg) i, options(nomem, nostack)) };
        }
        let used = work::thread_cpu_ns() - began;
        if used >= goal {
            return used;
        }
    }
}

#[inline(always)]
fn middle_inline(goal: u64) -> u64 {
    deepest_inline(goal) + 1 // line: deepest_inline
}

#[inline(never)]
fn outer_frame(goal: u64) -> u64 {
    std::hint::black_box(middle_inline(goal)) // line: middle_inline
}

trait Shape {
    fn area(&self, goal: u64) -> u64;
}

struct Square<T>(T);

impl<T: Into<u64> + Copy> Shape for Square<T> {
    #[inline(never)]
    fn area(&self, goal: u64) -> u64 {
        let began = work::thread_cpu_ns();
        loop {
            work::spin_turn();
            let used = work::thread_cpu_ns() - began;
            if used >= goal {
                return std::hint::black_box(used + self.0.into() - self.0.into());
            }
        }
    }
}

fn main() {
    let goal = work::milliseconds(500) * 1_000_000;
    work::ready();
    let inlined = outer_frame(goal / 2);
    let generic = std::hint::black_box(Square(7_u32)).area(goal / 2);
    work::truth_write("inlines", &[("outer_frame", inlined), ("area", generic)]);
}
