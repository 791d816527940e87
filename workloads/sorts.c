// The C library calls back: `sorts` sorts by `compares`, which takes a millisecond each time.
#include "work.h"
#include <stdlib.h>

NOINLINE int compares(const void *a, const void *b) {
    BURN("compares", 1);
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

NOINLINE int sorts(long count) {
    int *numbers = malloc((size_t)count * sizeof *numbers);
    for (long i = 0; i < count; i++) numbers[i] = (int)(i * 7919 % 1009);
    qsort(numbers, (size_t)count, sizeof *numbers, compares);
    int result = numbers[count / 2];
    free(numbers);
    return result;
}

int main(int argc, char **argv) {
    long count = argument(argc, argv, 1, 100);
    ready();
    int middle = sorts(count);
    truth_write("sorts");
    return middle >= 0 ? 0 : 96;
}
