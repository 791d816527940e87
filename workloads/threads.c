// Named threads with unequal shares: worker-half 50 %, worker-third 30 %, the main thread 20 %.
#include "work.h"
#include <pthread.h>

struct job {
    const char *name;
    long ms;
    uint64_t used;
};

NOINLINE void thread_burn(struct job *job) { SPIN(job->ms, job->used); }

static void *worker(void *argument) {
    struct job *job = argument;
    pthread_setname_np(pthread_self(), job->name);
    thread_burn(job);
    return NULL;
}

int main(int argc, char **argv) {
    long ms = argument(argc, argv, 1, 1000);
    struct job half = {"worker-half", ms / 2, 0}, third = {"worker-third", ms * 3 / 10, 0}, own = {"main", ms / 5, 0};
    pthread_t first, second;
    ready();
    pthread_create(&first, NULL, worker, &half);
    pthread_create(&second, NULL, worker, &third);
    thread_burn(&own);
    pthread_join(first, NULL);
    pthread_join(second, NULL);
    truth_part(half.name, half.used);
    truth_part(third.name, third.used);
    truth_part(own.name, own.used);
    truth_write("threads");
    return 0;
}
