// Many threads that all live at once: each works for so long, and none ends before all have worked. Arguments: ms of
// CPU time of each, how many, a file. With a file, the second half of the threads is born one by one, so that
// a recorder can attach to the process meanwhile. Each thread does one half of its work at once, and the
// other half when that file is there. Its truth is the time that the threads used themselves.
#include "work.h"
#include <pthread.h>

static pthread_barrier_t all_may_go_on, all_have_worked;
static const char *go_on;
static uint64_t used_by_all;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

NOINLINE uint64_t pool_work(long ms) {
    uint64_t used;
    SPIN(ms, used);
    return used;
}

static void *work(void *argument) {
    long ms = (long)(intptr_t)argument;
    uint64_t used = pool_work(go_on ? ms / 2 : ms);
    if (go_on) {
        pthread_barrier_wait(&all_may_go_on);
        used += pool_work(ms - ms / 2);
    }
    pthread_mutex_lock(&lock);
    used_by_all += used;
    pthread_mutex_unlock(&lock);
    pthread_barrier_wait(&all_have_worked);
    return NULL;
}

int main(int argc, char **argv) {
    long ms = argument(argc, argv, 1, 5), count = argument(argc, argv, 2, 500);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    if (argc > 3) go_on = argv[3];
    pthread_barrier_init(&all_may_go_on, NULL, (unsigned)count + 1);
    pthread_barrier_init(&all_have_worked, NULL, (unsigned)count + 1);
    for (long i = 0; i < count; i++) {
        pthread_t thread;
        if (pthread_create(&thread, &small, work, (void *)(intptr_t)ms) != 0) return 98;
        // An attaching recorder finds some threads, and others are born meanwhile.
        if (i == count / 2) ready();
        if (go_on && i >= count / 2) usleep(1000);
    }
    if (go_on) {
        while (access(go_on, F_OK)) usleep(1000);
        pthread_barrier_wait(&all_may_go_on);
    }
    pthread_barrier_wait(&all_have_worked);
    truth_part("pool_work", used_by_all);
    truth_write("pool");
    return 0;
}
