// Loads two libraries in turn, each at the place where the other was, works in them, and unloads them. Arguments: ms of
// CPU time in all, the paths of the two.
#include "work.h"
#include <dlfcn.h>

static inline __attribute__((always_inline)) uint64_t visit(const char *path, const char *part, long ms) {
    void *plugin = dlopen(path, RTLD_NOW);
    if (!plugin) {
        fprintf(stderr, "%s\n", dlerror());
        exit(98);
    }
    uint64_t (*entry)(long) = (uint64_t(*)(long))dlsym(plugin, "plugin_entry");
    uint64_t used = entry(ms);
    truth_part(part, used);
    dlclose(plugin);
    return used;
}

// The caller's name says which library is loaded.
NOINLINE uint64_t visit_plugin(const char *path) { return visit(path, "plugin_inner", 4); }
NOINLINE uint64_t visit_other(const char *path) { return visit(path, "other_inner", 8); }

int main(int argc, char **argv) {
    uint64_t goal = (uint64_t)argument(argc, argv, 1, 600) * 1000000u, used = 0;
    if (argc < 4) return 97;
    ready();
    while (used < goal) {
        used += visit_plugin(argv[2]);
        used += visit_other(argv[3]);
    }
    truth_write("plugin_loop");
    return 0;
}
