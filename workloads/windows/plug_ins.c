// Loads two libraries in turn, which want the same address, and works a third of its time in the first:
// plug_ins.exe ROUNDS. Fails if the second has another address.
#include <stdlib.h>
#include <windows.h>

static HMODULE work(const char *library, const char *function, unsigned rounds) {
    HMODULE loaded = LoadLibraryA(library);
    void (*works)(unsigned) = loaded ? (void (*)(unsigned))(void *)GetProcAddress(loaded, function) : 0;
    if (!works) exit(1);
    works(rounds);
    FreeLibrary(loaded);
    return loaded;
}

int main(int count, char **words) {
    unsigned rounds = count > 1 ? atoi(words[1]) : 0;
    HMODULE first = work("first.dll", "first_work", rounds);
    HMODULE second = work("second.dll", "second_work", 2 * rounds);
    return first == second ? 0 : 2;
}
