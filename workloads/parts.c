// Three functions that take as many milliseconds of CPU time as the three arguments say.
#include "work.h"

NOINLINE void first_part(long ms) { BURN("first_part", ms); }
NOINLINE void second_part(long ms) { BURN("second_part", ms); }
NOINLINE void third_part(long ms) { BURN("third_part", ms); }

int main(int argc, char **argv) {
    long ms[3];
    for (int part = 0; part < 3; part++) ms[part] = argument(argc, argv, part + 1, 100);
    ready();
    // In ten turns, so that no part has a moment of the machine to itself.
    for (int turn = 0; turn < 10; turn++) {
        first_part(ms[0] / 10);
        second_part(ms[1] / 10);
        third_part(ms[2] / 10);
    }
    truth_write("parts");
    return 0;
}
