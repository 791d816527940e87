// Burns `ms`, then ends in the given way: `exit CODE` or `signal NUMBER`. Arguments: ms, how, which.
#include "work.h"
#include <signal.h>

NOINLINE void last_words(long ms) { BURN("last_words", ms); }

int main(int argc, char **argv) {
    last_words(argument(argc, argv, 1, 100));
    truth_write("ending");
    int which = (int)argument(argc, argv, 3, 0);
    if (argc > 2 && strcmp(argv[2], "signal") == 0) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        signal(which, SIG_DFL);
        raise(which);
    }
    return which;
}
