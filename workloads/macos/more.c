/* A second object file, in another language. */
__attribute__((noinline)) static int helper(const char *text, unsigned count) { return text[count]; }
int other_file(volatile int *seed) { return helper("abcdefgh", (unsigned)*seed & 7) + *seed; }
