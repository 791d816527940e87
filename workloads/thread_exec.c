// Burns `ms` in a thread, which then makes the process become the program that the other arguments name, while the main
// thread waits. Arguments: ms, program, its arguments.
#include "work.h"
#include <pthread.h>

static char **words;
static long ms;

NOINLINE void before_exec(long ms) { BURN("before_exec", ms); }

static void *become(void *unused) {
    before_exec(ms);
    truth_write("thread_exec");
    execv(words[0], words);
    perror(words[0]);
    exit(127);
    return unused;
}

int main(int argc, char **argv) {
    ms = argument(argc, argv, 1, 100);
    if (argc < 3) return 2;
    words = argv + 2;
    pthread_t thread;
    pthread_create(&thread, NULL, become, NULL);
    pthread_join(thread, NULL);
    return 1;
}
