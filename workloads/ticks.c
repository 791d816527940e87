// Works 0.3 ms at the start of every millisecond of the clock, the rhythm that a sampler of the same period
// sees always or never. Argument: ms of CPU time.
#include "work.h"

NOINLINE void tick_work(uint64_t ns) {
    uint64_t end = thread_cpu_ns() + ns;
    while (thread_cpu_ns() < end)
        for (unsigned i = 0; i < 10000; i++) __asm__ volatile("" : : "r"(i));
}

int main(int argc, char **argv) {
    uint64_t goal = (uint64_t)argument(argc, argv, 1, 500) * 1000000u;
    uint64_t next = clock_ns(CLOCK_MONOTONIC) / 1000000u * 1000000u;
    ready();
    while (thread_cpu_ns() < goal) {
        next += 1000000u;
        struct timespec at = {(time_t)(next / 1000000000u), (long)(next % 1000000000u)};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
        tick_work(300000);
    }
    truth_part("tick_work", clock_ns(CLOCK_PROCESS_CPUTIME_ID));
    truth_write("ticks");
    return 0;
}
