// Makes a function while it runs, describes it in a jitdump in the working directory, and works in it.
// Argument: ms.
#include "made.h"
#include <elf.h>

struct header {
    uint32_t magic, version, size, machine, padding, pid;
    uint64_t time, flags;
};

struct load {
    uint32_t id, size;
    uint64_t time;
    uint32_t pid, tid;
    uint64_t start, address, length, index;
};

int main(int argc, char **argv) {
    static const char name[] = "dumped_code";
    uint32_t pid = (uint32_t)getpid();
    char path[64];
    snprintf(path, sizeof path, "jit-%u.dump", pid);
    FILE *dump = fopen(path, "w+");
    // The mapping of code shows the file to a profiler.
    if (!dump || mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(dump), 0) == MAP_FAILED) {
        perror(path);
        return 97;
    }
    struct header header = {0x4a695444, 1, sizeof header, EM_X86_64, 0, pid, clock_ns(CLOCK_MONOTONIC), 0};
    fwrite(&header, sizeof header, 1, dump);
    make_code();
    uint32_t size = sizeof(struct load) + sizeof name + sizeof made_code;
    struct load load = {0, size, clock_ns(CLOCK_MONOTONIC), pid, pid, PLACE, PLACE, sizeof made_code, 0};
    fwrite(&load, sizeof load, 1, dump);
    fwrite(name, sizeof name, 1, dump);
    fwrite(made_code, sizeof made_code, 1, dump);
    fclose(dump);
    ready();
    run_made_code((uint64_t)argument(argc, argv, 1, 300) * 1000000u, name);
    truth_write("dumped_code");
    return 0;
}
