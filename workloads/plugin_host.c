// Loads a plugin while it runs, calls it, and unloads it. Arguments: ms, the plugin's path.
#include "work.h"
#include <dlfcn.h>

int main(int argc, char **argv) {
    long ms = argument(argc, argv, 1, 300);
    ready();
    void *plugin = dlopen(argc > 2 ? argv[2] : "libplugin.so", RTLD_NOW);
    if (!plugin) {
        fprintf(stderr, "%s\n", dlerror());
        return 98;
    }
    uint64_t (*entry)(long) = (uint64_t(*)(long))dlsym(plugin, "plugin_entry");
    truth_part("plugin_inner", entry(ms));
    dlclose(plugin);
    truth_write("plugin_host");
    return 0;
}
