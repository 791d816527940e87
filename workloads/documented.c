/* What the commands of the documents are tried on: uses CPU time in `parse`, faults pages, writes, and waits for a lock.
 * With `forever` as its first word, it works until its parent ends. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile long sum;

static double cpu_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

__attribute__((noinline)) static void parse(double ms) {
    for (double end = cpu_ms() + ms; cpu_ms() < end;)
        for (int i = 0; i < 1000; i++)
            sum += i;
}

static void *worker(void *unused) {
    pthread_mutex_lock(&lock);
    parse(20);
    pthread_mutex_unlock(&lock);
    return unused;
}

int main(int count, char **words) {
    int forever = count > 1 && strcmp(words[1], "forever") == 0;
    pid_t parent = getppid();
    do {
        pthread_t thread;
        pthread_mutex_lock(&lock);
        pthread_create(&thread, NULL, worker, NULL);
        char *memory = malloc(1 << 20);
        memset(memory, 1, 1 << 20);
        parse(40);
        usleep(2000);
        pthread_mutex_unlock(&lock);
        pthread_join(thread, NULL);
        free(memory);
    } while (forever && getppid() == parent);
    return 0;
}
