// Puts a file into memory and runs it from there. Arguments: `program` and a program with its arguments. Or
// `library`, a library, and a program with its arguments; an argument `@` is replaced by the library's path
// in memory.
#include "work.h"
#include <sys/mman.h>
#include <sys/sendfile.h>

static int in_memory(const char *path, unsigned flags) {
    int file = open(path, O_RDONLY | O_CLOEXEC), memory = memfd_create("in-memory", flags);
    if (file < 0 || memory < 0) {
        perror(path);
        _exit(98);
    }
    while (sendfile(memory, file, NULL, 1 << 20) > 0) {
    }
    close(file);
    return memory;
}

int main(int argc, char **argv) {
    if (argc < 3) return 97;
    if (strcmp(argv[1], "program") == 0) {
        fexecve(in_memory(argv[2], MFD_CLOEXEC), argv + 2, environ);
    } else if (argc > 3) {
        static char path[64];
        snprintf(path, sizeof path, "/proc/self/fd/%d", in_memory(argv[2], 0));
        for (int i = 4; i < argc; i++)
            if (strcmp(argv[i], "@") == 0) argv[i] = path;
        execv(argv[3], argv + 3);
    }
    perror(argv[2]);
    return 98;
}
