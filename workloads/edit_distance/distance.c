// The edit distance of two words, for Python. docs/python.md makes it fast.
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdlib.h>

static long at(PyObject *rows, Py_ssize_t row, Py_ssize_t column) {
    return PyLong_AsLong(PyList_GetItem(PyList_GetItem(rows, row), column));
}

static void append(PyObject *list, PyObject *item) {
    PyList_Append(list, item);
    Py_DECREF(item);
}

static long least(long a, long b, long c) {
    long least = a < b ? a : b;
    return least < c ? least : c;
}

static long fill(PyObject *rows, PyObject *from, PyObject *to) {
    Py_ssize_t height = PyUnicode_GetLength(from), width = PyUnicode_GetLength(to);
    for (Py_ssize_t row = 0; row <= height; row++) {
        append(rows, PyList_New(0));
        for (Py_ssize_t column = 0; column <= width; column++) {
            long cost = row == 0 ? column : row;
            if (row > 0 && column > 0) {
                int differ = PyUnicode_ReadChar(from, row - 1) != PyUnicode_ReadChar(to, column - 1);
                cost = least(at(rows, row - 1, column) + 1, at(rows, row, column - 1) + 1,
                             at(rows, row - 1, column - 1) + differ);
            }
            append(PyList_GetItem(rows, row), PyLong_FromLong(cost));
        }
    }
    return at(rows, height, width);
}

static PyObject *distance(PyObject *module, PyObject *words) {
    PyObject *from, *to;
    if (!PyArg_ParseTuple(words, "UU", &from, &to))
        return NULL;
    PyObject *rows = PyList_New(0);
    long result = fill(rows, from, to);
    Py_DECREF(rows);
    return PyLong_FromLong(result);
}

static PyMethodDef functions[] = {{"distance", distance, METH_VARARGS, "The edit distance of two words."}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "distance", NULL, -1, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_distance(void) {
    return PyModule_Create(&definition);
}
