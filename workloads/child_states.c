// Stops and continues a child of two working threads by each signal of job control, and prints what waitid
// and SIGCHLD report of that, and whether the child works meanwhile: child_states ROUNDS.
#include "work.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

static void *works(void *unused) {
    uint64_t used;
    for (;;) SPIN(100, used);
    return unused;
}

static pid_t working_child(void) {
    pid_t child = fork();
    if (child) return child;
    // In the group of its parent, which is an orphan's, it would not be stopped by the terminal's signals.
    setpgid(0, 0);
    pthread_t thread;
    if (pthread_create(&thread, NULL, works, NULL)) _exit(97);
    works(NULL);
    _exit(0);
}

// The name of a change of state.
static const char *name_of(int code) {
    switch (code) {
    case CLD_STOPPED: return "stopped";
    case CLD_CONTINUED: return "continued";
    case CLD_KILLED: return "killed";
    default: return "something else";
    }
}

static void send_and_hear(pid_t child, int signal_sent) {
    siginfo_t by_signal = {0}, by_wait = {0};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    kill(child, signal_sent);
    if (sigwaitinfo(&set, &by_signal) < 0) perror("sigwaitinfo");
    if (waitid(P_PID, (id_t)child, &by_wait, WEXITED | WSTOPPED | WCONTINUED)) perror("waitid");
    printf("%s: SIGCHLD says %s by %d, waitid %s by %d%s\n", strsignal(signal_sent), name_of(by_signal.si_code),
           by_signal.si_status, name_of(by_wait.si_code), by_wait.si_status,
           by_signal.si_pid == child && by_wait.si_pid == child ? "" : ", of another process");
}

int main(int argc, char **argv) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    pid_t child = working_child();
    setpgid(child, child);
    clockid_t clock;
    if (clock_getcpuclockid(child, &clock)) return 96;
    for (long rounds = argument(argc, argv, 1, 5); rounds > 0; rounds--) {
        int stops[] = {SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU};
        for (unsigned i = 0; i < sizeof stops / sizeof *stops; i++) {
            send_and_hear(child, stops[i]);
            uint64_t before = clock_ns(clock);
            usleep(3000);
            // The kernel may have had to do something to stop it.
            if (clock_ns(clock) - before > 1000000) printf("stopped, it works on\n");
            send_and_hear(child, SIGCONT);
            usleep(3000);
        }
    }
    send_and_hear(child, SIGKILL);
    struct timespec none = {0, 0};
    printf("%s\n", sigtimedwait(&set, NULL, &none) < 0 ? "no more" : "more SIGCHLD");
    return 0;
}
