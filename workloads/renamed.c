// Takes another name while it runs, after a thread of it has done so. With a second argument, that file (the program's own) is deleted
// first. Each name is there for as many ms as the first argument says, or half of that for the thread's.
#include "work.h"
#include <pthread.h>
#include <sys/prctl.h>

static long ms;
static uint64_t before_ns, after_ns;

NOINLINE void work_under_new_name(void) { BURN("work_under_new_name", ms); }

NOINLINE void thread_before_rename(void) { SPIN(ms / 2, before_ns); }

NOINLINE void thread_after_rename(void) { SPIN(ms / 2, after_ns); }

static void *work(void *unused) {
    thread_before_rename();
    pthread_setname_np(pthread_self(), "new thread");
    thread_after_rename();
    return unused;
}

int main(int argc, char **argv) {
    pthread_t thread;
    ms = argument(argc, argv, 1, 300);
    if (argc > 2 && unlink(argv[2]) != 0) {
        perror(argv[2]);
        return 98;
    }
    ready();
    pthread_create(&thread, NULL, work, NULL);
    pthread_join(thread, NULL);
    truth_part("thread_before_rename", before_ns);
    truth_part("thread_after_rename", after_ns);
    prctl(PR_SET_NAME, "new name");
    work_under_new_name();
    truth_write("renamed");
    return 0;
}
