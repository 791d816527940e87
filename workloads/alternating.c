// Two deep recursions in turn, each through two functions that call each other, with frames of the same size.
// So each place of the stack looks similar in both turns. If asked for, a third recursion is on top of both.
// Its frames do not distinguish them; only the innermost function does. The possible stacks are known
// exactly: `main`, then `first_even`, `first_odd`, `first_even`, ... as deep as asked for, then
// `common_even`, `common_odd`, ..., then `first_leaf`; or the same of the second. At every return the program
// compares its own list of calls with the actual one. Arguments: ms, µs a turn, depth of the two, depth of
// the common one.
#include "work.h"

#define MAX_DEPTH 100000

static long turn_us, depth, common_depth;
static int is_second;
static char shadow[MAX_DEPTH];
static long height;
static uint64_t first_ns, second_ns;

// About 272 bytes a frame; not optimised to a loop or a jump, because the caller's frame is used afterwards.
#define FRAME(letter, call)                                                                                  \
    volatile char room[232];                                                                                 \
    room[0] = (char)level;                                                                                   \
    shadow[height++] = letter;                                                                               \
    call;                                                                                                    \
    if (shadow[--height] != letter || room[0] != (char)level) abort();                                       \
    return room[0]

static uint64_t spin(uint64_t us) {
    uint64_t began = thread_cpu_ns(), used;
    do {
        for (unsigned i = 0; i < 3000; i++) __asm__ volatile("" : : "r"(i));
        used = thread_cpu_ns() - began;
    } while (used < us * 1000u);
    return used;
}

NOINLINE void first_leaf(void) { first_ns += spin((uint64_t)turn_us); }
NOINLINE void second_leaf(void) { second_ns += spin((uint64_t)turn_us); }

static void leaf(void) {
    if (is_second)
        second_leaf();
    else
        first_leaf();
}

NOINLINE int common_odd(long level);
NOINLINE int common_even(long level) {
    FRAME('e', if (level > 1) common_odd(level - 1); else leaf());
}
NOINLINE int common_odd(long level) {
    FRAME('o', if (level > 1) common_even(level - 1); else leaf());
}

static void top(void) {
    if (common_depth > 0)
        common_even(common_depth);
    else
        leaf();
}

NOINLINE int first_odd(long level);
NOINLINE int first_even(long level) {
    FRAME('1', if (level > 1) first_odd(level - 1); else top());
}
NOINLINE int first_odd(long level) {
    FRAME('2', if (level > 1) first_even(level - 1); else top());
}

NOINLINE int second_odd(long level);
NOINLINE int second_even(long level) {
    FRAME('3', if (level > 1) second_odd(level - 1); else top());
}
NOINLINE int second_odd(long level) {
    FRAME('4', if (level > 1) second_even(level - 1); else top());
}

int main(int argc, char **argv) {
    long ms = argument(argc, argv, 1, 500);
    turn_us = argument(argc, argv, 2, 1000);
    depth = argument(argc, argv, 3, 300);
    common_depth = argument(argc, argv, 4, 0);
    if (depth < 1 || common_depth < 0 || depth + common_depth > MAX_DEPTH) return 2;
    ready();
    uint64_t until = thread_cpu_ns() + (uint64_t)ms * 1000000u;
    while (thread_cpu_ns() < until) {
        is_second = 0;
        first_even(depth);
        is_second = 1;
        second_even(depth);
    }
    truth_part("first_leaf", first_ns);
    truth_part("second_leaf", second_ns);
    truth_write("alternating");
    return 0;
}
