// Calls an assembly leaf that has no unwind information.
#include "work.h"

void leaf_without_cfi(uint64_t turns);

NOINLINE void calls_leaf(long ms) {
    uint64_t began = thread_cpu_ns(), used;
    do {
        // A millisecond or so: asking the clock is no part of the leaf, and takes a hundredth of a shorter turn.
        leaf_without_cfi(3000000);
        used = thread_cpu_ns() - began;
    } while (used < (uint64_t)ms * 1000000u);
    truth_part("leaf_without_cfi", used);
}

int main(int argc, char **argv) {
    long ms = argument(argc, argv, 1, 300);
    ready();
    calls_leaf(ms);
    truth_write("no_cfi");
    return 0;
}
