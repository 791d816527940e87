// Ends with a code, or runs a command and prints its whole exit code, of which Wine passes on 8 bits only:
// exit_code.exe CODE, or exit_code.exe run COMMAND.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

int main(int count, char **words) {
    if (count == 2) return (int)strtoul(words[1], 0, 0);
    STARTUPINFOA start = {.cb = sizeof start};
    PROCESS_INFORMATION started;
    DWORD code = 0;
    char *command = strstr(GetCommandLineA(), " run ");
    if (!command || !CreateProcessA(0, command + 5, 0, 0, TRUE, 0, 0, 0, &start, &started)) return 1;
    WaitForSingleObject(started.hProcess, INFINITE);
    GetExitCodeProcess(started.hProcess, &code);
    printf("exit code %lu\n", code);
    return 0;
}
