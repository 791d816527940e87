// Frames whose size is known only when they run: alloca, a variable-length array, and an over-aligned local.
#include "work.h"
#include <alloca.h>

NOINLINE void burn_below(long ms) { BURN("burn_below", ms); }

NOINLINE int with_alloca(long bytes, long ms) {
    volatile char *room = alloca((size_t)bytes);
    room[bytes - 1] = 1;
    burn_below(ms);
    return room[bytes - 1];
}

NOINLINE int with_array(long count, long ms) {
    volatile long room[count];
    room[count - 1] = 1;
    int result = with_alloca(count * 16, ms);
    return result + (int)room[count - 1];
}

NOINLINE int with_alignment(long count, long ms) {
    volatile char room[64] __attribute__((aligned(256)));
    room[0] = 1;
    int result = with_array(count, ms);
    return result + room[0];
}

int main(int argc, char **argv) {
    long ms = argument(argc, argv, 1, 300);
    ready();
    int sum = 0;
    for (long turn = 1; turn <= 10; turn++) sum += with_alignment(turn * 7, ms / 10);
    truth_write("dynamic_frames");
    return sum == 30 ? 0 : 96;
}
