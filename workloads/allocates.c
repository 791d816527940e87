// Allocates memory whose amounts are known for each function, and does what disturbs a recorder of allocations. Argument: what
// to do: "sums" with a factor, "disturbs", "pairs" with their number, or
// "windows" with seconds.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEPT 2000
static void *kept[64 * KEPT];
static int kept_count;
static volatile char sink;

static void *touched(void *block) {
    if (!block) exit(9);
    *(volatile char *)block = 1;
    return block;
}

// 2,000 blocks of 1,000 bytes, which stay.
__attribute__((noinline)) void keeps(void) {
    for (int i = 0; i < KEPT; i++) kept[kept_count++] = touched(malloc(1000));
}

// 10,000 blocks of 300 bytes, each freed at once.
__attribute__((noinline)) void temps(void) {
    for (int i = 0; i < 10000; i++) free(touched(malloc(300)));
}

// 1,000 blocks of 8,000 bytes, which are all there at the peak.
__attribute__((noinline)) void peaks(void) {
    static void *all[1000];
    for (int i = 0; i < 1000; i++) all[i] = touched(calloc(8, 1000));
    for (int i = 0; i < 1000; i++) free(all[i]);
}

// A block that grows from 1,000 to 64,000 bytes, in 7 steps: 127,000 bytes in all.
__attribute__((noinline)) void grows(void) {
    char *block = NULL;
    for (size_t size = 1000; size <= 64000; size *= 2) block = touched(realloc(block, size));
    free(block);
}

// 500 blocks of 2,000 bytes, allocated by a thread, and freed by the first one.
__attribute__((noinline)) static void *in_thread(void *blocks) {
    for (int i = 0; i < 500; i++) ((void **)blocks)[i] = touched(malloc(2000));
    return NULL;
}

static void frees_for_thread(void) {
    static void *blocks[500];
    pthread_t thread;
    if (pthread_create(&thread, NULL, in_thread, blocks)) exit(2);
    pthread_join(thread, NULL);
    for (int i = 0; i < 500; i++) free(blocks[i]);
}

// 100 blocks of each kind of 4,096 bytes: 400 in all.
__attribute__((noinline)) void aligns(void) {
    for (int i = 0; i < 100; i++) {
        void *block = NULL;
        if (posix_memalign(&block, 64, 4096) || (uintptr_t)block % 64) exit(3);
        free(touched(block));
        free(touched(aligned_alloc(4096, 4096)));
        free(touched(memalign(128, 4096)));
        free(touched(reallocarray(NULL, 64, 64)));
    }
}

static void on_alarm(int signal) {
    (void)signal;
    // Not permitted by the standard, and done by many.
    free(malloc(100));
}

static pthread_key_t key;

static void at_thread_end(void *block) {
    free(block);
    free(touched(malloc(50)));
}

static void *short_thread(void *argument) {
    (void)argument;
    pthread_setspecific(key, malloc(10));
    return NULL;
}

static void at_exit(void) {
    free(touched(malloc(777)));
}

__attribute__((noinline)) void in_child(void) {
    for (int i = 0; i < 100; i++) touched(malloc(3000));
}

static void runs_children(char *self) {
    pid_t child = fork();
    if (!child) {
        in_child();
        _exit(0);
    }
    waitpid(child, NULL, 0);
    child = vfork();
    if (!child) {
        execl(self, self, "child", NULL);
        _exit(1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (status) exit(5);
}

static void disturbs(char *self) {
    atexit(at_exit);
    runs_children(self);
    pthread_key_create(&key, at_thread_end);
    for (int i = 0; i < 200; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, short_thread, NULL)) exit(2);
        pthread_join(thread, NULL);
    }
    for (int i = 0; i < 20; i++) {
        void *library = dlopen("libm.so.6", RTLD_NOW);
        if (library) dlclose(library);
    }
    errno = 0;
    if (malloc(PTRDIFF_MAX) || errno != ENOMEM) exit(6);
    void *block = touched(malloc(100));
    if (realloc(block, PTRDIFF_MAX)) exit(7);
    free(block);
    if (malloc_usable_size(block = malloc(100)) < 100) exit(8);
    free(block);
    for (int i = 3; i < 1024; i++) close(i);
    // The handler runs where the allocator is not being used.
    signal(SIGALRM, on_alarm);
    struct itimerval timer = {{0, 500}, {0, 500}};
    sigset_t mask, old;
    sigemptyset(&mask);
    sigaddset(&mask, SIGALRM);
    setitimer(ITIMER_REAL, &timer, NULL);
    for (int i = 0; i < 2000; i++) {
        sigprocmask(SIG_BLOCK, &mask, &old);
        free(touched(malloc(100)));
        sigprocmask(SIG_SETMASK, &old, NULL);
        for (int k = 0; k < 1000; k++) sink += k;
    }
    timer = (struct itimerval){{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &timer, NULL);
}

// Pairs of an allocation and a free, with 64 blocks at a time.
__attribute__((noinline)) void pairs(long number) {
    void *blocks[64] = {0};
    for (long i = 0; i < number; i++) {
        free(blocks[i % 64]);
        blocks[i % 64] = touched(malloc((size_t)(16 + i * 7 % 500)));
    }
}

// 500 blocks of 4,000 bytes, which stay for some seconds.
static void *held[500];
__attribute__((noinline)) void holds(void) {
    for (int i = 0; i < 500; i++) held[i] = touched(malloc(4000));
}

// Blocks that stay, blocks that are freed later, and blocks that are freed at once, each with a pause behind it.
static void windows(unsigned seconds) {
    keeps();
    holds();
    sleep(seconds);
    for (int i = 0; i < 500; i++) free(held[i]);
    sleep(seconds);
    temps();
    sleep(seconds);
}

int main(int count, char **arguments) {
    const char *what = count > 1 ? arguments[1] : "sums";
    if (!strcmp(what, "child")) {
        in_child();
        return 0;
    }
    if (!strcmp(what, "pairs")) {
        pairs(count > 2 ? atol(arguments[2]) : 1000000);
        return 0;
    }
    if (!strcmp(what, "windows")) {
        windows(count > 2 ? (unsigned)atoi(arguments[2]) : 3);
        return 0;
    }
    if (!strcmp(what, "disturbs")) {
        disturbs(arguments[0]);
        keeps();
        puts("undisturbed");
        return 0;
    }
    int factor = count > 2 ? atoi(arguments[2]) : 1;
    for (int i = 0; i < factor; i++) {
        if (kept_count < 64 * KEPT) keeps();
        temps();
        grows();
        frees_for_thread();
        aligns();
    }
    peaks();
    puts("done");
    return 0;
}
