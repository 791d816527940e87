// Works while it is disturbed all the time: by signals that it handles, or by processes that it makes: disturbed MS
// signals|births. A tracer that asks a thread to stop finds it stopped for another reason, sooner or later.
#include "work.h"

#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>

static volatile sig_atomic_t signals;

static void handler(int number) {
    (void)number;
    signals++;
}

static NOINLINE void work_beside_signals(uint64_t ns) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval timer = {{0, 100}, {0, 100}}, none = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &timer, NULL);
    uint64_t used;
    for (uint64_t began = clock_ns(CLOCK_MONOTONIC); clock_ns(CLOCK_MONOTONIC) - began < ns;) SPIN(1, used);
    setitimer(ITIMER_REAL, &none, NULL);
}

static NOINLINE void work_beside_births(uint64_t ns) {
    uint64_t used;
    for (uint64_t began = clock_ns(CLOCK_MONOTONIC); clock_ns(CLOCK_MONOTONIC) - began < ns;) {
        pid_t child = fork();
        if (child == 0) _exit(0);
        SPIN(1, used);
        waitpid(child, NULL, 0);
    }
}

int main(int argc, char **argv) {
    uint64_t ns = (uint64_t)argument(argc, argv, 1, 1000) * 1000000u;
    if (argc > 2 && argv[2][0] == 'b')
        work_beside_births(ns);
    else
        work_beside_signals(ns);
    truth_write("disturbed");
    return 0;
}
