// Makes code at run time, and calls a busy function through it: made_code.exe ROUNDS.
#include <stdlib.h>
#include <string.h>
#include <windows.h>

static volatile unsigned long long sink;

__attribute__((noinline)) void busy(unsigned rounds) {
    for (unsigned round = 0; round < rounds; round++)
        for (int i = 0; i < 1000000; i++) sink += i;
}

__attribute__((noinline)) void calls_made_code(void (*made)(unsigned), unsigned rounds) {
    made(rounds);
    sink++;
}

int main(int count, char **words) {
    // push rbp; mov rbp, rsp; sub rsp, 32; mov rax, ADDRESS; call rax; leave; ret
    static const unsigned char before[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x20, 0x48, 0xb8};
    static const unsigned char after[] = {0xff, 0xd0, 0xc9, 0xc3};
    void (*address)(unsigned) = busy;
    unsigned char *code = VirtualAlloc(0, 4096, MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE);
    DWORD former;
    if (!code || count < 2) return 1;
    memcpy(code, before, sizeof before);
    memcpy(code + sizeof before, &address, sizeof address);
    memcpy(code + sizeof before + sizeof address, after, sizeof after);
    if (!VirtualProtect(code, 4096, PAGE_EXECUTE_READ, &former)) return 1;
    calls_made_code((void (*)(unsigned))code, atoi(words[1]));
    return 0;
}
