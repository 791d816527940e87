// A program that would exhaust its recorder by mappings. It waits for SIGUSR1, makes the mappings, creates a file, and works
// until it is killed. `hostile_mappings children FILE MAPPINGS CHILDREN` maps its own file so often, and then makes children that
// share its memory; each changes one mapping, works for a moment and waits. `hostile_mappings fresh FILE MAPPINGS` maps its own
// file at so many new addresses, and has at most one of these mappings at a time.
#include "work.h"
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#define STEP 8192
#define PAGE 4096
#define CODE (PROT_READ | PROT_EXEC)

static int own;
static char *space;
static long mappings, child_number;

NOINLINE void works_on(void) {
    uint64_t used;
    SPIN(50, used);
}

static int child(void *unused) {
    (void)unused;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    mmap(space + child_number % mappings * STEP, PAGE, CODE, MAP_PRIVATE | MAP_FIXED, own, PAGE);
    for (volatile int turn = 0; turn < 1500000; turn++) {}
    for (;;) pause();
    return 0;
}

static void make_children(long count) {
    enum { STACK = 4096 };
    char *stacks = malloc((size_t)count * STACK);
    for (child_number = 0; child_number < count; child_number++) {
        char *top = stacks + (child_number + 1) * STACK - 64;
        if (clone(child, top, CLONE_VM | SIGCHLD, NULL) < 0) perror("clone"), exit(98);
        usleep(600);
    }
}

static void map_all(long count) {
    for (long at = 0; at < count; at++) {
        void *place = space + at * STEP;
        if (mmap(place, PAGE, CODE, MAP_PRIVATE | MAP_FIXED, own, 0) == MAP_FAILED) perror("mmap"), exit(98);
    }
}

static void map_fresh(long count) {
    // What is left of a mapping around a hole would count as two.
    munmap(space, (size_t)count * STEP);
    for (long at = 0; at < count; at++) {
        void *place = space + at * STEP;
        if (mmap(place, PAGE, CODE, MAP_PRIVATE | MAP_FIXED, own, 0) == MAP_FAILED) perror("mmap"), exit(98);
        munmap(place, PAGE);
    }
}

int main(int argc, char **argv) {
    int is_fresh = argc > 1 && !strcmp(argv[1], "fresh");
    mappings = argument(argc, argv, 3, 30000);
    own = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    space = mmap(NULL, (size_t)mappings * STEP, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (own < 0 || space == MAP_FAILED) perror("space"), exit(98);
    sigset_t begin;
    sigemptyset(&begin);
    sigaddset(&begin, SIGUSR1);
    sigprocmask(SIG_BLOCK, &begin, NULL);
    ready();
    sigwaitinfo(&begin, NULL);
    if (is_fresh) {
        map_fresh(mappings);
    } else {
        map_all(mappings);
        make_children(argument(argc, argv, 4, 1500));
    }
    if (argc > 2) close(open(argv[2], O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
    for (;;) works_on();
}
