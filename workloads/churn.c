// One busy thread, called worker, for as long as four short threads at a time come and go: some thousand ends of
// threads a second, on all CPUs.
#include "work.h"
#include <pthread.h>

static volatile int done;
static uint64_t worker_used;

NOINLINE void busy(void) {
    uint64_t began = thread_cpu_ns();
    while (!done)
        for (unsigned i = 0; i < 300000; i++) __asm__ volatile("" : : "r"(i));
    worker_used = thread_cpu_ns() - began;
}

static void *worker(void *argument) {
    pthread_setname_np(pthread_self(), "worker");
    busy();
    return argument;
}

static void *short_life(void *argument) {
    for (unsigned i = 0; i < 300000; i++) __asm__ volatile("" : : "r"(i));
    return argument;
}

int main(int argc, char **argv) {
    long rounds = argument(argc, argv, 1, 500);
    pthread_t busy_thread, threads[4];
    ready();
    pthread_create(&busy_thread, NULL, worker, NULL);
    for (long round = 0; round < rounds; round++) {
        for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, short_life, NULL);
        for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    }
    done = 1;
    pthread_join(busy_thread, NULL);
    truth_part("busy", worker_used);
    truth_write("churn");
    return 0;
}
