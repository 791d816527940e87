// Threads that wait in system calls which a signal would end with EINTR, some for ever and some for a while.
// Other threads spin, or wait in short turns. Prints how often EINTR came although no signal with an effect
// was sent, and how often a wait ended before its time: interrupts MS. With a second argument there is one
// thread, which waits for an epoll, and gets signals all the while that it ignores by default.
#include "work.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/wait.h>

static atomic_long interrupted, calls, early;
static atomic_int over;

// Takes note of how a wait ended that should have lasted for `ns`.
static void note(const char *what, long result, int error, uint64_t began, uint64_t ns) {
    atomic_fetch_add(&calls, 1);
    if (result < 0 && error == EINTR) {
        if (atomic_fetch_add(&interrupted, 1) < 20) fprintf(stderr, "EINTR in %s\n", what);
    } else if (clock_ns(CLOCK_MONOTONIC) - began + 1000000 < ns) {
        if (atomic_fetch_add(&early, 1) < 20) fprintf(stderr, "%s ended early\n", what);
    }
}

#define WAIT(what, ms, call)                                                                                 \
    do {                                                                                                     \
        uint64_t began_ = clock_ns(CLOCK_MONOTONIC);                                                         \
        errno = 0;                                                                                           \
        long result_ = (call);                                                                               \
        note(what, result_, errno, began_, (uint64_t)(ms) * 1000000u);                                       \
    } while (0)

// Each kind of wait in turn, for `ms` each; a little work between them, so that it is sometimes seen to run.
static NOINLINE void wait_in_turns(int ms) {
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event;
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    while (!over) {
        WAIT("epoll_wait", ms, epoll_wait(epoll, &event, 1, ms));
        WAIT("epoll_wait", ms, epoll_wait(epoll, &event, 1, ms));
        WAIT("sigtimedwait", ms, sigtimedwait(&set, NULL, &time));
        WAIT("nanosleep", ms, nanosleep(&time, NULL));
        WAIT("poll", ms, poll(NULL, 0, ms));
        WAIT("select", ms, pselect(0, NULL, NULL, NULL, &time, NULL));
        WAIT("clock_nanosleep", ms, clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL));
        uint64_t used;
        SPIN(0, used);
    }
    close(epoll);
}

// Waits of no time at all, one after the other: an observer that sees it run finds it waiting a moment later.
static void *no_waits(void *unused) {
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event;
    struct timespec time = {0, 30000};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    while (!over) {
        WAIT("short sigtimedwait", 0, sigtimedwait(&set, NULL, &time));
        WAIT("short epoll_wait", 0, epoll_pwait2(epoll, &event, 1, &time, NULL));
    }
    close(epoll);
    return unused;
}

static void *short_waits(void *unused) { return wait_in_turns(1), unused; }
static void *long_waits(void *unused) { return wait_in_turns(70), unused; }

static void *epoll_for_ever(void *pipe) {
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN};
    epoll_ctl(epoll, EPOLL_CTL_ADD, *(int *)pipe, &event);
    WAIT("epoll_wait for ever", 0, epoll_wait(epoll, &event, 1, -1));
    return NULL;
}

static void *spin(void *unused) {
    uint64_t used;
    while (!over) SPIN(1, used);
    return unused;
}

// The parent gets signals from a child until it has waited for long enough.
static void wait_beside_ignored_signals(long ms) {
    pid_t parent = getpid(), child = fork();
    while (child == 0) {
        kill(parent, SIGCHLD);
        kill(parent, SIGWINCH);
        usleep(300);
    }
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event;
    for (uint64_t began = clock_ns(CLOCK_MONOTONIC); clock_ns(CLOCK_MONOTONIC) - began < (uint64_t)ms * 1000000u;)
        WAIT("epoll_wait", 40, epoll_wait(epoll, &event, 1, 40));
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

static int tell(void) {
    printf("%ld calls, %ld interrupted, %ld early\n", (long)calls, (long)interrupted, (long)early);
    truth_write("interrupts");
    return interrupted || early ? 1 : 0;
}

int main(int argc, char **argv) {
    long ms = argument(argc, argv, 1, 1000);
    if (argc > 2) {
        ready();
        wait_beside_ignored_signals(ms);
        return tell();
    }
    // Blocked everywhere, so that sigtimedwait can wait for it.
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    int ends[2];
    if (pipe(ends)) return 99;
    void *(*works[])(void *) = {no_waits, no_waits, short_waits, long_waits, epoll_for_ever, spin};
    unsigned count = sizeof works / sizeof *works;
    pthread_t threads[sizeof works / sizeof *works];
    for (unsigned i = 0; i < count; i++) pthread_create(&threads[i], NULL, works[i], &ends[0]);
    ready();
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
    over = 1;
    if (write(ends[1], "", 1) != 1) return 99;
    for (unsigned i = 0; i < count; i++) pthread_join(threads[i], NULL);
    return tell();
}
