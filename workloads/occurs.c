// Does things that are counted: calls of a function in the process, in a thread and in a child, writes of a size, and first
// touches of memory. Arguments: the calls of each, the writes, and the pages. Says how many page faults the kernel has counted.
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile long sum;

__attribute__((noinline)) void called_by_name(int number) {
    sum += number;
    __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) void calls(int count) {
    for (int i = 0; i < count; i++) called_by_name(i);
}

static void *thread_calls(void *count) {
    calls(*(int *)count);
    return NULL;
}

__attribute__((noinline)) void touches(int pages) {
    size_t size = (size_t)pages * 4096;
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) exit(3);
    madvise(memory, size, MADV_NOHUGEPAGE);
    for (size_t at = 0; at < size; at += 4096) memory[at] = 1;
}

__attribute__((noinline)) void writes(int count, int file) {
    for (int i = 0; i < count; i++)
        if (write(file, "0123456789", 7) != 7) exit(4);
}

int main(int argc, char **argv) {
    if (argc < 4) return 2;
    int count = atoi(argv[1]);
    calls(count);
    pthread_t thread;
    if (pthread_create(&thread, NULL, thread_calls, &count) != 0) return 5;
    pthread_join(thread, NULL);
    pid_t child = fork();
    if (child == 0) {
        calls(count);
        _exit(0);
    }
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child) return 6;
    int nowhere = open("/dev/null", O_WRONLY);
    if (nowhere < 0) return 7;
    writes(atoi(argv[2]), nowhere);
    touches(atoi(argv[3]));
    struct rusage own, children;
    getrusage(RUSAGE_SELF, &own);
    getrusage(RUSAGE_CHILDREN, &children);
    printf("%ld\n", own.ru_minflt + own.ru_majflt + children.ru_minflt + children.ru_majflt);
    return 0;
}
