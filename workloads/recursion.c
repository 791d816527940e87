// A recursion of a given depth, about 272 bytes of stack a level; the innermost level burns. Arguments: ms, depth; with
// any third one, the process denies access to its memory.
#include <sys/prctl.h>

#include "work.h"

NOINLINE void bottom(long ms) { BURN("bottom", ms); }

NOINLINE int descend(long depth, long ms) {
    volatile char room[232];
    room[0] = (char)depth;
    if (depth == 0)
        bottom(ms);
    else
        descend(depth - 1, ms);
    return room[0];
}

int main(int argc, char **argv) {
    long ms = argument(argc, argv, 1, 500), depth = argument(argc, argv, 2, 300);
    if (argc > 3) prctl(PR_SET_DUMPABLE, 0);
    ready();
    descend(depth - 1, ms);
    truth_write("recursion");
    return 0;
}
