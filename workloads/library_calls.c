// Works in the C library for so many milliseconds: sorts, prints, copies, allocates.
#include "work.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

NOINLINE long sorts(int count) {
    int *numbers = malloc((size_t)count * sizeof *numbers);
    for (int i = 0; i < count; i++) numbers[i] = i * 7919 % 10007;
    qsort(numbers, (size_t)count, sizeof *numbers, compare);
    long result = numbers[3];
    free(numbers);
    return result;
}

NOINLINE long prints(int count) {
    char text[200];
    long sum = 0;
    for (int i = 0; i < count; i++) sum += snprintf(text, sizeof text, "%d %s %g", i, "text", i / 3.0);
    return sum;
}

NOINLINE long copies(int count) {
    static char from[1 << 20], to[1 << 20];
    for (int i = 0; i < count; i++) memcpy(to, from, sizeof to);
    return to[5];
}

NOINLINE long allocates(int count) {
    long sum = 0;
    for (int i = 0; i < count; i++) {
        void *block = malloc((size_t)i % 1000 + 1);
        sum += (long)((uintptr_t)block & 15);
        free(block);
    }
    return sum;
}

int main(int argc, char **argv) {
    uint64_t end = thread_cpu_ns() + (uint64_t)argument(argc, argv, 1, 1000) * 1000000u;
    long sum = 0;
    while (thread_cpu_ns() < end) sum += sorts(20000) + prints(20000) + copies(20) + allocates(200000);
    return sum == 1 ? 96 : 0;
}
