// Three functions with known shares of the CPU: alpha 50 %, beta 30 %, gamma 20 %, called by middle, by main.
#include "work.h"

NOINLINE void alpha(long ms) { BURN("alpha", ms); }
NOINLINE void beta(long ms) { BURN("beta", ms); }
NOINLINE void gamma_(long ms) { BURN("gamma_", ms); }

NOINLINE void middle(long ms) {
    alpha(ms / 2);
    beta(ms * 3 / 10);
    gamma_(ms / 5);
    __asm__ volatile("");
}

int main(int argc, char **argv) {
    long ms = argument(argc, argv, 1, 1000);
    ready();
    // In ten turns, so that a part of the run shows the same shares as all of it.
    for (int turn = 0; turn < 10; turn++) middle(ms / 10);
    truth_write("shares");
    return 0;
}
