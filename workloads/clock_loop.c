// Asks for the time in a loop. Most of its time is in the vdso, which is code without a file. Argument: ms.
#include "work.h"

NOINLINE void ask_clock(long ms) {
    uint64_t began = thread_cpu_ns(), used;
    do {
        for (unsigned i = 0; i < 3000; i++) clock_ns(CLOCK_MONOTONIC);
        used = thread_cpu_ns() - began;
    } while (used < (uint64_t)ms * 1000000u);
    truth_part("ask_clock", used);
}

int main(int argc, char **argv) {
    ready();
    ask_clock(argument(argc, argv, 1, 300));
    truth_write("clock_loop");
    return 0;
}
