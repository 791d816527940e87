// The two sides of a file that is swapped while somebody uses it. "call" calls a function and passes a probe until it is
// killed, and says when its own code changes, and when its probe is enabled. "swap PATH OTHER" waits until somebody opens PATH,
// and gives OTHER that name.
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

// Enables the probe (USDT's semaphore).
__attribute__((used)) volatile unsigned short passed_counter __attribute__((section(".probes")));

// A note as sys/sdt.h writes it: provider "here", probe "passed".
__asm__(".pushsection .stapsdt.base, \"a\"\n"
        "probe_base: .byte 0\n"
        ".popsection\n");

__attribute__((noinline)) void called_by_name(volatile long *sum) {
    *sum += 1;
    __asm__ volatile("990: nop\n"
                     ".pushsection .note.stapsdt, \"\", \"note\"\n"
                     ".balign 4\n"
                     ".4byte 992f - 991f, 994f - 993f, 3\n"
                     "991: .asciz \"stapsdt\"\n"
                     "992: .balign 4\n"
                     "993: .8byte 990b, probe_base, passed_counter\n"
                     ".asciz \"here\"\n"
                     ".asciz \"passed\"\n"
                     ".asciz \"\"\n"
                     "994: .balign 4\n"
                     ".popsection\n");
    *sum += 1;
}

static void say(const char *word) {
    if (printf("%s\n", word) < 0 || fflush(stdout)) _exit(3);
}

#define CODE_BYTES 32

static void code_of(unsigned char *bytes) {
    const volatile unsigned char *code = (const volatile unsigned char *)called_by_name;
    for (int i = 0; i < CODE_BYTES; i++) bytes[i] = code[i];
}

static void call(void) {
    unsigned char first[CODE_BYTES], now[CODE_BYTES];
    long sum = 0;
    int has_changed = 0, was_enabled = 0;
    code_of(first);
    say("ready");
    for (;;) {
        called_by_name(&sum);
        code_of(now);
        if (!has_changed && memcmp(first, now, CODE_BYTES)) has_changed = 1, say("changed");
        if (!was_enabled && passed_counter) was_enabled = 1, say("enabled");
        usleep(500);
    }
}

static int swap(const char *path, const char *other) {
    char event[4096];
    int watch = inotify_init();
    if (watch < 0 || inotify_add_watch(watch, path, IN_OPEN) < 0) return 4;
    say("ready");
    if (read(watch, event, sizeof event) <= 0 || rename(other, path)) return 5;
    say("swapped");
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 2 && !strcmp(argv[1], "call")) call();
    if (argc == 4 && !strcmp(argv[1], "swap")) return swap(argv[2], argv[3]);
    return 2;
}
