// Threads that wait for each kind of thing of pthreads, in functions that are named after it: `futexes SECONDS`.
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone))

static pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER, robust, inheriting;
static pthread_rwlock_t readers = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t condition_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_barrier_t barrier;
static sem_t semaphore, held;
static volatile int is_over;
static double seconds;

static void pause_for(double time) {
    struct timespec left = {(time_t)time, (long)((time - (double)(time_t)time) * 1e9)};
    while (nanosleep(&left, &left) && errno == EINTR) {}
}

static APART void wants_plain(void) { pthread_mutex_lock(&plain); pthread_mutex_unlock(&plain); }
static APART void wants_robust(void) { pthread_mutex_lock(&robust); pthread_mutex_unlock(&robust); }
static APART void wants_inheriting(void) { pthread_mutex_lock(&inheriting); pthread_mutex_unlock(&inheriting); }
static APART void wants_to_read(void) { pthread_rwlock_rdlock(&readers); pthread_rwlock_unlock(&readers); }
static APART void wants_to_write(void) { pthread_rwlock_wrlock(&readers); pthread_rwlock_unlock(&readers); }

static APART void awaits_condition(void) {
    pthread_mutex_lock(&condition_mutex);
    while (!is_over) pthread_cond_wait(&condition, &condition_mutex);
    pthread_mutex_unlock(&condition_mutex);
}

static APART void awaits_semaphore(void) { while (sem_wait(&semaphore)) {} }
static APART void awaits_others(void) { pthread_barrier_wait(&barrier); }
static APART void initializes(void) { pause_for(seconds); }
static APART void awaits_first(void) { pthread_once(&once, initializes); }

static void *sleeps(void *unused) {
    prctl(PR_SET_NAME, "sleeps");
    pause_for(seconds);
    return unused;
}

static APART void awaits_end(void) {
    pthread_t other;
    pthread_create(&other, NULL, sleeps, NULL);
    pthread_join(other, NULL);
}

static void *holds(void *unused) {
    prctl(PR_SET_NAME, "holds");
    pthread_mutex_lock(&plain);
    pthread_mutex_lock(&robust);
    pthread_mutex_lock(&inheriting);
    pthread_rwlock_wrlock(&readers);
    sem_post(&held);
    pause_for(seconds);
    pthread_rwlock_unlock(&readers);
    pthread_mutex_unlock(&inheriting);
    pthread_mutex_unlock(&robust);
    pthread_mutex_unlock(&plain);
    return unused;
}

struct task {
    const char *name;
    void (*run)(void);
};

static void *run(void *argument) {
    struct task *task = argument;
    prctl(PR_SET_NAME, task->name);
    task->run();
    return NULL;
}

static struct task tasks[] = {
    {"plain", wants_plain},         {"robust", wants_robust},     {"inheriting", wants_inheriting},
    {"reads", wants_to_read},       {"writes", wants_to_write},   {"condition", awaits_condition},
    {"semaphore", awaits_semaphore}, {"barrier", awaits_others},  {"first", awaits_first},
    {"once", awaits_first},         {"joins", awaits_end},
};

#define TASKS (sizeof tasks / sizeof *tasks)

int main(int count, char **arguments) {
    seconds = count > 1 ? atof(arguments[1]) : 1;
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&robust, &kind);
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_setprotocol(&kind, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&inheriting, &kind);
    pthread_barrier_init(&barrier, NULL, 2);
    sem_init(&semaphore, 0, 0);
    sem_init(&held, 0, 0);
    pthread_t holder, threads[TASKS];
    pthread_create(&holder, NULL, holds, NULL);
    while (sem_wait(&held)) {}
    for (size_t at = 0; at < TASKS; at++) {
        pthread_create(&threads[at], NULL, run, &tasks[at]);
        // The thread that initializes comes first.
        pause_for(0.002);
    }
    pause_for(seconds);
    pthread_mutex_lock(&condition_mutex);
    is_over = 1;
    pthread_cond_broadcast(&condition);
    pthread_mutex_unlock(&condition_mutex);
    sem_post(&semaphore);
    pthread_barrier_wait(&barrier);
    for (size_t at = 0; at < TASKS; at++) pthread_join(threads[at], NULL);
    pthread_join(holder, NULL);
    return 0;
}
