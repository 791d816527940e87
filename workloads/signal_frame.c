// A signal handler that burns, entered from interrupted_work, which burns as long itself.
#include "work.h"
#include <signal.h>

static long handler_ms;
static volatile sig_atomic_t handled;

NOINLINE void burn_in_handler(void) { BURN("burn_in_handler", handler_ms); }

static void handler(int signal_number) {
    (void)signal_number;
    burn_in_handler();
    handled++;
}

NOINLINE void interrupted_work(long ms) {
    BURN("interrupted_work", ms / 2);
    raise(SIGUSR1);
    BURN("interrupted_work", ms / 2);
}

// Interrupted at an arbitrary instruction, not in a call: the frame below the signal's is no return address.
NOINLINE void interrupted_anywhere(void) {
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    struct itimerspec soon = {{0, 0}, {0, 1000000}};
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    timer_settime(timer, 0, &soon, NULL);
    sig_atomic_t before = handled;
    while (handled == before) {}
    timer_delete(timer);
}

int main(int argc, char **argv) {
    long ms = argument(argc, argv, 1, 600);
    handler_ms = ms / 3;
    signal(SIGUSR1, handler);
    ready();
    interrupted_work(ms / 3);
    interrupted_anywhere();
    truth_write("signal_frame");
    return 0;
}
