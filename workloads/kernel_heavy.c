// Spends its time in the kernel. Arguments: ms, `zero` (reads /dev/zero a megabyte at a time) or `getpid` (the
// cheapest system call, in a loop).
#include "work.h"
#include <sys/syscall.h>

static char room[1 << 20];

NOINLINE void read_zeroes(int fd) {
    if (read(fd, room, sizeof room) != sizeof room) _exit(97);
}

NOINLINE void ask_pid(void) {
    for (int i = 0; i < 1000; i++) syscall(SYS_getpid);
}

int main(int argc, char **argv) {
    uint64_t goal = (uint64_t)argument(argc, argv, 1, 500) * 1000000u;
    int zero = argc > 2 && strcmp(argv[2], "zero") == 0;
    int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    ready();
    // Asking the clock takes as long as some system calls, and is not part of the tested time.
    while (thread_cpu_ns() < goal) {
        for (int i = 0; i < 32; i++) {
            if (zero)
                read_zeroes(fd);
            else
                ask_pid();
        }
    }
    truth_write("kernel_heavy");
    return 0;
}
