// Takes another name while it runs. With a second argument, that file (the program's own) is deleted first.
#include "work.h"
#include <sys/prctl.h>

NOINLINE void work_under_new_name(long ms) { BURN("work_under_new_name", ms); }

int main(int argc, char **argv) {
    long ms = argument(argc, argv, 1, 300);
    if (argc > 2 && unlink(argv[2]) != 0) {
        perror(argv[2]);
        return 98;
    }
    prctl(PR_SET_NAME, "new name");
    ready();
    work_under_new_name(ms);
    truth_write("renamed");
    return 0;
}
