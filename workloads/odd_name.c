// A process whose name is not UTF-8; it becomes itself again with an empty command line (the kernel makes that
// one empty word).
#include "work.h"
#include <sys/prctl.h>

extern char **environ;

NOINLINE void odd_burn(long ms) { BURN("odd_burn", ms); }

int main(int argc, char **argv) {
    prctl(PR_SET_NAME, "odd\xff\xfe\"name");
    ready();
    odd_burn(argument(argc, argv, 1, 200));
    truth_write("odd_name");
    if (argc == 0 || argv[0][0] == '\0') return 0;
    char *none[] = {NULL};
    execve("/proc/self/exe", none, environ);
    return 98;
}
