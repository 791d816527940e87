// Computes on a stack that the program has made: in a function of makecontext, or in a signal handler. Arguments: `context` or `handler`, ms.
#include "work.h"
#include <signal.h>
#include <ucontext.h>

static ucontext_t before, inside;
static char stack[1 << 18];
static long ms;

NOINLINE void on_context(void) { BURN("on_context", ms); }

NOINLINE void in_handler(void) { BURN("in_handler", ms); }

static void handler(int signal) {
    (void)signal;
    in_handler();
    __asm__ volatile("");
}

NOINLINE void interrupted(void) {
    raise(SIGUSR1);
    __asm__ volatile("");
}

int main(int argc, char **argv) {
    ms = argument(argc, argv, 2, 500);
    if (argc > 1 && strcmp(argv[1], "handler") == 0) {
        stack_t other = {.ss_sp = stack, .ss_size = sizeof stack};
        struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
        if (sigaltstack(&other, NULL) != 0 || sigaction(SIGUSR1, &action, NULL) != 0) return 98;
        ready();
        interrupted();
    } else {
        getcontext(&inside);
        inside.uc_stack = (stack_t){.ss_sp = stack, .ss_size = sizeof stack};
        inside.uc_link = &before;
        makecontext(&inside, on_context, 0);
        ready();
        swapcontext(&before, &inside);
    }
    truth_write("other_stacks");
    return 0;
}
