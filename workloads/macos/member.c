/* An object file that is linked from an archive; its function of the same name is another one. */
__attribute__((noinline)) static int helper(volatile int *seed) { return *seed ^ 0x55; }
int in_archive(volatile int *seed) {
    int sum = 0;
    for (int round = 0; round < *seed; round++) sum += helper(seed);
    return sum;
}
