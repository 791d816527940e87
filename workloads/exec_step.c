// Burns `ms`, then becomes the program that the other arguments name. Arguments: ms, program, its arguments.
#include "work.h"

NOINLINE void before_exec(long ms) { BURN("before_exec", ms); }

int main(int argc, char **argv) {
    before_exec(argument(argc, argv, 1, 100));
    truth_write("exec_step");
    if (argc < 3) return 0;
    execvp(argv[2], argv + 2);
    perror(argv[2]);
    return 127;
}
