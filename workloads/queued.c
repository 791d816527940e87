// Sends a working thread a thousand real-time signals with values, by pthread_sigqueue and then by sigqueue
// from a child, and some hundred of a timer. Prints which have come, in which order and with which siginfo.
#include "work.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

#define COUNT 1000
#define TIMES 300

// The expected signals, and those that have come.
static volatile int code_due;
static atomic_int pid_due, come, out_of_order, wrong_code, wrong_sender;
static volatile int over;

static void handler(int number, siginfo_t *info, void *context) {
    (void)number;
    (void)context;
    if (info->si_value.sival_int != come) out_of_order++;
    if (info->si_code != code_due) wrong_code++;
    if (code_due == SI_QUEUE && info->si_pid != pid_due) wrong_sender++;
    come++;
}

static void *works(void *unused) {
    // The main thread has blocked it, so that none but this one gets it.
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    uint64_t used;
    while (!over) SPIN(1, used);
    return unused;
}

static void begin(int code, pid_t sender) {
    code_due = code;
    pid_due = sender;
    come = out_of_order = wrong_code = wrong_sender = 0;
}

// Prints that nothing was wrong, or how many were. One that came twice would come a little later.
static void tell(const char *how, int sent) {
    for (int ms = 0; come < sent && ms < 10000; ms++) usleep(1000);
    usleep(20000);
    printf("%s: %d of %d, %d out of order, %d with another code, %d from another process\n", how, (int)come, sent,
           (int)out_of_order, (int)wrong_code, (int)wrong_sender);
}

static void send_all(pthread_t *thread) {
    for (int i = 0; i < COUNT; i++) {
        union sigval value = {.sival_int = i};
        // No more than so many may wait at a time.
        while (thread ? pthread_sigqueue(*thread, SIGRTMIN, value) == EAGAIN : sigqueue(getppid(), SIGRTMIN, value) < 0)
            sched_yield();
        // Now one at a time, and now many at once.
        uint64_t used;
        if (i % 100 < 50) SPIN(0, used);
    }
}

static void send_from_child(void) {
    int ends[2];
    char leave = 0;
    if (pipe(ends)) exit(95);
    pid_t child = fork();
    if (child == 0) {
        if (read(ends[0], &leave, 1) == 1) send_all(NULL);
        _exit(0);
    }
    // The child has to be known before its first signal comes.
    begin(SI_QUEUE, child);
    if (write(ends[1], &leave, 1) != 1) exit(94);
    waitpid(child, NULL, 0);
}

static void send_by_timer(void) {
    for (int i = 0; i < TIMES; i++) {
        struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN, .sigev_value.sival_int = i};
        timer_t timer;
        if (timer_create(CLOCK_MONOTONIC, &event, &timer)) exit(97);
        struct itimerspec times = {{0, 0}, {0, 300000}};
        int before = come;
        timer_settime(timer, 0, &times, NULL);
        for (int waits = 0; come == before && waits < 10000; waits++) usleep(100);
        timer_delete(timer);
    }
}

int main(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGRTMIN, &action, NULL);
    pthread_t thread;
    if (pthread_create(&thread, NULL, works, NULL)) return 96;
    begin(SI_QUEUE, getpid());
    send_all(&thread);
    tell("to the thread", COUNT);
    send_from_child();
    tell("from a child", COUNT);
    begin(SI_TIMER, 0);
    send_by_timer();
    tell("by a timer", TIMES);
    over = 1;
    pthread_join(thread, NULL);
    return 0;
}
