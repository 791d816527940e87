// Ends its main thread and burns on another one, which is all that is left of the process, until it is killed.
#include "work.h"
#include <pthread.h>

NOINLINE void survivor_loop(void) {
    uint64_t used;
    for (;;) SPIN(1000, used);
}

static void *survivor(void *main_thread) {
    pthread_join(*(pthread_t *)main_thread, NULL);
    pthread_setname_np(pthread_self(), "survivor");
    ready();
    survivor_loop();
    return NULL;
}

int main(void) {
    static pthread_t main_thread, thread;
    main_thread = pthread_self();
    pthread_create(&thread, NULL, survivor, &main_thread);
    pthread_exit(NULL);
}
