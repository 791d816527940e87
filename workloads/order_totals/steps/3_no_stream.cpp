// Reads orders and prints the customers with the largest totals: docs/cpp.md makes it fast.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <unordered_map>
#include <vector>

struct Order {
    std::string customer;
    std::string article;
    double price;
};

std::vector<Order> read_orders(const char *path) {
    std::vector<Order> orders;
    std::ifstream file(path);
    std::string line;
    while (std::getline(file, line)) {
        const size_t first = line.find(';'), second = line.find(';', first + 1);
        orders.push_back({line.substr(0, first), line.substr(first + 1, second - first - 1), std::strtod(&line[second + 1], nullptr)});
    }
    return orders;
}

int main(int, char **words) {
    std::vector<Order> orders = read_orders(words[1]);
    std::unordered_map<std::string, double> totals;
    for (const Order &order : orders)
        totals[order.customer] += order.price;
    std::vector<std::pair<double, std::string>> first;
    for (const auto &[customer, total] : totals)
        first.emplace_back(total, customer);
    std::sort(first.rbegin(), first.rend());
    for (size_t i = 0; i < 3 && i < first.size(); i++)
        std::printf("%s %.2f\n", first[i].second.c_str(), first[i].first);
}
