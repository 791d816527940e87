// Three threads touch 100, 200 and 300 new pages and use 20, 40 and 60 ms of CPU time, when the file that the argument names is
// there. Each says its name, its number, and the faults that the kernel has counted of it. Then a child runs `true`.
// A thread before them does the same with no page, so that the code of a thread's work and end is in memory: whichever thread ended
// first would fault it in after it has spoken.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *go;

// What a thread says of itself, which is printed when all have ended: printing touches pages, too.
static struct {
    pid_t number;
    long faults;
} said[4];

static double used_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

static void *work(void *argument) {
    long number = (long)argument;
    char name[16];
    snprintf(name, sizeof name, "worker-%ld", number);
    pthread_setname_np(pthread_self(), name);
    while (number && access(go, F_OK))
        usleep(1000);
    long pages = number * 100;
    volatile char *memory = mmap(0, (pages + 1) * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        exit(1);
    for (long page = 0; page < pages; page++)
        memory[page * 4096] = 1;
    double begin = used_ms();
    while (used_ms() - begin < number * 20)
        ;
    struct rusage used;
    getrusage(RUSAGE_THREAD, &used);
    said[number].number = gettid();
    said[number].faults = used.ru_minflt;
    return 0;
}

int main(int argc, char **argv) {
    if (argc < 2)
        return 2;
    go = argv[1];
    pthread_t threads[4];
    if (pthread_create(&threads[0], 0, work, 0))
        return 1;
    pthread_join(threads[0], 0);
    for (long number = 1; number < 4; number++)
        if (pthread_create(&threads[number], 0, work, (void *)number))
            return 1;
    for (int number = 1; number < 4; number++)
        pthread_join(threads[number], 0);
    for (int number = 1; number < 4; number++)
        printf("worker-%d %d %ld\n", number, said[number].number, said[number].faults);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        execlp("true", "true", (char *)0);
    int status;
    return waitpid(child, &status, 0) == child ? status : 1;
}
