// Many threads that all want a CPU all the time. Each spends seven tenths of its work in heavy and three in
// light, in turns of changing length. Arguments: the work of each in about a millisecond, how many threads,
// and `calls`, if light is to call the kernel all the time. Its truth is the CPU time that the threads used
// themselves.
//
// The length of a turn is counted and not measured. When a thread asks for its own time, the kernel looks for
// other threads that want the CPU, so the thread would be preempted there. All turns of both functions run
// the same loop.
#include "work.h"
#include <pthread.h>

// About a millisecond.
#define LOOPS 3000000u

static long each_ms;
static int calls;
static uint64_t used_in_heavy, used_in_light;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

NOINLINE void spin(uint64_t loops) {
    for (uint64_t i = 0; i < loops; i++) __asm__ volatile("" : : "r"(i));
}

NOINLINE void heavy(uint64_t loops) {
    spin(loops);
    __asm__ volatile("");
}

NOINLINE void light(uint64_t loops) {
    spin(loops);
    __asm__ volatile("");
}

// A system call of less than a microsecond after each microsecond or two.
NOINLINE void light_with_calls(uint64_t loops, int zeroes) {
    char room[64];
    for (uint64_t done = 0; done < loops; done += 5000) {
        spin(4000);
        if (read(zeroes, room, sizeof room) != sizeof room) _exit(97);
    }
}

static void *work(void *number) {
    uint64_t heavy_loops = 0, light_loops = 0, in_light = 0, goal = (uint64_t)each_ms * LOOPS;
    unsigned seed = (unsigned)(intptr_t)number;
    int zeroes = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    while (heavy_loops + light_loops < goal) {
        // From half a millisecond to three and a half.
        uint64_t loops = LOOPS / 2 + (uint64_t)rand_r(&seed) % (LOOPS * 3);
        heavy(loops);
        heavy_loops += loops;
        light_loops += loops * 3 / 7;
        if (calls) {
            uint64_t began = thread_cpu_ns();
            light_with_calls(loops * 3 / 7, zeroes);
            in_light += thread_cpu_ns() - began;
        } else {
            light(loops * 3 / 7);
        }
    }
    uint64_t used = thread_cpu_ns();
    if (!calls) in_light = used / 10 * 3;
    pthread_mutex_lock(&lock);
    used_in_heavy += used - in_light;
    used_in_light += in_light;
    pthread_mutex_unlock(&lock);
    close(zeroes);
    return NULL;
}

int main(int argc, char **argv) {
    each_ms = argument(argc, argv, 1, 50);
    long count = argument(argc, argv, 2, 50);
    calls = argc > 3;
    if (count < 1 || count > 1000) return 2;
    pthread_t threads[1000];
    ready();
    for (long i = 0; i < count; i++) pthread_create(&threads[i], NULL, work, (void *)(intptr_t)(i + 1));
    for (long i = 0; i < count; i++) pthread_join(threads[i], NULL);
    truth_part("heavy", used_in_heavy);
    truth_part(calls ? "light_with_calls" : "light", used_in_light);
    truth_write("crowd");
    return 0;
}
