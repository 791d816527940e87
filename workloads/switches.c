// Two threads that take turns on one CPU, each with a context switch: `switches COUNT FILE`. The file then has
// how many seconds that took.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static int there[2], back[2];
static long turns;

static void *answer(void *unused) {
    char byte;
    for (long turn = 0; turn < turns; turn++) {
        if (read(there[0], &byte, 1) != 1 || write(back[1], &byte, 1) != 1) exit(1);
    }
    return unused;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

int main(int count, char **words) {
    turns = (count > 1 ? atol(words[1]) : 200000) / 2;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(0, &one);
    if (sched_setaffinity(0, sizeof one, &one) || pipe(there) || pipe(back)) return 1;
    double start = now();
    pthread_t thread;
    pthread_create(&thread, NULL, answer, NULL);
    char byte = 'x';
    for (long turn = 0; turn < turns; turn++) {
        if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1) return 1;
    }
    pthread_join(thread, NULL);
    FILE *file = count > 2 ? fopen(words[2], "w") : NULL;
    if (file) fprintf(file, "%.6f\n", now() - start);
}
