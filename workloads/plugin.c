// A library that is loaded while the host runs.
#include "work.h"

NOINLINE uint64_t plugin_inner(long ms) {
    uint64_t used;
    SPIN(ms, used);
    return used;
}

uint64_t plugin_entry(long ms) {
    uint64_t used = plugin_inner(ms);
    __asm__ volatile("" : "+r"(used));
    return used;
}
