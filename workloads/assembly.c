// Calls assembly functions that have no unwind information: one after the other, each from a function of its own, for a third of
// the time each. Argument: ms.
#include "work.h"

void spins_aligned(uint64_t turns);
void spins_aligned_by_register(uint64_t turns);
void spins_by_jumps(uint64_t turns);

static uint64_t goal;

// A turn takes a millisecond or so, so that asking the clock is no part of it.
#define CALLS(function)                                                                                      \
    NOINLINE void calls_##function(void) {                                                                   \
        uint64_t began = thread_cpu_ns(), used;                                                              \
        do {                                                                                                 \
            function(1000000);                                                                               \
            used = thread_cpu_ns() - began;                                                                  \
        } while (used < goal);                                                                               \
        truth_part(#function, used);                                                                         \
    }

CALLS(spins_aligned)
CALLS(spins_aligned_by_register)
CALLS(spins_by_jumps)

int main(int argc, char **argv) {
    goal = (uint64_t)argument(argc, argv, 1, 300) * 1000000u / 3;
    ready();
    calls_spins_aligned();
    calls_spins_aligned_by_register();
    calls_spins_by_jumps();
    truth_write("assembly");
    return 0;
}
