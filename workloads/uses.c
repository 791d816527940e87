// Uses the resources that counters measure. Arguments: a folder for a file, and for how many milliseconds it
// works while it holds all other resources. It writes 50 MB to a file (deleted at once), reads 20 MB of them,
// takes 100 MB of memory, opens 40 files, and makes 5 threads that wait. Then it works alone. A child does
// nothing but hold 30 MB for as long.
#include "work.h"
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#define MB 1048576
#define WRITTEN 50
#define READ 20
#define MEMORY 100
#define FILES 40
#define THREADS 5

static char block[MB];

static void check(int holds, const char *what) {
    if (holds) return;
    perror(what);
    exit(98);
}

static void write_and_read(const char *folder) {
    char path[4096];
    snprintf(path, sizeof path, "%s/uses-XXXXXX", folder);
    int fd = mkstemp(path);
    check(fd >= 0 && unlink(path) == 0, "mkstemp");
    for (int i = 0; i < WRITTEN; i++) check(write(fd, block, MB) == MB, "write");
    check(lseek(fd, 0, SEEK_SET) == 0, "lseek");
    for (int i = 0; i < READ; i++) check(read(fd, block, MB) == MB, "read");
    close(fd);
}

// Writes to each page: a write that is never read would be optimised away.
static void take_memory(size_t bytes) {
    volatile char *memory = malloc(bytes);
    check(memory != NULL, "malloc");
    for (size_t at = 0; at < bytes; at += 4096) memory[at] = 1;
}

static void *wait_for_the_end(void *unused) {
    for (;;) pause();
    return unused;
}

NOINLINE void work_with_all(long ms) { BURN("work_with_all", ms); }

int main(int argc, char **argv) {
    long ms = argument(argc, argv, 2, 1000);
    pid_t child = fork();
    check(child >= 0, "fork");
    take_memory((child == 0 ? 30 : MEMORY) * (size_t)MB);
    if (child == 0) {
        BURN("child", 50);
        for (;;) pause();
    }
    write_and_read(argc > 1 ? argv[1] : ".");
    for (int i = 0; i < FILES; i++) check(open("/dev/null", O_RDONLY) >= 0, "open");
    pthread_t thread;
    for (int i = 0; i < THREADS; i++) check(pthread_create(&thread, NULL, wait_for_the_end, NULL) == 0, "pthread_create");
    work_with_all(ms);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    truth_write("uses");
    return 0;
}
