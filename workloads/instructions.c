// Counts the instructions of a command's threads, in user code and in the kernel; those of its children are not
// counted. Arguments: the file for the figures, then the command and its arguments. Around a recorder it counts the
// recorder alone, and between the recorder and its command, that command.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

// A counter that begins with the next program of the process `pid`.
static int counter(pid_t pid, int of_kernel) {
    struct perf_event_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.size = sizeof attr;
    attr.type = PERF_TYPE_HARDWARE;
    attr.config = PERF_COUNT_HW_INSTRUCTIONS;
    attr.disabled = 1;
    attr.enable_on_exec = 1;
    attr.inherit = 1;
    attr.inherit_thread = 1; // threads, and no children
    attr.exclude_user = of_kernel;
    attr.exclude_kernel = !of_kernel;
    // A counter that shares its time with others would only estimate.
    attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    return (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

// What a counter has counted, if it has counted all the time.
static int counted(int counter, uint64_t *count) {
    uint64_t values[3];
    if (read(counter, values, sizeof values) != sizeof values) return 0;
    if (values[1] != values[2]) errno = EBUSY;
    *count = values[0];
    return values[1] == values[2];
}

int main(int argc, char **argv) {
    int wait_for_counters[2];
    if (argc < 3 || pipe(wait_for_counters) != 0) return 2;
    pid_t child = fork();
    if (child == 0) {
        char byte;
        close(wait_for_counters[1]);
        if (read(wait_for_counters[0], &byte, 1) != 1) _exit(127);
        close(wait_for_counters[0]);
        execvp(argv[2], argv + 2);
        perror(argv[2]);
        _exit(127);
    }
    close(wait_for_counters[0]);
    int of_user = counter(child, 0), of_kernel = counter(child, 1), status;
    if (child < 0 || of_user < 0 || of_kernel < 0 || write(wait_for_counters[1], "", 1) != 1) {
        perror("instructions");
        return 99;
    }
    close(wait_for_counters[1]);
    waitpid(child, &status, 0);
    uint64_t user, kernel;
    FILE *file = fopen(argv[1], "w");
    if (!counted(of_user, &user) || !counted(of_kernel, &kernel) || !file) {
        perror("instructions");
        return 99;
    }
    fprintf(file, "{\"user\":%llu,\"kernel\":%llu}\n", (unsigned long long)user, (unsigned long long)kernel);
    if (fclose(file) != 0) return 99;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
