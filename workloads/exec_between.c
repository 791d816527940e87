// Preloaded into a profiler: when it first attaches to a process (perf_event_open, ptrace), the process begins an exec that its file system
// keeps from ending, as it may do after any check. Built as a library, for workload `withheld_exec`.
// WORKLOAD_EXEC_OF: the process. WORKLOAD_WITHHOLDS: the file that makes its file system withhold everything.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
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

static void attach_to(long pid) {
    static int is_done;
    const char *which = getenv("WORKLOAD_EXEC_OF");
    if (which && pid == atol(which) && !__sync_lock_test_and_set(&is_done, 1)) begin_exec(pid);
}

// Their C names are others, because the declared functions have no named arguments.
long intercepted(long, long, long, long, long, long, long) __asm__("syscall");

long intercepted(long number, long a, long b, long c, long d, long e, long f) {
    long (*call)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    if (number == SYS_perf_event_open) attach_to(b);
    return call(number, a, b, c, d, e, f);
}

long traced(int, pid_t, long, long) __asm__("ptrace");

long traced(int request, pid_t pid, long address, long data) {
    long (*call)(int, ...) = (long (*)(int, ...))dlsym(RTLD_NEXT, "ptrace");
    if (request == PTRACE_SEIZE) attach_to(pid);
    return call(request, pid, address, data);
}
