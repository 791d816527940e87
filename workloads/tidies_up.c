// Handles Ctrl-Z as editors do: puts things in order, stops, and puts them back when it goes on; works meanwhile, and ends
// with the status 5: tidies_up MS.
#include "work.h"

#include <signal.h>

static void say(const char *text) {
    if (write(STDOUT_FILENO, text, strlen(text)) < 0) _exit(98);
}

static void stop_in_order(int number) {
    say("tidied up\n");
    // Blocked while its handler runs, it stops the process when it is unblocked.
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    signal(number, SIG_DFL);
    raise(number);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    signal(number, stop_in_order);
    say("goes on\n");
}

static NOINLINE void work_around_stops(long ms) { BURN("work_around_stops", ms); }

int main(int argc, char **argv) {
    signal(SIGTSTP, stop_in_order);
    ready();
    work_around_stops(argument(argc, argv, 1, 1000));
    truth_write("tidies_up");
    return 5;
}
