// The edit distance of two words, for Python. docs/python.md makes it fast.
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdlib.h>

static long least(long a, long b, long c) {
    long least = a < b ? a : b;
    return least < c ? least : c;
}

static long fill(long *row, PyObject *from, PyObject *to) {
    Py_ssize_t height = PyUnicode_GetLength(from), width = PyUnicode_GetLength(to);
    for (Py_ssize_t column = 0; column <= width; column++)
        row[column] = column;
    for (Py_ssize_t line = 1; line <= height; line++) {
        long corner = row[0];
        row[0] = line;
        for (Py_ssize_t column = 1; column <= width; column++) {
            int differ = PyUnicode_ReadChar(from, line - 1) != PyUnicode_ReadChar(to, column - 1);
            long cost = least(row[column] + 1, row[column - 1] + 1, corner + differ);
            corner = row[column];
            row[column] = cost;
        }
    }
    return row[width];
}

static PyObject *distance(PyObject *module, PyObject *words) {
    PyObject *from, *to;
    if (!PyArg_ParseTuple(words, "UU", &from, &to))
        return NULL;
    long *row = malloc(sizeof(long) * (size_t)(PyUnicode_GetLength(to) + 1));
    if (row == NULL)
        return PyErr_NoMemory();
    long result = fill(row, from, to);
    free(row);
    return PyLong_FromLong(result);
}

static PyMethodDef functions[] = {{"distance", distance, METH_VARARGS, "The edit distance of two words."}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "distance", NULL, -1, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_distance(void) {
    return PyModule_Create(&definition);
}
