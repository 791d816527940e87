// A thread sleeps again and again on a stack that is in a mapping of a file, of which only the used part was read. If the
// file is withheld, reading the rest of the stack takes for ever. The arguments of the process are in the same mapping.
// Arguments: the file, of at least 64 kB. Burns on its first thread until it is killed.
#include "work.h"
#include <errno.h>
#include <linux/prctl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#define PAGE 4096

NOINLINE void sleep_on_file(void) {
    for (;;) usleep(20000);
}

static void *sleeper(void *unused) {
    pthread_setname_np(pthread_self(), "on-file");
    sleep_on_file();
    return unused;
}

NOINLINE void main_loop(void) {
    uint64_t used;
    for (;;) SPIN(50, used);
}

// Moves the process's arguments to memory that was not read yet.
static void move_arguments(uint64_t to) {
    struct prctl_mm_map map = {0};
    FILE *stat = fopen("/proc/self/stat", "r");
    unsigned long long at[8] = {0};
    // Fields 26 to 28, and 45 to 51 (proc_pid_stat(5)).
    static char line[4096];
    if (!stat || !fgets(line, sizeof line, stat)) exit(98);
    fclose(stat);
    char *word = strrchr(line, ')') + 2;
    int field = 3;
    for (char *next = strtok(word, " "); next; next = strtok(NULL, " "), field++) {
        unsigned long long value = strtoull(next, NULL, 10);
        if (field == 26) map.start_code = value;
        if (field == 27) map.end_code = value;
        if (field == 28) map.start_stack = value;
        if (field >= 45 && field <= 47) at[field - 45] = value;
        if (field == 50) map.env_start = value;
        if (field == 51) map.env_end = value;
    }
    map.start_data = at[0], map.end_data = at[1], map.start_brk = at[2];
    map.brk = (uint64_t)sbrk(0);
    map.arg_start = to, map.arg_end = to + 64;
    map.exe_fd = -1;
    if (prctl(PR_SET_MM, PR_SET_MM_MAP, &map, sizeof map, 0)) perror("prctl");
}

int main(int argc, char **argv) {
    if (argc < 2) return 97;
    int file = open(argv[1], O_RDONLY | O_CLOEXEC);
    struct stat facts;
    if (file < 0 || fstat(file, &facts)) return 98;
    size_t len = facts.st_size / PAGE * PAGE;
    char *memory = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    if (memory == MAP_FAILED) return 98;
    madvise(memory, len, MADV_RANDOM);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    size_t used = len - 4 * PAGE;
    if (pthread_attr_setstack(&attributes, memory, used)) return 98;
    pthread_t thread;
    pthread_create(&thread, &attributes, sleeper, NULL);
    if (argc > 2) move_arguments((uint64_t)memory + len - PAGE);
    ready();
    main_loop();
    return 0;
}
