// Makes a function while it runs, names it in a perf map by the number that it has itself, and works in it. Arguments: ms, the
// function's name.
#include "work.h"
#include <sys/mman.h>

// Where the function is, so that others can tell of it before it is made.
#define PLACE 0x2000000000

int main(int argc, char **argv) {
    // mov ecx, 300000; dec ecx; jnz to the dec; ret
    static const unsigned char code[] = {0xb9, 0xe0, 0x93, 0x04, 0x00, 0xff, 0xc9, 0x75, 0xfc, 0xc3};
    uint64_t goal = (uint64_t)argument(argc, argv, 1, 300) * 1000000u;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
    void *place = mmap((void *)PLACE, 4096, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (place == MAP_FAILED) {
        perror("mmap");
        return 98;
    }
    memcpy(place, code, sizeof code);
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
    FILE *map = fopen(path, "w");
    if (!map) {
        perror(path);
        return 97;
    }
    fprintf(map, "%llx 1000 %s\n", (unsigned long long)PLACE, argc > 2 ? argv[2] : "made_code");
    fclose(map);
    mprotect(place, 4096, PROT_READ | PROT_EXEC);
    ready();
    uint64_t began = thread_cpu_ns();
    while (thread_cpu_ns() - began < goal) ((void (*)(void))place)();
    truth_part(argc > 2 ? argv[2] : "made_code", thread_cpu_ns() - began);
    truth_write("made_code");
    return 0;
}
