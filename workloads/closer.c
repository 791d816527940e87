// Closes every descriptor that it was given, whatever they are, then works. Argument: ms.
#include "work.h"

NOINLINE void work_without_files(long ms) { BURN("work_without_files", ms); }

int main(int argc, char **argv) {
    for (int fd = 0; fd < 65536; fd++) close(fd);
    work_without_files(argument(argc, argv, 1, 300));
    truth_write("closer");
    return 0;
}
