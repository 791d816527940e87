// Threads that work while others of their process stop all the time for other reasons. One handles signals,
// one makes processes, one makes threads that end at once: stops MS WORKERS. A tracer has to let all of these
// go on, and must not forget a worker meanwhile.
#include "work.h"

#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static volatile int over;
static volatile sig_atomic_t signals;
static long worker_ms;

static void handler(int number) {
    (void)number;
    signals++;
}

static void *gets_signals(void *unused) {
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1};
    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    timer_t timer;
    if (timer_create(CLOCK_MONOTONIC, &event, &timer)) exit(97);
    struct itimerspec times = {{0, 200000}, {0, 200000}};
    timer_settime(timer, 0, &times, NULL);
    while (!over) pause();
    timer_delete(timer);
    return unused;
}

static void *makes_processes(void *unused) {
    while (!over) {
        pid_t child = fork();
        if (child == 0) _exit(0);
        waitpid(child, NULL, 0);
    }
    return unused;
}

static void *ends_at_once(void *unused) { return unused; }

static void *makes_threads(void *unused) {
    while (!over) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, ends_at_once, NULL)) exit(96);
        pthread_join(thread, NULL);
    }
    return unused;
}

static NOINLINE void work_beside_stops(void) {
    uint64_t used;
    SPIN(worker_ms, used);
}

static void *worker(void *unused) {
    pthread_setname_np(pthread_self(), "worker");
    work_beside_stops();
    return unused;
}

int main(int argc, char **argv) {
    worker_ms = argument(argc, argv, 1, 500);
    long count = argument(argc, argv, 2, 3);
    if (count < 1 || count > 100) return 2;
    // Before the thread is there that gets them: the last one may come before that one has begun.
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &action, NULL);
    void *(*others[])(void *) = {gets_signals, makes_processes, makes_threads};
    pthread_t threads[3], workers[100];
    for (unsigned i = 0; i < 3; i++) pthread_create(&threads[i], NULL, others[i], NULL);
    ready();
    for (long i = 0; i < count; i++) pthread_create(&workers[i], NULL, worker, NULL);
    for (long i = 0; i < count; i++) pthread_join(workers[i], NULL);
    over = 1;
    pthread_kill(threads[0], SIGUSR1);
    for (unsigned i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    truth_part("work_beside_stops", (uint64_t)(worker_ms * count) * 1000000u);
    truth_write("stops");
    return 0;
}
