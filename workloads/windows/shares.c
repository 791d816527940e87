// A program of Windows with known shares of the CPU: alpha 70 % and beta 30 % of the main thread, by the same work; gamma alone
// on a second thread; then it sleeps. Its exit code is 3. The argument is the amount of work.
#include <stdio.h>
#include <stdlib.h>
#include <windows.h>

static volatile unsigned long long sink[2];

// One loop for all: two copies of it may differ in speed by a half, because of where they lie in memory.
__attribute__((noinline)) static void work(int thread, long amount) {
    for (long long i = 0; i < amount * 1000000LL; i++) sink[thread] += i;
}

__attribute__((noinline)) void alpha(long amount) { work(0, amount); __asm__ volatile(""); }
__attribute__((noinline)) void beta(long amount) { work(0, amount); __asm__ volatile(""); }
__attribute__((noinline)) void gamma_(long amount) { work(1, amount); __asm__ volatile(""); }

__attribute__((noinline)) void middle(long amount) {
    alpha(7 * amount);
    beta(3 * amount);
    __asm__ volatile("");
}

DWORD WINAPI worker(void *amount) {
    gamma_(*(long *)amount * 50);
    return 0;
}

int main(int argc, char **argv) {
    long amount = argc > 1 ? atol(argv[1]) : 10;
    HANDLE thread = CreateThread(0, 0, worker, &amount, 0, 0);
    for (int turn = 0; turn < 10; turn++) middle(amount);
    WaitForSingleObject(thread, INFINITE);
    Sleep(200);
    printf("worked\n");
    return 3;
}
