// The same work however long it takes: sums a table of 256 kB piece by piece, each piece 24 calls deep, or `DEPTH`.
// Arguments: passes over the table, threads, each of which makes all the passes.
#include "work.h"
#include <pthread.h>

#define TABLE 32768
#define PIECE 512
#ifndef DEPTH
#define DEPTH 24
#endif
#define MOST_THREADS 256

static uint64_t table[TABLE];

NOINLINE uint64_t sum_piece(const uint64_t *piece) {
    uint64_t sum = 0;
    for (unsigned i = 0; i < PIECE; i++) {
        sum = sum * 31 + piece[i];
        __asm__ volatile("" : "+r"(sum));
    }
    return sum;
}

NOINLINE uint64_t odd_level(const uint64_t *piece, unsigned depth);

NOINLINE uint64_t even_level(const uint64_t *piece, unsigned depth) {
    return depth == 0 ? sum_piece(piece) : odd_level(piece, depth - 1) + depth;
}

NOINLINE uint64_t odd_level(const uint64_t *piece, unsigned depth) {
    return depth == 0 ? sum_piece(piece) : even_level(piece, depth - 1) ^ depth;
}

NOINLINE uint64_t pass(void) {
    uint64_t sum = 0;
    for (unsigned start = 0; start < TABLE; start += PIECE) sum += even_level(table + start, DEPTH);
    return sum;
}

static void *work(void *passes) {
    for (long left = *(long *)passes; left > 0; left--) pass();
    return NULL;
}

int main(int argc, char **argv) {
    long passes = argument(argc, argv, 1, 10000), threads = argument(argc, argv, 2, 1);
    pthread_t others[MOST_THREADS];
    for (unsigned i = 0; i < TABLE; i++) table[i] = i * 2654435761u;
    for (long i = 1; i < threads && i < MOST_THREADS; i++) pthread_create(&others[i], NULL, work, &passes);
    work(&passes);
    for (long i = 1; i < threads && i < MOST_THREADS; i++) pthread_join(others[i], NULL);
    truth_write("fixed_work");
    return 0;
}
