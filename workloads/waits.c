// Waits for signals. Arguments: the action on SIGINT: save FILE writes the file and exits with 3 ignore goes
// on default nothing is set up It burns a little first, so that a recording of it has samples, and sleeps
// then.
#include "work.h"
#include <signal.h>

static const char *saved_path;

static void save(int signal_number) {
    (void)signal_number;
    int fd = open(saved_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    _exit(fd >= 0 && write(fd, "saved\n", 6) == 6 ? 3 : 98);
}

NOINLINE void before_waiting(long ms) { BURN("before_waiting", ms); }

int main(int argc, char **argv) {
    if (argc > 2 && strcmp(argv[1], "save") == 0) {
        saved_path = argv[2];
        signal(SIGINT, save);
    } else if (argc > 1 && strcmp(argv[1], "ignore") == 0) {
        signal(SIGINT, SIG_IGN);
    }
    before_waiting(100);
    truth_write("waits");
    ready();
    for (;;) pause();
}
