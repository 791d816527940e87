// Work in a coroutine made by makecontext, which goes back to main at its end. Argument: ms.
#include "work.h"
#include <ucontext.h>

enum { STACK_BYTES = 256 << 10 };

static long coroutine_ms;

NOINLINE void in_coroutine(void) { BURN("in_coroutine", coroutine_ms); }

static void body(void) {
    in_coroutine();
    __asm__ volatile("");
}

int main(int argc, char **argv) {
    coroutine_ms = argument(argc, argv, 1, 400);
    ucontext_t back, coroutine;
    getcontext(&coroutine);
    coroutine.uc_stack = (stack_t){.ss_sp = malloc(STACK_BYTES), .ss_size = STACK_BYTES};
    coroutine.uc_link = &back;
    makecontext(&coroutine, body, 0);
    ready();
    swapcontext(&back, &coroutine);
    truth_write("coroutine");
    return 0;
}
