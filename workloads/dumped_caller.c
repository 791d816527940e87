// Calls through code that it makes itself, without a frame pointer, and describes in a jitdump in the working directory.
// Arguments: ms, and the form of the dump: `described` (with unwind information), `plain` (without), `machineless` (with it, but
// the header has no machine), `late` (made executable after it is described), `unwritten` (the record is never written).
#include "work.h"
#include <elf.h>
#include <stdbool.h>
#include <sys/mman.h>

#define ARENA (1 << 16)

// sub $8, %rsp; call *%rdi; add $8, %rsp; ret
static const unsigned char CODE[] = {0x48, 0x83, 0xec, 8, 0xff, 0xd7, 0x48, 0x83, 0xc4, 8, 0xc3};

// The call frame information of this code, which begins 16 bytes before it: a CIE with relative addresses of four bytes, an FDE
// whose CFA is 16 bytes above the stack pointer between the two changes of it, and the end.
static const unsigned char FRAMES[] = {
    0x14, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 0x10, 1, 0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0,
    0x14, 0, 0, 0, 0x1c, 0, 0, 0, 0xd0, 0xff, 0xff, 0xff, 0x0b, 0, 0, 0, 0, 0x44, 0x0e, 0x10, 0x46, 0x0e, 8, 0,
    0, 0, 0, 0};

struct header {
    uint32_t magic, version, size, machine, padding, pid;
    uint64_t time, flags;
};

struct unwinding {
    uint32_t id, size;
    uint64_t time, data, header, mapped;
};

struct load {
    uint32_t id, size;
    uint64_t time;
    uint32_t pid, tid;
    uint64_t start, address, length, index;
};

typedef void function(void);
typedef void trampoline(function *);

static long ms;
static trampoline *to_inner;
static volatile unsigned calls;

NOINLINE void inner(void) { BURN("inner", ms); }

// The statement after the call keeps it from being a jump.
NOINLINE void outer(void) {
    to_inner(inner);
    calls++;
}

static void describe(FILE *dump, const unsigned char *code, bool with_frames) {
    static const char name[] = "dumped_caller";
    uint32_t pid = (uint32_t)getpid();
    if (with_frames) {
        struct unwinding unwinding = {4, sizeof unwinding + sizeof FRAMES, clock_ns(CLOCK_MONOTONIC), sizeof FRAMES, 0, 0};
        fwrite(&unwinding, sizeof unwinding, 1, dump);
        fwrite(FRAMES, sizeof FRAMES, 1, dump);
    }
    uint64_t start = (uint64_t)code;
    struct load load = {0, sizeof load + sizeof name + sizeof CODE, clock_ns(CLOCK_MONOTONIC), pid, pid, start, start, sizeof CODE, 0};
    fwrite(&load, sizeof load, 1, dump);
    fwrite(name, sizeof name, 1, dump);
    fwrite(CODE, sizeof CODE, 1, dump);
    fflush(dump);
}

int main(int argc, char **argv) {
    ms = argument(argc, argv, 1, 300);
    const char *form = argc > 2 ? argv[2] : "described";
    bool is_late = !strcmp(form, "late");
    uint32_t pid = (uint32_t)getpid();
    char path[64];
    snprintf(path, sizeof path, "jit-%u.dump", pid);
    FILE *dump = fopen(path, "w+");
    unsigned char *code = mmap(NULL, ARENA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!dump || code == MAP_FAILED) {
        perror(path);
        return 97;
    }
    mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(dump), 0);
    uint32_t machine = strcmp(form, "machineless") ? EM_X86_64 : 0;
    struct header header = {0x4a695444, 1, sizeof header, machine, 0, pid, clock_ns(CLOCK_MONOTONIC), 0};
    fwrite(&header, sizeof header, 1, dump);
    fflush(dump);
    code += 256;
    memcpy(code, CODE, sizeof CODE);
    if (!is_late) mprotect(code - 256, ARENA, PROT_READ | PROT_EXEC);
    if (strcmp(form, "unwritten")) describe(dump, code, strcmp(form, "plain"));
    if (is_late) mprotect(code - 256, ARENA, PROT_READ | PROT_EXEC);
    to_inner = (trampoline *)(void *)code;
    ready();
    outer();
    truth_write("dumped_caller");
    return 0;
}
