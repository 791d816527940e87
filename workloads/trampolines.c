// Calls through code that it makes itself: pieces without a frame pointer, unwind information or name, as those that Python puts
// between its functions. Half of the time goes through pieces that are made later, beside the first ones. Argument: ms.
#include "work.h"
#include <stdlib.h>
#include <sys/mman.h>

#define ARENA (1 << 16)

// sub $8, %rsp; call *%rdi; add $8, %rsp; ret
static const unsigned char CODE[] = {0x48, 0x83, 0xec, 8, 0xff, 0xd7, 0x48, 0x83, 0xc4, 8, 0xc3};

typedef void function(void);
typedef void trampoline(function *);

static unsigned char *arena;
static long half_ms;
static uint64_t spent_ns;
static volatile unsigned calls;
static trampoline *to_middle, *to_inner;

static trampoline *make(unsigned place) {
    unsigned char *at = arena + place * 16;
    if (mprotect(arena, ARENA, PROT_READ | PROT_WRITE)) exit(1);
    for (unsigned i = 0; i < sizeof CODE; i++) at[i] = CODE[i];
    if (mprotect(arena, ARENA, PROT_READ | PROT_EXEC)) exit(1);
    return (trampoline *)(void *)at;
}

NOINLINE void inner(void) {
    uint64_t used;
    SPIN(half_ms, used);
    spent_ns += used;
}

// The statement after the call keeps it from being a jump.
NOINLINE void middle(void) {
    to_inner(inner);
    calls++;
}

NOINLINE void outer(void) {
    to_middle(middle);
    calls++;
}

int main(int argc, char **argv) {
    ready();
    half_ms = argument(argc, argv, 1, 400) / 2;
    arena = mmap(0, ARENA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (arena == MAP_FAILED) return 1;
    for (unsigned turn = 0; turn < 2; turn++) {
        to_middle = make(2 * turn);
        to_inner = make(2 * turn + 1);
        outer();
    }
    truth_part("inner", spent_ns);
    truth_write("trampolines");
    return 0;
}
