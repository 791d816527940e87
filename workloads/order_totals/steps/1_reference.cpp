// Reads orders and prints the customers with the largest totals: docs/cpp.md makes it fast.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
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
        std::istringstream fields(line);
        Order order;
        std::getline(fields, order.customer, ';');
        std::getline(fields, order.article, ';');
        fields >> order.price;
        orders.push_back(order);
    }
    return orders;
}

double total_of(const std::vector<Order> &orders, const std::string &customer) {
    double total = 0;
    for (const Order &order : orders)
        if (order.customer == customer)
            total += order.price;
    return total;
}

int main(int, char **words) {
    std::vector<Order> orders = read_orders(words[1]);
    std::map<std::string, double> totals;
    for (const Order &order : orders)
        if (totals.find(order.customer) == totals.end())
            totals[order.customer] = total_of(orders, order.customer);
    std::vector<std::pair<double, std::string>> first;
    for (const auto &[customer, total] : totals)
        first.emplace_back(total, customer);
    std::sort(first.rbegin(), first.rend());
    for (size_t i = 0; i < 3 && i < first.size(); i++)
        std::printf("%s %.2f\n", first[i].second.c_str(), first[i].first);
}
