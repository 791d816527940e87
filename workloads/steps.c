// Many small steps of one kind, each of which enters the kernel: `steps KIND COUNT`. The kinds are queue (two threads
// with a queue of one place under a condition variable), blocks (the same, and the kernel clears 1 MB for each item), pipe
// (two threads that answer each other over pipes), threads (each is created and joined), processes (each calls exec), mappings (of a small file, read and unmapped) and reads (of
// 4 kB of a file). With `steps wait KIND COUNT`, it begins when its standard input ends.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static volatile unsigned long sum;
static long count;

static void work(void) {
    for (unsigned i = 0; i < 200; i++) sum += i * i;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER, emptied = PTHREAD_COND_INITIALIZER;
static int is_full;

// The memory that the kernel clears, for each thread.
static char blocks[2][1 << 20];
static int zeros = -1;

static void pass(int wanted, pthread_cond_t *await, pthread_cond_t *tell) {
    pthread_mutex_lock(&lock);
    while (is_full != wanted) pthread_cond_wait(await, &lock);
    is_full = !wanted;
    pthread_cond_signal(tell);
    pthread_mutex_unlock(&lock);
    if (zeros >= 0 && read(zeros, blocks[wanted], sizeof blocks[wanted]) < 0) exit(1);
    work();
}

static void *take(void *unused) {
    for (long i = 0; i < count; i++) pass(1, &filled, &emptied);
    return unused;
}

static void *put(void *unused) {
    for (long i = 0; i < count; i++) pass(0, &emptied, &filled);
    return unused;
}

static int there[2], back[2];

static void *answer(void *unused) {
    char byte;
    while (read(there[0], &byte, 1) == 1 && write(back[1], &byte, 1) == 1) {}
    return unused;
}

static void *ask(void *unused) {
    char byte = 0;
    for (long i = 0; i < count; i++)
        if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1) exit(1);
    close(there[1]);
    return unused;
}

static void both(void *(*one)(void *), void *(*other)(void *)) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, one, NULL)) exit(1);
    other(NULL);
    pthread_join(thread, NULL);
}

static void *nothing(void *unused) {
    work();
    return unused;
}

static void threads(void) {
    for (long i = 0; i < count; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, nothing, NULL)) exit(1);
        pthread_join(thread, NULL);
    }
}

static void processes(void) {
    char *words[] = {"true", NULL};
    for (long i = 0; i < count; i++) {
        pid_t pid;
        if (posix_spawn(&pid, "/bin/true", NULL, NULL, words, environ)) exit(1);
        waitpid(pid, NULL, 0);
    }
}

static void mappings(int file) {
    for (long i = 0; i < count; i++) {
        char *start = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, file, 0);
        if (start == MAP_FAILED) exit(1);
        sum += (unsigned long)start[10];
        munmap(start, 4096);
    }
}

static void reads(int file) {
    char buffer[4096];
    for (long i = 0; i < count; i++)
        if (pread(file, buffer, sizeof buffer, 0) < 0) exit(1);
}

int main(int argc, char **argv) {
    int at = 1;
    if (argc > 1 && strcmp(argv[1], "wait") == 0) {
        char byte;
        while (read(0, &byte, 1) > 0) {}
        at = 2;
    }
    if (argc != at + 2) return 2;
    const char *kind = argv[at];
    int file = open("/etc/passwd", O_RDONLY);
    count = atol(argv[at + 1]);
    if (file < 0 || pipe(there) || pipe(back)) return 1;
    if (strcmp(kind, "blocks") == 0) zeros = open("/dev/zero", O_RDONLY);
    if (strcmp(kind, "queue") == 0 || strcmp(kind, "blocks") == 0) both(take, put);
    else if (strcmp(kind, "pipe") == 0) both(answer, ask);
    else if (strcmp(kind, "threads") == 0) threads();
    else if (strcmp(kind, "processes") == 0) processes();
    else if (strcmp(kind, "mappings") == 0) mappings(file);
    else if (strcmp(kind, "reads") == 0) reads(file);
    else return 2;
    return 0;
}
