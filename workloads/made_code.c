// Makes a function while it runs, names it in a perf map by the number that it has itself, and works in it. Arguments: ms, the
// function's name.
#include "made.h"

int main(int argc, char **argv) {
    const char *name = argc > 2 ? argv[2] : "made_code";
    make_code();
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
    FILE *map = fopen(path, "w");
    if (!map) {
        perror(path);
        return 97;
    }
    fprintf(map, "%llx %x %s\n", (unsigned long long)PLACE, ROOM, name);
    fclose(map);
    ready();
    run_made_code((uint64_t)argument(argc, argv, 1, 300) * 1000000u, name);
    truth_write("made_code");
    return 0;
}
