// Threads that wait, each for another reason, in functions that are named after it: `reasons SECONDS FILE`.
// At the end, each says its name and how long it lived.
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone))

static double seconds;
static const char *path;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int pipe_ends[2], socket_ends[2], polled_ends[2];
static volatile uint64_t sink;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static void pause_ms(long ms) {
    struct timespec time = {0, ms * 1000000};
    nanosleep(&time, NULL);
}

static APART void sleeps(double end) {
    while (now() < end) pause_ms(20);
}

static APART void holds_lock(double end) {
    while (now() < end) {
        pthread_mutex_lock(&mutex);
        pause_ms(20);
        pthread_mutex_unlock(&mutex);
        pause_ms(1);
    }
}

static APART void wants_lock(double end) {
    while (now() < end) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
    }
}

static APART void reads_pipe(double end) {
    char byte;
    while (now() < end && read(pipe_ends[0], &byte, 1) == 1) sink++;
}

static APART void receives(double end) {
    char byte;
    while (now() < end && recv(socket_ends[0], &byte, 1, 0) == 1) sink++;
}

static APART void polls(double end) {
    struct pollfd both[2] = {{polled_ends[0], POLLIN, 0}, {socket_ends[1], POLLPRI, 0}};
    char byte;
    while (now() < end && poll(both, 2, -1) > 0) {
        if (read(polled_ends[0], &byte, 1) == 1) sink++;
    }
}

static APART void feeds(double end) {
    while (now() < end + 0.1) {
        pause_ms(20);
        if (write(pipe_ends[1], "x", 1) + write(socket_ends[1], "x", 1) + write(polled_ends[1], "x", 1) < 3) return;
    }
}

static APART void awaits_child(double end) {
    while (now() < end) {
        pid_t child = fork();
        if (child == 0) {
            pause_ms(20);
            _exit(0);
        }
        waitpid(child, NULL, 0);
    }
}

static APART void syncs(double end) {
    // Much at a time: a wait for a fast disk ends so soon that the thread would mostly be switched, which counts as both.
    static char block[8 << 20];
    int file = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0600);
    while (now() < end && pwrite(file, block, sizeof block, 0) > 0) fsync(file);
    close(file);
}

static APART void computes(double end) {
    while (now() < end) {
        for (int i = 0; i < 100000; i++) sink += i;
    }
}

struct work {
    const char *name;
    void (*run)(double);
};

static const struct work works[] = {
    {"sleeps", sleeps},     {"holds", holds_lock}, {"wants", wants_lock},   {"pipe", reads_pipe}, {"socket", receives},
    {"polls", polls},       {"feeds", feeds},      {"child", awaits_child}, {"disk", syncs},      {"computes", computes},
};

enum { WORKS = sizeof works / sizeof *works };
static double born[WORKS], ended[WORKS];

static void *run(void *which) {
    const struct work *work = which;
    prctl(PR_SET_NAME, work->name);
    work->run(now() + seconds);
    ended[work - works] = now();
    return NULL;
}

int main(int count, char **words) {
    seconds = count > 1 ? atof(words[1]) : 1;
    path = count > 2 ? words[2] : "/dev/null";
    if (pipe(pipe_ends) || pipe(polled_ends) || socketpair(AF_UNIX, SOCK_STREAM, 0, socket_ends)) return 1;
    pthread_t threads[WORKS];
    for (int i = 0; i < WORKS; i++) {
        born[i] = now();
        pthread_create(&threads[i], NULL, run, (void *)&works[i]);
    }
    for (int i = 0; i < WORKS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < WORKS; i++) printf("%s %.6f\n", works[i].name, ended[i] - born[i]);
}
