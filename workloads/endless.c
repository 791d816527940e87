// Burns on two named threads until it is killed, to be attached to; or until the file is there that its second argument names.
// Its truth is that main_loop and helper_loop have half each, whenever one looks, if two CPUs are free.
#include "work.h"
#include <pthread.h>

NOINLINE void main_loop(const char *over) {
    uint64_t used;
    while (!over || access(over, F_OK)) SPIN(50, used);
}

NOINLINE void helper_loop(void) {
    uint64_t used;
    for (;;) SPIN(1000, used);
}

static void *helper(void *unused) {
    pthread_setname_np(pthread_self(), "helper");
    helper_loop();
    return unused;
}

int main(int argc, char **argv) {
    pthread_t thread;
    if (argument(argc, argv, 1, 2) > 1) pthread_create(&thread, NULL, helper, NULL);
    ready();
    main_loop(argc > 2 ? argv[2] : NULL);
    return 0;
}
