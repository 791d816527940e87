// Many short processes, or one that becomes another program again and again. Arguments: the way (fork, vfork, exec), how
// many, and with vfork how often each of them works (once). The part `all` is its CPU time with that of all
// its children.
#include "work.h"
#include <sys/wait.h>

NOINLINE void storm_work(void) {
    for (unsigned i = 0; i < 1000000; i++) __asm__ volatile("" : : "r"(i));
}

static void tell(void) {
    struct rusage own, children;
    getrusage(RUSAGE_SELF, &own);
    getrusage(RUSAGE_CHILDREN, &children);
    truth_part("all", timeval_ns(own.ru_utime) + timeval_ns(own.ru_stime) + timeval_ns(children.ru_utime) +
                          timeval_ns(children.ru_stime));
    truth_write("storm");
}

// In a function of its own, because registers may change when vfork returns.
NOINLINE pid_t start(const char *program, int by_vfork, const char *passes) {
    pid_t child = by_vfork ? vfork() : fork();
    if (child == 0) {
        if (by_vfork) execl(program, "storm", "leaf", passes, (char *)NULL);
        else storm_work();
        _exit(0);
    }
    return child;
}

int main(int argc, char **argv) {
    const char *way = argc > 1 ? argv[1] : "fork";
    long count = argument(argc, argv, 2, 1000);
    char program[4096];
    ssize_t len = readlink("/proc/self/exe", program, sizeof program - 1);
    if (len < 0) return 98;
    program[len] = 0;
    if (strcmp(way, "leaf") == 0) {
        for (long i = 0; i < count; i++) storm_work();
        return 0;
    }
    if (strcmp(way, "exec") == 0) {
        storm_work();
        if (count == 0) {
            tell();
            return 0;
        }
        char left[32];
        snprintf(left, sizeof left, "%ld", count - 1);
        execl(program, "storm", "exec", left, (char *)NULL);
        return 97;
    }
    ready();
    for (long i = 0; i < count; i++) {
        pid_t child = start(program, strcmp(way, "vfork") == 0, argc > 3 ? argv[3] : "1");
        if (child < 0) return 96;
        // A recorded process ends as it would have ended alone.
        int status;
        if (waitpid(child, &status, 0) != child || status != 0) return 95;
    }
    tell();
    return 0;
}
