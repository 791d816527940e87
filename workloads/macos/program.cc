// Code for macOS without its libraries: classes, templates, lambdas, inlined calls, functions that only this file knows.
extern "C" int other_file(volatile int *seed);
extern "C" int in_archive(volatile int *seed);
extern "C" int of_a_library(volatile int *seed);

namespace shapes {
struct Point { int x, y; };

class Polygon {
public:
    Polygon(const Point *points, int count) : points(points), count(count) {}
    __attribute__((noinline)) int area(int scale) const;
    __attribute__((noinline)) int shift(Point &by, volatile int *seed);
    inline __attribute__((always_inline)) int at(int index) const { return points[index % count].x * 3 + offset(index); }
private:
    inline __attribute__((always_inline)) int offset(int index) const { return index * count + 7; }
    const Point *points;
    int count;
};

int Polygon::area(int scale) const {
    int sum = 0;
    for (int index = 0; index < count; index++)
        sum += at(index) * scale;
    return sum;
}
int Polygon::shift(Point &by, volatile int *seed) {
    int sum = *seed;
    sum += at(by.x);
    return sum + at(by.y + *seed);
}

template <typename T, int N> __attribute__((noinline)) T sum(const T (&values)[N], T start) {
    for (int index = 0; index < N; index++) start += values[index];
    return start;
}
}

__attribute__((noinline)) static int twice(volatile int *seed) { return *seed * 2; }

extern "C" int unused(volatile int *seed) { return twice(seed) + 1; }

int main() {
    volatile int seed = 3;
    shapes::Point points[] = {{seed, 2}, {3, seed}, {5, 6}};
    shapes::Polygon polygon(points, 3);
    int values[] = {seed, 2, seed};
    auto lambda = [&](int value) __attribute__((noinline)) { return value * polygon.area(seed); };
    return lambda(4) + polygon.shift(points[1], &seed) + shapes::sum(values, 5) + twice(&seed) + other_file(&seed)
        + in_archive(&seed) + of_a_library(&seed);
}
