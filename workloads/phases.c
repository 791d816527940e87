// Does what files of a folder say, until one of them says to end: `phases FOLDER`. It works in `first_phase`, and in
// `second_phase` or `third_phase` as soon as files of these names are there, or naps where `nap` is. `wait` makes it wait 800 ms for a
// lock, once, and `memory` makes it use 300 MB more. Its truth is what the test has seen it use in each phase.
#include "work.h"
#include <pthread.h>

static char path[4096];
static size_t folder;

static int is_there(const char *name) {
    snprintf(path + folder, sizeof path - folder, "/%s", name);
    return access(path, F_OK) == 0;
}

NOINLINE void first_phase(void) {
    uint64_t used;
    SPIN(5, used);
}

NOINLINE void second_phase(void) {
    uint64_t used;
    SPIN(5, used);
}

NOINLINE void third_phase(void) {
    uint64_t used;
    SPIN(5, used);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *hold(void *held) {
    pthread_mutex_lock(&lock);
    *(volatile int *)held = 1;
    usleep(800000);
    pthread_mutex_unlock(&lock);
    return NULL;
}

NOINLINE void wait_for_lock(void) {
    volatile int held = 0;
    pthread_t thread;
    pthread_create(&thread, NULL, hold, (void *)&held);
    while (!held) usleep(100);
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    pthread_join(thread, NULL);
}

int main(int argc, char **argv) {
    if (argc < 2) return 2;
    folder = (size_t)snprintf(path, sizeof path, "%s", argv[1]);
    ready();
    int has_waited = 0, has_grown = 0;
    while (!is_there("end")) {
        if (!has_waited && is_there("wait")) {
            wait_for_lock();
            has_waited = 1;
        }
        if (!has_grown && is_there("memory")) {
            memset(malloc(300 << 20), 1, 300 << 20);
            has_grown = 1;
        }
        if (is_there("nap"))
            usleep(10000);
        else if (is_there("third_phase"))
            third_phase();
        else if (is_there("second_phase"))
            second_phase();
        else
            first_phase();
    }
    return 0;
}
