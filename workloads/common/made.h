// A function that is made while the program runs.
#ifndef MADE_H
#define MADE_H

#include "work.h"
#include <sys/mman.h>

// Where the function is, so that it can be described before it is made.
#define PLACE 0x2000000000
// How much may hold it.
#define ROOM 4096

// mov ecx, 300000; dec ecx; jnz to the dec; ret
static const unsigned char made_code[] = {0xb9, 0xe0, 0x93, 0x04, 0x00, 0xff, 0xc9, 0x75, 0xfc, 0xc3};

// Makes it. To be called once.
static inline void make_code(void) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
    void *place = mmap((void *)PLACE, ROOM, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (place == MAP_FAILED) {
        perror("mmap");
        exit(98);
    }
    memcpy(place, made_code, sizeof made_code);
    mprotect(place, ROOM, PROT_READ | PROT_EXEC);
}

// Works in it for so long, in ns of CPU time; its truth is that of a function of this name.
static inline void run_made_code(uint64_t goal, const char *name) {
    uint64_t began = thread_cpu_ns();
    while (thread_cpu_ns() - began < goal) ((void (*)(void))PLACE)();
    truth_part(name, thread_cpu_ns() - began);
}

#endif
