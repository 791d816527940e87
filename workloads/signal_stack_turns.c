// Two functions in turn interrupt themselves in the same place, and the handler works on a stack of its own for each.
// Arguments: ms in all, ms of a handler, ms between two handlers.
#include "work.h"
#include <signal.h>

enum { STACK_BYTES = 64 << 10 };

static long handler_ms, between_ms;
static int turn;

NOINLINE void on_stack_a(void) { BURN("on_stack_a", handler_ms); }
NOINLINE void on_stack_b(void) { BURN("on_stack_b", handler_ms); }

static void handler(int signal_number) {
    (void)signal_number;
    if (turn) on_stack_b();
    else on_stack_a();
    __asm__ volatile("");
}

NOINLINE void interrupt_itself(void) {
    raise(SIGUSR1);
    __asm__ volatile("");
}

NOINLINE void work_a(void) {
    interrupt_itself();
    if (between_ms) BURN("work_a", between_ms);
}

NOINLINE void work_b(void) {
    interrupt_itself();
    if (between_ms) BURN("work_b", between_ms);
}

int main(int argc, char **argv) {
    long all_ms = argument(argc, argv, 1, 4000);
    handler_ms = argument(argc, argv, 2, 200);
    between_ms = argument(argc, argv, 3, 100);
    stack_t own = {.ss_sp = malloc(STACK_BYTES), .ss_size = STACK_BYTES};
    sigaltstack(&own, NULL);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR1, &action, NULL);
    ready();
    uint64_t end = thread_cpu_ns() + (uint64_t)all_ms * 1000000u;
    for (; thread_cpu_ns() < end; turn = !turn) {
        if (turn) work_b();
        else work_a();
    }
    truth_write("signal_stack_turns");
    return 0;
}
