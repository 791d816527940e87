// Runs a command and writes its cost. Arguments: the file for the figures, then the command and its
// arguments. Between a recorder and its command it measures the command; around a recorder, everything.
#include "work.h"
#include <sys/wait.h>

// The CPU time of one process without its children, also after its end, until it is waited for.
static uint64_t process_cpu_ns(pid_t pid) {
    clockid_t clock;
    return clock_getcpuclockid(pid, &clock) == 0 ? clock_ns(clock) : 0;
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    uint64_t began = clock_ns(CLOCK_MONOTONIC);
    pid_t child = fork();
    if (child == 0) {
        execvp(argv[2], argv + 2);
        perror(argv[2]);
        _exit(127);
    }
    siginfo_t info;
    if (child < 0 || waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT) != 0) {
        perror("measured");
        return 99;
    }
    uint64_t ended = clock_ns(CLOCK_MONOTONIC), own = process_cpu_ns(child), parent = process_cpu_ns(getppid());
    struct rusage usage;
    int status;
    wait4(child, &status, 0, &usage);
    FILE *file = fopen(argv[1], "w");
    if (!file) {
        perror(argv[1]);
        return 99;
    }
    // `cpu_ns` includes the descendants that were waited for, `own_cpu_ns` does not.
    fprintf(file,
            "{\"began_ns\":%llu,\"ended_ns\":%llu,\"cpu_ns\":%llu,\"own_cpu_ns\":%llu,\"parent_cpu_ns\":%llu,"
            "\"parent\":%d,\"child\":%d}\n",
            (unsigned long long)began, (unsigned long long)ended,
            (unsigned long long)(timeval_ns(usage.ru_utime) + timeval_ns(usage.ru_stime)), (unsigned long long)own,
            (unsigned long long)parent, (int)getppid(), (int)child);
    if (fclose(file) != 0) return 99;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
