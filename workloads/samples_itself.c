// Samples itself as `perf record --call-graph dwarf` would on 64-bit ARM, because an emulator that runs the
// program may have no perf: `samples_itself FILE` writes a perf.data. Every sample has registers, a copy of
// the stack, and, as its call chain, the stack as libgcc's unwinder sees it: the truth that the copy's
// unwinding is compared with.
#define _GNU_SOURCE
#include <alloca.h>
#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#define NOINLINE __attribute__((noinline, noclone))
#define MOST_STACK 40000
#define MOST_FRAMES 200
#define PERF_CONTEXT_USER ((uint64_t)-512)

static uint8_t records[48 << 20];
static size_t used;
static uint64_t stack_top, samples;
static int wanted = 600;
static volatile sig_atomic_t done;
static volatile long sink;

static void put(const void *bytes, size_t size) {
    if (used > sizeof records - size) abort();
    memcpy(records + used, bytes, size);
    used += size;
}
static void put32(uint32_t value) { put(&value, 4); }
static void put64(uint64_t value) { put(&value, 8); }

static size_t begin(uint32_t kind, uint16_t misc) {
    size_t at = used;
    put32(kind);
    put32(misc);
    return at;
}

// The size is the upper half of the second word.
static void end(size_t at) {
    uint16_t size = (uint16_t)(used - at);
    memcpy(records + at + 6, &size, 2);
}

static void put_id(void) {
    static uint64_t clock_ns;
    put32(1000);
    put32(1000);
    put64(clock_ns += 1000000);
}

static void put_text(const char *text) {
    size_t size = (strlen(text) + 8) & ~(size_t)7;
    char padded[512] = {0};
    strncpy(padded, text, sizeof padded - 8);
    put(padded, size);
}

struct chain {
    uint64_t frames[MOST_FRAMES];
    int count;
};

static _Unwind_Reason_Code add_frame(struct _Unwind_Context *context, void *argument) {
    struct chain *chain = argument;
    if (chain->count == MOST_FRAMES) return _URC_END_OF_STACK;
    chain->frames[chain->count++] = _Unwind_GetIP(context);
    return _URC_NO_REASON;
}

// `from` is the first frame's instruction pointer; frames that the unwinder sees before `after` are left out.
static void put_sample(const uint64_t registers[33], uint64_t after) {
    struct chain chain = {.count = 0};
    _Unwind_Backtrace(add_frame, &chain);
    int first = 0;
    while (first < chain.count && chain.frames[first] != after) first++;
    if (first == chain.count) return;
    int is_inner = registers[32] != after;
    int last = chain.count;
    if (chain.frames[last - 1] == 0) last--;
    size_t at = begin(9, 2);
    put64(registers[32]);
    put_id();
    put64(1000000);
    put64(1 + is_inner + last - first);
    put64(PERF_CONTEXT_USER);
    if (is_inner) put64(registers[32]);
    put(chain.frames + first, 8 * (last - first));
    put64(2);
    put(registers, 33 * 8);
    uint64_t size = (stack_top - registers[31]) & ~(uint64_t)7;
    if (size > MOST_STACK) size = MOST_STACK;
    put64(size);
    put((const void *)registers[31], size);
    put64(size);
    end(at);
    samples++;
}

// The registers of the handler itself: those that a function keeps for its caller, and its place.
NOINLINE static void sample_handler(void) {
    uint64_t registers[33] = {0};
    asm volatile(
        "stp x19, x20, [%0, 152]\n stp x21, x22, [%0, 168]\n stp x23, x24, [%0, 184]\n"
        "stp x25, x26, [%0, 200]\n stp x27, x28, [%0, 216]\n stp x29, x30, [%0, 232]\n"
        "mov x9, sp\n adr x10, .\n stp x9, x10, [%0, 248]\n" ::"r"(registers) : "x9", "x10", "memory");
    put_sample(registers, (uint64_t)__builtin_extract_return_addr(__builtin_return_address(0)));
}

// Each signal asks for the next: in a slow emulator a handler takes longer than the distance of two samples.
static void sample_soon(void) {
    struct itimerval once = {.it_value = {0, 2000}};
    setitimer(ITIMER_REAL, &once, NULL);
}

static void handler(int number, siginfo_t *info, void *argument) {
    const ucontext_t *context = argument;
    uint64_t registers[33];
    (void)number, (void)info;
    memcpy(registers, context->uc_mcontext.regs, 31 * 8);
    registers[31] = context->uc_mcontext.sp;
    registers[32] = context->uc_mcontext.pc;
    if (samples % 8 == 7) sample_handler();
    else put_sample(registers, registers[32]);
    if (samples >= (uint64_t)wanted) done = 1;
    else sample_soon();
}

NOINLINE int descending(const void *a, const void *b) {
    int x = *(const int *)a, y = *(const int *)b;
    return (x < y) - (x > y);
}

