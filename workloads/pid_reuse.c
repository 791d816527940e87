// Two processes, one after the other, with the same number: clone3(2) with `set_tid`, which takes CAP_SYS_ADMIN or
// CAP_CHECKPOINT_RESTORE. Argument: ms of each.
#include "work.h"
#include <linux/sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

NOINLINE void first_life(long ms) { BURN("first_life", ms); }
NOINLINE void second_life(long ms) { BURN("second_life", ms); }

static pid_t born(pid_t number) {
    struct clone_args arguments = {.exit_signal = SIGCHLD};
    if (number) {
        arguments.set_tid = (uint64_t)(uintptr_t)&number;
        arguments.set_tid_size = 1;
    }
    return (pid_t)syscall(SYS_clone3, &arguments, sizeof arguments);
}

int main(int argc, char **argv) {
    long ms = argument(argc, argv, 1, 300);
    pid_t first = born(0);
    if (first == 0) {
        first_life(ms);
        truth_write("first");
        _exit(0);
    }
    waitpid(first, NULL, 0);
    pid_t second = born(first);
    if (second == 0) {
        second_life(ms);
        truth_write("second");
        _exit(0);
    }
    if (second != first) {
        perror("clone3");
        return 98;
    }
    waitpid(second, NULL, 0);
    return 0;
}
