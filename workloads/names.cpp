// C++ names: overloads, templates, namespaces, operators and lambdas, a fifth of the time each.
#include "work.h"

#include <string>
#include <vector>

namespace shop {
template <typename Item> struct Shelf {
    std::vector<Item> items;
    NOINLINE void sort_items(long ms) { BURN("sort_items", ms); }
    NOINLINE void operator()(long ms) { BURN("operator()", ms); }
};

NOINLINE void price(int, long ms) { BURN("price(int)", ms); }
NOINLINE void price(const std::string &, long ms) { BURN("price(string)", ms); }
} // namespace shop

int main(int argc, char **argv) {
    long ms = argument(argc, argv, 1, 500);
    ready();
    shop::Shelf<std::pair<int, double>> shelf;
    shelf.sort_items(ms / 5);
    shelf(ms / 5);
    shop::price(1, ms / 5);
    shop::price(std::string("x"), ms / 5);
    auto closure = [](long closure_ms) NOINLINE { BURN("lambda", closure_ms); };
    closure(ms / 5);
    truth_write("names");
    return 0;
}
