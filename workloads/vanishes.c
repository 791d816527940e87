// Loads a plugin, deletes its own file and the plugin's, and works in both, in turns: vanishes MS PLUGIN.
#include "work.h"
#include <dlfcn.h>

NOINLINE void own_work(long ms) { BURN("own_work", ms); }

int main(int argc, char **argv) {
    long ms = argument(argc, argv, 1, 300);
    const char *path = argc > 2 ? argv[2] : "libplugin.so";
    void *plugin = dlopen(path, RTLD_NOW);
    if (!plugin) {
        fprintf(stderr, "%s\n", dlerror());
        return 98;
    }
    uint64_t (*entry)(long) = (uint64_t(*)(long))dlsym(plugin, "plugin_entry");
    char own[4096];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    if (length < 0) return 97;
    own[length] = 0;
    if (unlink(own) || unlink(path)) {
        perror("unlink");
        return 96;
    }
    ready();
    for (long left = ms; left > 0; left -= 20) {
        own_work(10);
        truth_part("plugin_inner", entry(10));
    }
    truth_write("vanishes");
    return 0;
}
