// Sends itself SIGTRAP, by raise and by int3, while it works. It handles and counts the signals, and checks
// their siginfo. Or it does not handle them, and dies: traps [raise|int3].
#include "work.h"

#include <signal.h>

#define TIMES 300

static volatile sig_atomic_t handled, codes[2];

static void handler(int number, siginfo_t *info, void *context) {
    (void)number;
    (void)context;
    handled++;
    // All alike, or the first two that are not.
    if (handled == 1 || info->si_code != codes[0]) codes[handled > 1] = info->si_code;
}

static NOINLINE void trap_by(const char *how) {
    if (how[0] == 'r')
        raise(SIGTRAP);
    else
        __asm__ volatile("int3");
}

static void handle_all(const char *how) {
    uint64_t used;
    handled = 0;
    codes[1] = 0;
    for (int i = 0; i < TIMES; i++) {
        trap_by(how);
        SPIN(1, used);
    }
    printf("%s: %d handled of %d, si_code %d", how, (int)handled, TIMES, (int)codes[0]);
    printf(codes[1] ? ", and %d too\n" : "\n", (int)codes[1]);
}

int main(int argc, char **argv) {
    if (argc > 1) {
        trap_by(argv[1]);
        return 0;
    }
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
    sigaction(SIGTRAP, &action, NULL);
    handle_all("raise");
    handle_all("int3");
    return 0;
}
