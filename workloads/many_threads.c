// Many threads that share the work, each in turns of a millisecond and then waiting for as long. Arguments: ms of all
// threads together, threads.
#include "work.h"
#include <pthread.h>

static long each_us;

static NOINLINE void burn_and_wait(void) {
    uint64_t used = 0, all = 0;
    while (all < (uint64_t)each_us * 1000u) {
        SPIN(1, used);
        all += used;
        usleep(1000);
    }
}

static void *work(void *unused) { return burn_and_wait(), unused; }

int main(int argc, char **argv) {
    long ms = argument(argc, argv, 1, 1000), count = argument(argc, argv, 2, 100);
    if (count < 1 || count > 1000) return 2;
    each_us = ms * 1000 / count;
    pthread_t threads[1000];
    ready();
    for (long i = 0; i < count; i++) pthread_create(&threads[i], NULL, work, NULL);
    for (long i = 0; i < count; i++) pthread_join(threads[i], NULL);
    truth_write("many_threads");
    return 0;
}
