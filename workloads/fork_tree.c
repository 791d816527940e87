// A tree of processes: the parent burns 20 %, its children 30 % and 40 %, a grandchild 10 %, each under its own name.
#include "work.h"
#include <sys/prctl.h>
#include <sys/wait.h>

NOINLINE void process_burn(const char *name, long ms) {
    prctl(PR_SET_NAME, name);
    BURN(name, ms);
    truth_write(name);
}

NOINLINE void branch(const char *name, long ms, const char *below, long below_ms) {
    if (fork() != 0) return;
    part_count = 0;
    process_burn(name, ms);
    if (below) branch(below, below_ms, NULL, 0);
    while (wait(NULL) > 0) {}
    _exit(0);
}

int main(int argc, char **argv) {
    long ms = argument(argc, argv, 1, 1000);
    ready();
    branch("child-30", ms * 3 / 10, "grandchild-10", ms / 10);
    branch("child-40", ms * 4 / 10, NULL, 0);
    process_burn("parent-20", ms / 5);
    while (wait(NULL) > 0) {}
    return 0;
}
