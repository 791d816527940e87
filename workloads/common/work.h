// Work measured in CPU time, and the truth about it.
#ifndef WORK_H
#define WORK_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

// Neither inlined nor cloned under another name.
#define NOINLINE __attribute__((noinline, noipa))

struct part {
    const char *name;
    uint64_t ns;
};
static struct part parts[16];
static unsigned part_count;

static inline uint64_t clock_ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline uint64_t thread_cpu_ns(void) { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }

// Adds to the truth about a part. Only one thread may write a given program's parts.
static inline void truth_part(const char *name, uint64_t ns) {
    for (unsigned i = 0; i < part_count; i++)
        if (strcmp(parts[i].name, name) == 0) {
            parts[i].ns += ns;
            return;
        }
    if (part_count < sizeof parts / sizeof *parts) {
        parts[part_count].name = name;
        parts[part_count].ns = ns;
        part_count++;
    }
}

// Spins in the calling function itself (hence a macro) until `ms` of this thread's CPU time are used, and
// leaves the actual time in `used`. The clock is a system call, so it is asked only every 100 microseconds or
// so.
#define SPIN(ms, used)                                                                                       \
    do {                                                                                                     \
        uint64_t began_ = thread_cpu_ns(), goal_ = (uint64_t)(ms) * 1000000u;                                \
        do {                                                                                                 \
            for (unsigned i_ = 0; i_ < 300000; i_++) __asm__ volatile("" : : "r"(i_));                       \
            (used) = thread_cpu_ns() - began_;                                                               \
        } while ((used) < goal_);                                                                            \
    } while (0)

// As SPIN, and accounts the time to a part.
#define BURN(name, ms)                                                                                       \
    do {                                                                                                     \
        uint64_t used_;                                                                                      \
        SPIN(ms, used_);                                                                                     \
        truth_part(name, used_);                                                                             \
    } while (0)

static inline uint64_t timeval_ns(struct timeval t) {
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_usec * 1000u;
}

// How often this process was switched before it was this program.
static long blocked_before, preempted_before;

__attribute__((constructor)) static void note_switches(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    blocked_before = usage.ru_nvcsw;
    preempted_before = usage.ru_nivcsw;
}

// Appends this process's line of truth, where it was asked for.
static inline void truth_write(const char *program) {
    const char *path = getenv("WORKLOAD_TRUTH");
    if (!path) return;
    char line[2048];
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    int n = snprintf(line, sizeof line,
                     "{\"program\":\"%s\",\"pid\":%d,\"cpu_ns\":%llu,\"user_ns\":%llu,\"system_ns\":%llu,\"blocked\":%ld,"
                     "\"preempted\":%ld,\"parts\":{",
                     program, (int)getpid(), (unsigned long long)clock_ns(CLOCK_PROCESS_CPUTIME_ID),
                     (unsigned long long)timeval_ns(usage.ru_utime), (unsigned long long)timeval_ns(usage.ru_stime),
                     usage.ru_nvcsw - blocked_before, usage.ru_nivcsw - preempted_before);
    for (unsigned i = 0; i < part_count; i++)
        n += snprintf(line + n, sizeof line - (size_t)n, "%s\"%s\":%llu", i ? "," : "", parts[i].name,
                      (unsigned long long)parts[i].ns);
    n += snprintf(line + n, sizeof line - (size_t)n, "}}\n");
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0 || write(fd, line, (size_t)n) != n) {
        perror(path);
        _exit(99);
    }
    close(fd);
}

// Reports that the work begins, if a test waits for it.
static inline void ready(void) {
    const char *path = getenv("WORKLOAD_READY");
    if (!path) return;
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) {
        perror(path);
        _exit(99);
    }
    close(fd);
}

// The number at `index` of the arguments, or the default.
static inline long argument(int argc, char **argv, int index, long usual) {
    return argc > index ? strtol(argv[index], NULL, 10) : usual;
}

#endif
