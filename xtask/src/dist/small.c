// A small program that answers what packing asks nyquist: its version, man pages and completions.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    if (argc == 2 && !strcmp(argv[1], "--version")) {
        puts("nyquist " VERSION);
    } else if (argc == 3 && !strcmp(argv[1], "man")) {
        char path[4096];
        FILE *page;
        snprintf(path, sizeof path, "mkdir -p '%s'", argv[2]);
        if (system(path)) return 1;
        snprintf(path, sizeof path, "%s/nyquist.1", argv[2]);
        if (!(page = fopen(path, "w"))) return 1;
        fputs(".TH nyquist 1\n", page);
        return fclose(page) != 0;
    } else if (argc > 2 && !strcmp(argv[argc - 2], "completions")) {
        printf("# completions for %s\n", argv[argc - 1]);
    } else {
        return 2;
    }
    return 0;
}
