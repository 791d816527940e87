// A thread whose stack has pages that were not used so far: a function skips them, with an array in its
// frame. Arguments: ms; 0 to do so from the start.
#include "work.h"
#include <pthread.h>

static long ms, before;

NOINLINE void below(void) { BURN("below", ms); }

NOINLINE int skips(void) {
    volatile char room[20 << 10];
    room[0] = 1;
    below();
    return room[0];
}

static void *work(void *unused) {
    (void)unused;
    // The recorder gets to know where the stack begins.
    if (before) BURN("work", before);
    skips();
    return NULL;
}

int main(int argc, char **argv) {
    ms = argument(argc, argv, 1, 500);
    before = argument(argc, argv, 2, ms / 2);
    pthread_t thread;
    ready();
    pthread_create(&thread, NULL, work, NULL);
    pthread_join(thread, NULL);
    truth_write("skipped_page");
    return 0;
}
