// Work in a signal handler on a stack of its own. Argument: ms.
#include "work.h"
#include <signal.h>

enum { STACK_BYTES = 256 << 10 };

static long handler_ms;

NOINLINE void on_own_stack(void) { BURN("on_own_stack", handler_ms); }

static void handler(int signal_number) {
    (void)signal_number;
    on_own_stack();
    __asm__ volatile("");
}

int main(int argc, char **argv) {
    handler_ms = argument(argc, argv, 1, 400);
    stack_t own = {.ss_sp = malloc(STACK_BYTES), .ss_size = STACK_BYTES};
    sigaltstack(&own, NULL);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR1, &action, NULL);
    ready();
    raise(SIGUSR1);
    truth_write("signal_stack");
    return 0;
}
