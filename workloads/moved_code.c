// Replaces its own code by anonymous memory with the same bytes, as programs do that move their code to huge pages, and then runs in it.
// Argument: ms.
#include "work.h"
#include <sys/mman.h>

#define PAGE 4096ul

// The moved part: whole pages.
#define MOVED __attribute__((section("moved_code"), aligned(4096), noinline, noipa))
extern char __start_moved_code[], __stop_moved_code[];

MOVED void inner(long ms) { BURN("inner", ms); }

MOVED void outer(long ms) {
    inner(ms);
    __asm__ volatile("");
}

// The code that moves the others must stay in place.
static __attribute__((section("moving_code"), aligned(4096), noinline, noipa)) int move(void) {
    uintptr_t start = (uintptr_t)__start_moved_code & ~(PAGE - 1);
    uintptr_t end = ((uintptr_t)__stop_moved_code + PAGE - 1) & ~(PAGE - 1);
    size_t len = end - start;
    void *copy = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy == MAP_FAILED) return -1;
    memcpy(copy, (void *)start, len);
    void *moved = mmap((void *)start, len, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (moved == MAP_FAILED) return -1;
    memcpy(moved, copy, len);
    return mprotect(moved, len, PROT_READ | PROT_EXEC);
}

int main(int argc, char **argv) {
    long ms = argument(argc, argv, 1, 500);
    if (move() != 0) {
        perror("move");
        return 98;
    }
    ready();
    outer(ms);
    truth_write("moved_code");
    return 0;
}
