/* Starts a command on this console, and types Ctrl-C there after some milliseconds: ctrl_c MILLISECONDS COMMAND.
   Its exit code is the command's, or 99 if that cannot be had. */
#include <stdlib.h>
#include <windows.h>

#define FAILED 99

static BOOL WINAPI ignore(DWORD kind) {
    (void)kind;
    return TRUE;
}

int main(int argc, char **argv) {
    STARTUPINFOA startup = {.cb = sizeof startup};
    PROCESS_INFORMATION process;
    DWORD code = FAILED;
    if (argc != 3 || !CreateProcessA(NULL, argv[2], NULL, NULL, TRUE, 0, NULL, NULL, &startup, &process)) {
        return FAILED;
    }
    /* After the start, because a process inherits that Ctrl-C is ignored. */
    SetConsoleCtrlHandler(ignore, TRUE);
    Sleep(atoi(argv[1]));
    /* Process group 0: every process of the console. */
    if (!GenerateConsoleCtrlEvent(CTRL_C_EVENT, 0) || WaitForSingleObject(process.hProcess, 120000) != WAIT_OBJECT_0) {
        TerminateProcess(process.hProcess, FAILED);
        return FAILED;
    }
    return GetExitCodeProcess(process.hProcess, &code) ? (int)code : FAILED;
}