NOINLINE void sorts(void) {
    int numbers[500];
    for (int i = 0; i < 500; i++) numbers[i] = (i * 7919) % 1009;
    qsort(numbers, 500, sizeof *numbers, descending);
    sink += numbers[3];
}

NOINLINE void formats(void) {
    char text[200];
    for (int i = 0; i < 20; i++) snprintf(text, sizeof text, "%d %s %g %lx", i, "text", i / 3.0, sink);
    sink += text[5];
}

NOINLINE void fills(void) {
    static char large[20000];
    memset(large, (int)sink, sizeof large);
    memmove(large + 3, large, 15000);
    sink += (long)strlen(strcpy(large, "some words")) + large[17000];
}

NOINLINE void varies(int words) {
    volatile long *room = alloca(8 * (size_t)words);
    for (int i = 0; i < words; i++) room[i] = i;
    sink += room[words / 2];
}

NOINLINE void computes(void) {
    double sum = 0;
    for (int i = 1; i < 60; i++) sum += sin(i) * pow(i, 0.3);
    sink += (long)sum;
}

NOINLINE void allocates(void) {
    void *blocks[50];
    for (int i = 0; i < 50; i++) blocks[i] = malloc((size_t)i * 97);
    for (int i = 0; i < 50; i++) free(blocks[i]);
}

NOINLINE long recurses(int depth) {
    if (depth == 0) {
        sorts(), formats(), fills(), varies((int)(sink & 255) + 2), computes(), allocates();
        return sink;
    }
    long below = recurses(depth - 1);
    return below + (depth & 1 ? descending(&depth, &wanted) : 1);
}

// The mappings of code.
static void put_mappings(void) {
    char line[512], path[300];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps)) {
        unsigned long start, stop, offset;
        char access[8];
        *path = 0;
        if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %299[^\n]", &start, &stop, access, &offset, path) < 4) continue;
        if (access[2] != 'x') continue;
        size_t at = begin(10, 2);
        put32(1000);
        put32(1000);
        uint64_t place[3] = {start, stop - start, offset}, file[3] = {0};
        put(place, sizeof place);
        put(file, sizeof file);
        put32(5);
        put32(2);
        put_text(*path ? path : "//anon");
        put_id();
        end(at);
    }
    if (maps) fclose(maps);
}

static int write_file(const char *path) {
    uint64_t attr[16] = {0}, header[13] = {0};
    const uint64_t attr_at = sizeof header, data_at = attr_at + sizeof attr, texts_at = data_at + used + 48;
    // A clock of the CPU, sampled every million ns, with instruction pointer, thread, time, call chain, period, registers, stack.
    attr[0] = 1 | (uint64_t)112 << 32;
    attr[2] = 1000000;
    attr[3] = 1 | 2 | 4 | 0x20 | 0x100 | 0x1000 | 0x2000;
    attr[5] = 1 << 18;
    attr[10] = ((uint64_t)1 << 33) - 1;
    attr[11] = MOST_STACK;
    memcpy(header, "PERFILE2", 8);
    header[1] = sizeof header;
    header[2] = sizeof attr;
    header[3] = attr_at;
    header[4] = sizeof attr;
    header[5] = data_at;
    header[6] = used;
    // The host's name, its kernel's release and its architecture, so that the files are known to be those that are here.
    header[9] = 1 << 3 | 1 << 4 | 1 << 6;
    struct { uint32_t size; char text[68]; } texts[3] = {{68, ""}, {68, ""}, {68, "aarch64"}};
    uint64_t sections[3][2];
    const char *const paths[2] = {"/proc/sys/kernel/hostname", "/proc/sys/kernel/osrelease"};
    for (int i = 0; i < 3; i++) {
        sections[i][0] = texts_at + (uint64_t)i * sizeof texts[0];
        sections[i][1] = sizeof texts[0];
        FILE *source = i < 2 ? fopen(paths[i], "r") : NULL;
        if (source && fscanf(source, "%64s", texts[i].text) != 1) return 1;
        if (source) fclose(source);
    }
    FILE *file = fopen(path, "wb");
    if (!file) return 1;
    fwrite(header, sizeof header, 1, file);
    fwrite(attr, sizeof attr, 1, file);
    fwrite(records, used, 1, file);
    fwrite(sections, sizeof sections, 1, file);
    fwrite(texts, sizeof texts, 1, file);
    return fclose(file) != 0;
}

int main(int argc, char **argv) {
    stack_top = (uint64_t)argv;
    if (argc > 2) wanted = atoi(argv[2]);
    size_t at = begin(3, 1 << 13);
    put32(1000);
    put32(1000);
    put_text("samples_itself");
    put_id();
    end(at);
    put_mappings();
    // The unwinder allocates its tables at its first use, which must not be in a handler that interrupts
    // malloc.
    struct chain chain = {.count = 0};
    _Unwind_Backtrace(add_frame, &chain);
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    sample_soon();
    while (!done) recurses(6);
    return argc > 1 ? write_file(argv[1]) : 0;
}
