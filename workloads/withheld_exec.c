// Burns until SIGUSR1, and then replaces itself by another program, which closes a file. If that is withheld, the kernel
// keeps who looks at the process from its `stat`, `exe`, `maps` and `ns` in /proc until the file system answers.
// Arguments: the file.
#include "work.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

static volatile sig_atomic_t is_told;

static void tell(int signal) { is_told = signal; }

NOINLINE void main_loop(void) {
    uint64_t used;
    while (!is_told) SPIN(20, used);
}

int main(int argc, char **argv) {
    if (argc < 2 || open(argv[1], O_RDONLY | O_CLOEXEC) < 0) return 97;
    // Of a name of 15 bytes, the kernel may have cut off the rest.
    prctl(PR_SET_NAME, "withheld_exec_x");
    signal(SIGUSR1, tell);
    ready();
    main_loop();
    execl("/bin/true", "true", NULL);
    return 98;
}
