// A 32-bit program without a library, because none may be installed: it works for some CPU time, waits, and
// ends.
struct span {
    int seconds, nanoseconds;
};

static int call(int number, int first, void *second) {
    int result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(first), "c"(second) : "memory");
    return result;
}

__attribute__((noinline)) void bits32_work(void) {
    const int clock_gettime_number = 265, process_cpu_time = 2;
    struct span used = {0, 0};
    while (used.seconds == 0 && used.nanoseconds < 400000000) {
        for (unsigned i = 0; i < 300000; i++) __asm__ volatile("" : : "r"(i));
        if (call(clock_gettime_number, process_cpu_time, &used) != 0) return;
    }
}

__attribute__((noinline)) void bits32_wait(void) {
    const int nanosleep_number = 162;
    struct span pause = {0, 150000000};
    call(nanosleep_number, (int)&pause, 0);
}

void _start(void) {
    bits32_work();
    bits32_wait();
    // As it exits, its next instruction is one of this function.
    for (;;) call(1, 0, 0);
}
