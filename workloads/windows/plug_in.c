// A library with one busy function, whose name is given when it is compiled (WORK).
static volatile unsigned long long sink;

__declspec(dllexport) void WORK(unsigned rounds) {
    for (unsigned round = 0; round < rounds; round++)
        for (int i = 0; i < 1000000; i++) sink += i;
}
