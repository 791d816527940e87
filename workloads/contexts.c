// Work in contexts that the C library has made: one after which nothing comes, one after which another context does, and one of a
// function with arguments on the stack. And work in a signal handler on a stack of its own.
#include "work.h"
#include <signal.h>
#include <ucontext.h>

enum { STACK_BYTES = 256 << 10 };

static ucontext_t caller, last, linked, many;
static long part_ms;

NOINLINE void in_last(void) { BURN("in_last", part_ms); }
NOINLINE void in_linked(void) { BURN("in_linked", part_ms); }
NOINLINE void with_arguments(int a, int b, int c, int d, int e, int f, int g, int h) {
    if (a + b + c + d + e + f + g + h == 36) BURN("with_arguments", part_ms);
}
NOINLINE void on_own_stack(void) { BURN("on_own_stack", part_ms); }

static void work_last(void) {
    in_last();
    swapcontext(&last, &caller);
}

static void work_linked(void) {
    in_linked();
    __asm__ volatile("");
}

static void handler(int signal_number) {
    (void)signal_number;
    on_own_stack();
    __asm__ volatile("");
}

static void make(ucontext_t *context, ucontext_t *next) {
    getcontext(context);
    context->uc_stack.ss_sp = malloc(STACK_BYTES);
    context->uc_stack.ss_size = STACK_BYTES;
    context->uc_link = next;
}

int main(int argc, char **argv) {
    part_ms = argument(argc, argv, 1, 800) / 4;
    make(&last, NULL);
    makecontext(&last, work_last, 0);
    make(&linked, &caller);
    makecontext(&linked, work_linked, 0);
    make(&many, &caller);
    makecontext(&many, (void (*)(void))with_arguments, 8, 1, 2, 3, 4, 5, 6, 7, 8);
    stack_t own = {.ss_sp = malloc(STACK_BYTES), .ss_size = STACK_BYTES};
    sigaltstack(&own, NULL);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR1, &action, NULL);
    ready();
    swapcontext(&caller, &last);
    swapcontext(&caller, &linked);
    swapcontext(&caller, &many);
    raise(SIGUSR1);
    truth_write("contexts");
    return 0;
}
