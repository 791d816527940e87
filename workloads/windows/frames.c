// Frames of many shapes, for unwind information: large ones, dynamic ones, many registers, vectors, variable arguments, several
// exits, leaves, calls in place of returns.
typedef __builtin_va_list va_list;
typedef unsigned long long word;

int external(volatile char *bytes, word count);
double external_double(double value);

__attribute__((noinline)) int leaf(int value) { return value * 7 + 3; }

__attribute__((noinline)) int large(int count) {
    volatile char bytes[70000];
    bytes[count] = 1;
    return external(bytes, sizeof bytes) + bytes[count / 2];
}

__attribute__((noinline)) int medium(int count) {
    volatile char bytes[3000];
    bytes[count] = 1;
    return external(bytes, sizeof bytes) + bytes[count / 2];
}

__attribute__((noinline)) int dynamic(int count) {
    volatile char *bytes = __builtin_alloca(count + 16);
    bytes[count] = 2;
    return external(bytes, count) + dynamic(count - 1) + bytes[0];
}

__attribute__((noinline)) word registers(word a, word b, word c, word d) {
    word e = a * b, f = b * c, g = c * d, h = d * a, i = a ^ c, j = b ^ d, k = a + 5, l = d - 9;
    for (word n = 0; n < a; n++) {
        e += external((volatile char *)&f, g) + h;
        i ^= j + k * l + e;
        k += g * n;
    }
    return a + b + c + d + e + f + g + h + i + j + k + l;
}

__attribute__((noinline)) double vectors(double a, double b, double c, double d) {
    double e = a * b, f = b * c, g = c * d, h = d * a;
    for (int n = 0; n < (int)a; n++) {
        e += external_double(f) * g;
        h += external_double(e) * a - b;
    }
    return a + b + c + d + e + f + g + h;
}

__attribute__((noinline)) int variable(int count, ...) {
    va_list list;
    __builtin_va_start(list, count);
    int sum = 0;
    for (int n = 0; n < count; n++)
        sum += __builtin_va_arg(list, int) + leaf(n);
    __builtin_va_end(list);
    return sum + external((volatile char *)&sum, 4);
}

__attribute__((noinline)) int exits(int kind, volatile char *bytes) {
    switch (kind) {
    case 0: return 1;
    case 1: return external(bytes, 1) + 2;
    case 2: return external(bytes, 2) * external(bytes, 3);
    case 3:
        if (external(bytes, 4) > 3)
            return leaf(kind) + external(bytes, 5);
        return 7;
    default: return external(bytes, kind);
    }
}

__attribute__((noinline)) int aligned(int count) {
    volatile char bytes[200] __attribute__((aligned(64)));
    bytes[count] = 3;
    return external(bytes, sizeof bytes) + bytes[0];
}

__attribute__((noinline)) int tail(int (*function)(int), int value) {
    external(0, value);
    return function(value + 1);
}

int all_frames(int count, volatile char *bytes) {
    return large(count) + medium(count) + dynamic(count) + (int)registers(count, 2, 3, 4) + (int)vectors(count, 2, 3, 4) +
           variable(3, 1, 2, count) + exits(count, bytes) + aligned(count) + tail(leaf, count);
}
