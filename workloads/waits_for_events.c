// Waits for events that another thread causes, by `epoll_wait`, and says how many times it has waited and how many of the waits were
// interrupted. Argument: for how many milliseconds.
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

static int events;
static volatile int has_ended;
static volatile uint64_t sink;

static void works(int turns) {
    for (int turn = 0; turn < turns; turn++) sink += turn;
}

static void *causes(void *nothing) {
    uint64_t one = 1;
    struct timespec pause = {0, 300000};
    while (!has_ended) {
        works(2000);
        if (write(events, &one, sizeof one) != sizeof one) abort();
        nanosleep(&pause, NULL);
    }
    return nothing;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

int main(int count, char **words) {
    double end = now() + (count > 1 ? atof(words[1]) : 1000) / 1e3;
    int waiting = epoll_create1(0);
    events = eventfd(0, EFD_NONBLOCK);
    struct epoll_event wanted = {.events = EPOLLIN}, found;
    if (waiting < 0 || events < 0 || epoll_ctl(waiting, EPOLL_CTL_ADD, events, &wanted)) return 1;
    pthread_t other;
    if (pthread_create(&other, NULL, causes, NULL)) return 1;
    unsigned long waits = 0, interrupted = 0;
    uint64_t taken;
    for (; now() < end; waits++) {
        if (epoll_wait(waiting, &found, 1, 1000) == 1) {
            if (read(events, &taken, sizeof taken) != sizeof taken) return 1;
            works(3000);
        } else if (errno == EINTR) {
            interrupted++;
        }
    }
    has_ended = 1;
    pthread_join(other, NULL);
    printf("%lu %lu\n", waits, interrupted);
    return 0;
}
