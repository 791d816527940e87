/* Sends Ctrl-C to all of this console, in two roles:
     ctrl_c work FILE       works for ever, and makes the file after some work;
     ctrl_c send FILE LINE  starts a command line on this console, and sends Ctrl-C there once the file exists.
   The exit code of the second is that of the command, or 99 if it cannot be had. */
#include <stdio.h>
#include <string.h>
#include <windows.h>

#define NOTHING 99
#define SOME 300000000L
#define LONGEST_MS 120000

static volatile unsigned long long sink;

__attribute__((noinline)) void worked(long amount) {
    for (long i = 0; i < amount; i++) sink += i;
}

static int keep_working(const char *name) {
    worked(SOME);
    FILE *file = fopen(name, "w");
    if (!file) return NOTHING;
    fclose(file);
    for (;;) worked(SOME);
}

static BOOL WINAPI ignore(DWORD kind) {
    (void)kind;
    return TRUE;
}

static int interrupt(const char *name, char *line) {
    STARTUPINFOA startup = {.cb = sizeof startup};
    PROCESS_INFORMATION process;
    DWORD code = NOTHING;
    if (!CreateProcessA(NULL, line, NULL, NULL, TRUE, 0, NULL, NULL, &startup, &process)) return NOTHING;
    /* After the start, because a process inherits that Ctrl-C is ignored. */
    SetConsoleCtrlHandler(ignore, TRUE);
    for (int waited = 0; GetFileAttributesA(name) == INVALID_FILE_ATTRIBUTES && waited < LONGEST_MS; waited += 50) {
        Sleep(50);
    }
    /* Process group 0: every process of the console. */
    if (!GenerateConsoleCtrlEvent(CTRL_C_EVENT, 0) ||
        WaitForSingleObject(process.hProcess, LONGEST_MS) != WAIT_OBJECT_0) {
        TerminateProcess(process.hProcess, NOTHING);
        return NOTHING;
    }
    return GetExitCodeProcess(process.hProcess, &code) ? (int)code : NOTHING;
}

int main(int argc, char **argv) {
    if (argc == 3 && !strcmp(argv[1], "work")) return keep_working(argv[2]);
    if (argc == 4 && !strcmp(argv[1], "send")) return interrupt(argv[2], argv[3]);
    return NOTHING;
}
