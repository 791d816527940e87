// Three threads at a time that work, each for a while and each with a name of its own; each makes others that
// end at once. Each writes the time and its CPU time again and again: generations FILE. Ends when it is
// killed.
#include "work.h"

#include <pthread.h>

#define AT_A_TIME 3
#define LIFE_MS 60

static FILE *diary;

static void *ends_at_once(void *unused) { return unused; }

// A line is written whole: the stream is locked for it, and its buffer is as long as a line.
static void write_down(const char *name) {
    unsigned long long cpu = thread_cpu_ns(), now = clock_ns(CLOCK_MONOTONIC);
    fprintf(diary, "%s %llu %llu\n", name, now, cpu);
}

static NOINLINE void generation_work(const char *name) {
    for (int i = 0; i < LIFE_MS; i++) {
        uint64_t used;
        SPIN(1, used);
        write_down(name);
        pthread_t thread;
        if (pthread_create(&thread, NULL, ends_at_once, NULL)) exit(97);
        pthread_join(thread, NULL);
    }
}

static void *generation(void *number) {
    char name[16];
    snprintf(name, sizeof name, "born-%d", (int)(intptr_t)number);
    pthread_setname_np(pthread_self(), name);
    write_down(name);
    generation_work(name);
    return NULL;
}

int main(int argc, char **argv) {
    diary = argc > 1 ? fopen(argv[1], "w") : NULL;
    if (!diary || setvbuf(diary, NULL, _IOLBF, 0)) return 2;
    pthread_t threads[AT_A_TIME];
    ready();
    for (intptr_t born = 0;; born++) {
        pthread_t *place = &threads[born % AT_A_TIME];
        if (born >= AT_A_TIME) pthread_join(*place, NULL);
        if (pthread_create(place, NULL, generation, (void *)born)) return 96;
        // Born one after the other, so that they do not all end together.
        if (born < AT_A_TIME) usleep(20000);
    }
}
