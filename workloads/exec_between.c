// Preloaded into a profiler: at its first perf_event_open for a process, the process begins an exec that its file system
// keeps from ending, as it may do after any check. Built as a library, for workload `withheld_exec`.
// WORKLOAD_EXEC_OF: the process. WORKLOAD_WITHHOLDS: the file that makes its file system withhold everything.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int sleeps(long pid) {
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%ld/status", pid);
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = file < 0 ? 0 : read(file, text, sizeof text - 1);
    if (file >= 0) close(file);
    text[len > 0 ? len : 0] = 0;
    return file < 0 || strstr(text, "State:\tS") != NULL;
}

static void begin_exec(long pid) {
    close(open(getenv("WORKLOAD_WITHHOLDS"), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    kill(pid, SIGUSR1);
    // It works until then, and so it sleeps for the file system alone.
    while (!sleeps(pid)) usleep(1000);
}

// Its C name is another, because the declared function has no named arguments.
long intercepted(long, long, long, long, long, long, long) __asm__("syscall");

long intercepted(long number, long a, long b, long c, long d, long e, long f) {
    static int is_done;
    long (*call)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    const char *pid = getenv("WORKLOAD_EXEC_OF");
    if (number == SYS_perf_event_open && pid && b == atol(pid) && !__sync_lock_test_and_set(&is_done, 1)) begin_exec(b);
    return call(number, a, b, c, d, e, f);
}
