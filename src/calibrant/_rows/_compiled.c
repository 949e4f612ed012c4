/* The loops over rows, compiled: what NumPy does in several passes, in one.

   Every function here has a NumPy neighbour that is its reference and does its work where
   this module was not built; `compiled.py` says who calls what. Arrays come by the buffer
   protocol: contiguous, aligned, of native type (`take`), or the call is refused.

   The same numbers give the same bits in every process on a machine: sums run over a fixed
   number of lanes, and exp and log are the polynomials below. A loop over lanes is written
   so that compilers turn it into vector instructions, for several kinds of processors where
   the loader can choose (CLONES). Products are fused with sums only in the loops over
   matrices (`_compiled_real.h`), local fits and kernel sums (`_compiled_sums.h`), where the
   processor can. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef _MSC_VER
#pragma fp_contract(off)
#define INLINE static __forceinline
#define RESTRICT __restrict
#define PREFETCH(address) ((void)(address))
#else
#ifdef __clang__
#pragma clang fp contract(off)
#endif
#define INLINE static inline __attribute__((always_inline))
#define RESTRICT __restrict__
#define PREFETCH(address) __builtin_prefetch(address)
#endif

#if defined(__GLIBC__) && defined(__x86_64__) && !defined(ONE_TARGET)
#define CLONES                                                                           \
    __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CLONES
#endif

typedef Py_ssize_t Size;

/* -- exp and log without branches ------------------------------------------------------

   exp(x) = 2^n exp(r), n the whole number nearest to x / log 2. Adding 1.5 * 2^23 (2^52)
   rounds to that number and leaves it in the lowest bits, to be shifted into the exponent.
   log 2 is split in two so that n times its first part is exact. */

INLINE int32_t bits_f(float x) { int32_t i; memcpy(&i, &x, 4); return i; }
INLINE int64_t bits_d(double x) { int64_t i; memcpy(&i, &x, 8); return i; }
INLINE float float_of(uint32_t i) { float x; memcpy(&x, &i, 4); return x; }
INLINE double double_of(uint64_t i) { double x; memcpy(&x, &i, 8); return x; }

/* e^x for x <= 0 to 2 units in the last place; 0 where it underflows, or x is NaN. */
INLINE float exp_f(float x)
{
    float t = x * 1.44269504f + 12582912.0f, n = t - 12582912.0f;
    float r = (x - n * 0.693145751953125f) - n * 1.42860682e-06f;
    float p = 0.008290229365229607f;
    p = p * r + 0.04189838841557503f;
    p = p * r + 0.16667640209197998f;
    p = p * r + 0.49999144673347473f;
    p = p * r + 0.9999997019767761f;
    p = p * r + 1.0f;
    p = float_of((uint32_t)bits_f(p) + ((uint32_t)bits_f(t) << 23));
    return x > -87.3f ? p : 0.0f;
}

INLINE double exp_d(double x)
{
    double t = x * 1.4426950408889634 + 6755399441055744.0, n = t - 6755399441055744.0;
    double r = (x - n * 0.6931471803691238) - n * 1.9082149292705877e-10;
    double p = 1.0 / 479001600;
    p = p * r + 1.0 / 39916800;
    p = p * r + 1.0 / 3628800;
    p = p * r + 1.0 / 362880;
    p = p * r + 1.0 / 40320;
    p = p * r + 1.0 / 5040;
    p = p * r + 1.0 / 720;
    p = p * r + 1.0 / 120;
    p = p * r + 1.0 / 24;
    p = p * r + 1.0 / 6;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    p = double_of((uint64_t)bits_d(p) + ((uint64_t)bits_d(t) << 52));
    return x > -708.0 ? p : 0.0;
}

/* The log of one + x, normal numbers, one being 0 or 1; as exact as log1p.
   Adding 2^52 turns the small whole number in the lowest bits into a double. */
INLINE double log_sum(double one, double x)
{
    const uint64_t half_root = 0x3FE6A09E667F3BCDu;
    uint64_t power = ((uint64_t)bits_d(one + x) - half_root + (1024ull << 52)) >> 52;
    double scale = double_of((2047 - power) << 52);
    double f = x * scale + (one * scale - 1.0); /* in [-0.3, 0.42] */
    double s = f / (2.0 + f), q = s * s;
    double p = 1.0 / 19; /* log(1 + f) = 2 artanh(s) = 2s (1 + q/3 + q^2/5 + ...) */
    p = p * q + 1.0 / 17;
    p = p * q + 1.0 / 15;
    p = p * q + 1.0 / 13;
    p = p * q + 1.0 / 11;
    p = p * q + 1.0 / 9;
    p = p * q + 1.0 / 7;
    p = p * q + 1.0 / 5;
    p = p * q + 1.0 / 3;
    power |= 0x4330000000000000u;
    double whole = double_of(power) - 4503599627371520.0; /* 2^52 + 1024 */
    return 2 * s + 2 * s * q * p + whole * 0.6931471805599453;
}

INLINE double least(double x, double y) { return x < y ? x : y; }
INLINE double most(double x, double y) { return x > y ? x : y; }
INLINE double finite_or_0(double x) { return fabs(x) < INFINITY ? x : 0.0; }

/* -- what comes from Python ------------------------------------------------------------ */

#define MOST_ARRAYS 40

typedef struct {
    int count;
    Py_buffer view[MOST_ARRAYS];
} Arrays;

static void release(Arrays *arrays)
{
    for (int i = 0; i < arrays->count; i++)
        if (arrays->view[i].obj) PyBuffer_Release(&arrays->view[i]);
}

static int is_of(const Py_buffer *view, char kind)
{
    const char *format = view->format ? view->format : "B";
    if (!format[0] || format[1]) return 0;
    switch (kind) {
    case 'd': return format[0] == 'd';
    case 'r': return format[0] == 'f' || format[0] == 'd';
    case 'i': return strchr("il", format[0]) && view->itemsize == 4;
    case 'q': return strchr("lq", format[0]) && view->itemsize == 8;
    default: return strchr("?bB", format[0]) != NULL;
    }
}

static int take_one(PyObject *given, Py_buffer *view, char letter)
{
    int writes = letter < 'a';
    char kind = (char)(writes ? letter + ('a' - 'A') : letter);
    int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (writes ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(given, view, flags)) {
        view->obj = NULL;
        return -1;
    }
    if (is_of(view, kind) && (uintptr_t)view->buf % (size_t)view->itemsize == 0) return 0;
    PyErr_Format(PyExc_TypeError, "an array has the wrong type or place for %c", letter);
    return -1;
}

/* The arguments from `first` on as arrays, which `release` gives back. Each has a letter:
   d float64, r that or float32, i int32, q int64, b bytes; a capital letter is written to,
   one after "?" may be None, and the one before a final "+" stands for all that follow. */
static int take(PyObject *args, Size first, const char *letters, Arrays *arrays)
{
    Size given = PyTuple_Size(args);
    arrays->count = 0;
    if (PyErr_Occurred()) return -1; /* of what came before them */
    for (Size i = first; i < given && *letters && arrays->count < MOST_ARRAYS; i++) {
        int optional = *letters == '?';
        Py_buffer *view = &arrays->view[arrays->count++];
        PyObject *one = PyTuple_GetItem(args, i);
        memset(view, 0, sizeof *view);
        if (!(optional && one == Py_None) && take_one(one, view, letters[optional]))
            return -1;
        if (letters[1] != '+') letters += optional + 1;
    }
    if (first + arrays->count == given && (!*letters || letters[1] == '+')) return 0;
    PyErr_SetString(PyExc_TypeError, "wrong number of arrays");
    return -1;
}

#define AT(type, number) ((type *)arrays.view[number].buf)
#define COUNT(number)                                                                    \
    (arrays.view[number].obj ? arrays.view[number].len / arrays.view[number].itemsize : 0)
#define IS_FLOAT(number) (arrays.view[number].itemsize == 4)

static PyObject *leave(Arrays *arrays, const char *wrong)
{
    release(arrays);
    if (wrong && !PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, wrong);
    if (wrong) return NULL;
    Py_RETURN_NONE;
}

/* -- what is done in either precision -------------------------------------------------- */

#define BLOCK 128 /* rows reduced together */
#define FEW_CLASSES 32 /* up to which rows are transposed, so that vectors are full */
#define CHUNK 4096 /* entries summed in the precision of the scores */
#define TINY 1e-290

/* Of a block of rows: the place of the largest entry, that entry, the one of the label, the
   sums of the others and of their squares, how many are not below the largest (as that
   itself and NaN), and the least probability; then the outputs. */
typedef struct {
    int32_t best[BLOCK];
    double top[BLOCK], own[BLOCK], rest[BLOCK], squares[BLOCK], odd[BLOCK], low[BLOCK];
    double hit[BLOCK], confidence[BLOCK], log_odds[BLOCK], brier[BLOCK], log[BLOCK];
} Block;

/* As `losses.hard_losses_of_logits`; further entries as large as the top add 1. */
CLONES static void finish_logits(Block *RESTRICT b)
{
    for (int i = 0; i < BLOCK; i++) {
        double ties = b->odd[i] - 1.0, gap = b->top[i] - b->own[i];
        double rest = b->rest[i] + ties, squares = b->squares[i] + ties;
        double e_y = exp_d(-gap), scale = 1.0 / (1.0 + rest);
        double missing = (b->hit[i] == 1.0 ? rest : 1.0 + rest - e_y) * scale;
        double wrong = 1.0 + most(squares - e_y * e_y, 0.0);
        double others = b->hit[i] == 1.0 ? squares : wrong;
        b->rest[i] = rest;
        b->confidence[i] = scale;
        b->log_odds[i] = -log_sum(0.0, rest);
        b->brier[i] = missing * missing + others * scale * scale;
        b->log[i] = log_sum(1.0, rest) + gap;
    }
}

/* As `losses.hard_losses_of_probs`. */
CLONES static void finish_probs(Block *RESTRICT b)
{
    for (int i = 0; i < BLOCK; i++) {
        double top = b->top[i], p_y = b->own[i], ties = (b->odd[i] - 1.0) * top;
        double rest = b->rest[i] + ties, squares = b->squares[i] + ties * top;
        double wrong = top * top + most(squares - p_y * p_y, 0.0);
        double others = b->hit[i] == 1.0 ? squares : wrong;
        b->rest[i] = rest;
        b->confidence[i] = least(top, 1.0);
        b->log_odds[i] = log_sum(0.0, top) - log_sum(0.0, rest);
        b->brier[i] = (1.0 - p_y) * (1.0 - p_y) + others;
        b->log[i] = most(-log_sum(0.0, p_y), 0.0);
    }
}

#if defined(__clang__)
#pragma clang fp contract(fast)
#elif defined(__GNUC__)
#pragma GCC push_options
#pragma GCC optimize("fp-contract=fast")
#endif
#define REAL float
#define EXP exp_f
#define NAME(name) name##_f
#include "_compiled_real.h"
#undef REAL
#undef EXP
#undef NAME
#define REAL double
#define EXP exp_d
#define NAME(name) name##_d
#include "_compiled_real.h"

#if defined(__clang__)
#pragma clang fp contract(off)
#elif defined(__GNUC__)
#pragma GCC pop_options
#endif

static int within_reach(const int64_t *labels, Size n, Size k)
{
    int64_t outside = 0;
    for (Size i = 0; i < n; i++) outside |= labels[i] < 0 || labels[i] >= k;
    return !outside;
}

/* reduce(logits, tolerance, k, scores, labels, confidence, log_odds, hit, brier, log,
          predicted, offends) */
static PyObject *reduce(PyObject *self, PyObject *args)
{
    Arrays arrays;
    int logits = PyLong_AsSsize_t(PyTuple_GetItem(args, 0)) != 0;
    double tolerance = PyFloat_AsDouble(PyTuple_GetItem(args, 1));
    Size k = PyLong_AsSsize_t(PyTuple_GetItem(args, 2));
    if (take(args, 3, "rqDDDDDIB", &arrays)) return leave(&arrays, "arrays");
    Size n = COUNT(1);
    int fits = k > 0 && COUNT(0) == n * k && COUNT(7) == n && COUNT(8) == n;
    double *out[5];
    for (int i = 0; i < 5; i++) {
        fits &= COUNT(2 + i) == n;
        out[i] = AT(double, 2 + i);
    }
    if (!fits) return leave(&arrays, "arrays do not fit each other");
    if (!within_reach(AT(int64_t, 1), n, k)) return leave(&arrays, "a label is no column");
    Py_BEGIN_ALLOW_THREADS
    if (IS_FLOAT(0))
        reduce_f(logits, tolerance, AT(float, 0), AT(int64_t, 1), n, k, out, AT(int32_t, 7),
                 AT(unsigned char, 8));
    else
        reduce_d(logits, tolerance, AT(double, 0), AT(int64_t, 1), n, k, out,
                 AT(int32_t, 7), AT(unsigned char, 8));
    Py_END_ALLOW_THREADS
    return leave(&arrays, NULL);
}

/* bend(beta, k, scores, labels, value, slope, curvature, own) */
static PyObject *bend(PyObject *self, PyObject *args)
{
    Arrays arrays;
    double beta = PyFloat_AsDouble(PyTuple_GetItem(args, 0));
    Size k = PyLong_AsSsize_t(PyTuple_GetItem(args, 1));
    if (take(args, 2, "rqDDDD", &arrays)) return leave(&arrays, "arrays");
    Size n = COUNT(1);
    int fits = k > 0 && COUNT(0) == n * k;
    for (int i = 2; i < 6; i++) fits &= COUNT(i) == n;
    if (!fits) return leave(&arrays, "arrays do not fit each other");
    if (!within_reach(AT(int64_t, 1), n, k)) return leave(&arrays, "a label is no column");
    double *out[4] = {AT(double, 2), AT(double, 3), AT(double, 4), AT(double, 5)};
    Py_BEGIN_ALLOW_THREADS
    if (IS_FLOAT(0))
        bend_rows_f(beta, AT(float, 0), AT(int64_t, 1), n, k, out[0], out[1], out[2], out[3]);
    else
        bend_rows_d(beta, AT(double, 0), AT(int64_t, 1), n, k, out[0], out[1], out[2],
                    out[3]);
    Py_END_ALLOW_THREADS
    return leave(&arrays, NULL);
}

/* replace(k, probs, edges, values, absent, out) */
static PyObject *replace(PyObject *self, PyObject *args)
{
    Arrays arrays;
    Size k = PyLong_AsSsize_t(PyTuple_GetItem(args, 0));
    if (take(args, 1, "rdrqR", &arrays)) return leave(&arrays, "arrays");
    Size size = COUNT(0), bins = COUNT(1) - 1, absents = COUNT(3);
    int same = IS_FLOAT(0) == IS_FLOAT(2) && IS_FLOAT(0) == IS_FLOAT(4);
    int fits = k > 0 && bins > 0 && size % k == 0 && COUNT(2) == bins * k;
    if (!(same && fits && COUNT(4) == size && within_reach(AT(int64_t, 3), absents, k)))
        return leave(&arrays, "arrays do not fit each other");
    void *fresh = malloc((size_t)k * sizeof(double));
    if (!fresh) {
        PyErr_NoMemory();
        return leave(&arrays, "memory");
    }
    Py_BEGIN_ALLOW_THREADS
    if (IS_FLOAT(0))
        replace_f(AT(float, 0), size / k, k, AT(double, 1), bins, AT(float, 2),
                  AT(int64_t, 3), absents, (float *)fresh, AT(float, 4));
    else
        replace_d(AT(double, 0), size / k, k, AT(double, 1), bins, AT(double, 2),
                  AT(int64_t, 3), absents, (double *)fresh, AT(double, 4));
    Py_END_ALLOW_THREADS
    free(fresh);
    return leave(&arrays, NULL);
}

/* tally(k, probs, edges, weight or None, labels, counts, hits): adds to counts and hits */
static PyObject *tally(PyObject *self, PyObject *args)
{
    Arrays arrays;
    Size k = PyLong_AsSsize_t(PyTuple_GetItem(args, 0));
    if (take(args, 1, "rd?dqDD", &arrays)) return leave(&arrays, "arrays");
    Size n = COUNT(3), bins = COUNT(1) - 1;
    const double *weight = AT(double, 2);
    int fits = k > 0 && bins > 0 && COUNT(0) == n * k && (!weight || COUNT(2) == n);
    if (!(fits && COUNT(4) == k * bins && COUNT(5) == k * bins &&
          within_reach(AT(int64_t, 3), n, k)))
        return leave(&arrays, "arrays do not fit each other");
    double *first = (double *)calloc((size_t)k, sizeof(double));
    if (!first) {
        PyErr_NoMemory();
        return leave(&arrays, "memory");
    }
    Py_BEGIN_ALLOW_THREADS
    if (IS_FLOAT(0))
        tally_f(AT(float, 0), n, k, AT(double, 1), bins, weight, AT(int64_t, 3), first,
                AT(double, 4), AT(double, 5));
    else
        tally_d(AT(double, 0), n, k, AT(double, 1), bins, weight, AT(int64_t, 3), first,
                AT(double, 4), AT(double, 5));
    Py_END_ALLOW_THREADS
    free(first);
    return leave(&arrays, NULL);
}

/* add_up(k, probs, sums) -> whether an entry is negative or NaN */
static PyObject *add_up(PyObject *self, PyObject *args)
{
    Arrays arrays;
    Size k = PyLong_AsSsize_t(PyTuple_GetItem(args, 0));
    if (take(args, 1, "rD", &arrays)) return leave(&arrays, "arrays");
    Size n = COUNT(1);
    int wrong = 0;
    if (!(k > 0 && COUNT(0) == n * k)) return leave(&arrays, "arrays do not fit each other");
    Py_BEGIN_ALLOW_THREADS
    wrong = IS_FLOAT(0) ? add_rows_up_f(AT(float, 0), n, k, AT(double, 1))
                        : add_rows_up_d(AT(double, 0), n, k, AT(double, 1));
    Py_END_ALLOW_THREADS
    release(&arrays);
    return PyBool_FromLong(wrong);
}

/* Whether starts go from 0 to `end` without falling: one more than there are classes. */
static int are_starts(const int64_t *starts, Size k, Size end)
{
    int fine = starts[0] == 0 && starts[k] == end;
    for (Size c = 0; c < k; c++) fine &= starts[c] <= starts[c + 1];
    return fine;
}

/* follow(k, starts, segments, lowest, flat, probs, out) */
static PyObject *follow(PyObject *self, PyObject *args)
{
    Arrays arrays;
    Size k = PyLong_AsSsize_t(PyTuple_GetItem(args, 0));
    if (take(args, 1, "qdrrrR", &arrays)) return leave(&arrays, "arrays");
    Size size = COUNT(4);
    int fits = k > 0 && size % k == 0 && COUNT(0) == k + 1 && COUNT(1) % 4 == 0;
    for (int i = 2; i < 6; i++) fits &= IS_FLOAT(i) == IS_FLOAT(4);
    if (!(fits && COUNT(2) == k && COUNT(3) == k && COUNT(5) == size &&
          are_starts(AT(int64_t, 0), k, COUNT(1) / 4)))
        return leave(&arrays, "arrays do not fit each other");
    Py_BEGIN_ALLOW_THREADS
    if (IS_FLOAT(4))
        follow_f(AT(float, 4), size / k, k, AT(int64_t, 0), AT(double, 1), AT(float, 2),
                 AT(float, 3), AT(float, 5));
    else
        follow_d(AT(double, 4), size / k, k, AT(int64_t, 0), AT(double, 1), AT(double, 2),
                 AT(double, 3), AT(double, 5));
    Py_END_ALLOW_THREADS
    return leave(&arrays, NULL);
}

/* stretches(k, probs, weights, starts, marks, first, below_weight, below_low, below_high,
             weight, low, high) */
static PyObject *stretches(PyObject *self, PyObject *args)
{
    Arrays arrays;
    Size k = PyLong_AsSsize_t(PyTuple_GetItem(args, 0));
    if (take(args, 1, "rdqrrDRRDRR", &arrays)) return leave(&arrays, "arrays");
    static const int reals[] = {3, 4, 6, 7, 9, 10};
    int fits = k > 0 && COUNT(0) == k * COUNT(1) && COUNT(2) == k + 1 && COUNT(4) == k;
    for (int i = 0; i < 6; i++) fits &= IS_FLOAT(reals[i]) == IS_FLOAT(0);
    for (int i = 5; i < 8; i++) fits &= COUNT(i) == k;
    for (int i = 8; i < 11; i++) fits &= COUNT(i) == 2 * COUNT(3) + k;
    if (!(fits && are_starts(AT(int64_t, 2), k, COUNT(3))))
        return leave(&arrays, "arrays do not fit each other");
    Size n = COUNT(1);
    Py_BEGIN_ALLOW_THREADS
    if (IS_FLOAT(0))
        stretches_f(AT(float, 0), n, k, AT(double, 1), AT(int64_t, 2), AT(float, 3),
                    AT(float, 4), AT(double, 5), AT(float, 6), AT(float, 7), AT(double, 8),
                    AT(float, 9), AT(float, 10));
    else
        stretches_d(AT(double, 0), n, k, AT(double, 1), AT(int64_t, 2), AT(double, 3),
                    AT(double, 4), AT(double, 5), AT(double, 6), AT(double, 7),
                    AT(double, 8), AT(double, 9), AT(double, 10));
    Py_END_ALLOW_THREADS
    return leave(&arrays, NULL);
}

/* -- cells of confidences: `grid` says what they are ------------------------------------- */

#define ORDER 5
#define LOG_ODDS_CELLS 2000
#define LOG_ODDS_REACH 20.0

INLINE double between(double x, double low, double high)
{
    x = x < high ? x : high; /* NaN becomes an end */
    return x > low ? x : low;
}

/* As `grid.cell_of`, a whole number. */
INLINE double cell_of(double h, double cells)
{
    double cell = ceil(h * cells) - 1.0;
    cell -= h <= cell / cells ? 1.0 : 0.0;
    cell += h > (cell + 1.0) / cells ? 1.0 : 0.0;
    return between(cell, 0.0, cells - 1.0);
}

/* As `grid.log_odds_cell`. */
INLINE int32_t inner_log_odds_cell(double z)
{
    double scaled = (z + LOG_ODDS_REACH) * (LOG_ODDS_CELLS / (2 * LOG_ODDS_REACH));
    return (int32_t)between(scaled, 0.0, LOG_ODDS_CELLS - 1.0) + 1;
}

INLINE int32_t log_odds_cell(double z)
{
    if (z == INFINITY) return LOG_ODDS_CELLS + 1;
    return z == -INFINITY ? 0 : inner_log_odds_cell(z);
}

/* -- moments of the residual, for SmoothECE ---------------------------------------------- */

INLINE void add_residual(const double *h, const double *hit, const double *weight, Size n,
                         double *moments, Size cells, int order)
{
    for (Size i = 0; i < n; i++) {
        double place = h[i] * (double)cells;
        Size cell = (Size)between(place, 0.0, (double)cells - 1.0);
        double t = place - (double)cell - 0.5, value = hit[i] - h[i];
        double *sums = moments + cell * order;
        if (weight) value *= weight[i];
        for (int j = 0; j < order; j++) {
            sums[j] += value;
            value *= t;
        }
    }
}

/* residual(order, h, hit, weight or None, moments): adds to moments by cell, then order */
static PyObject *residual(PyObject *self, PyObject *args)
{
    Arrays arrays;
    Size order = PyLong_AsSsize_t(PyTuple_GetItem(args, 0));
    if (take(args, 1, "dd?dD", &arrays)) return leave(&arrays, "arrays");
    Size n = COUNT(0), cells = order > 0 ? COUNT(3) / order : 0;
    int weighted = arrays.view[2].obj != NULL;
    if (!(cells > 0 && COUNT(3) == order * cells && COUNT(1) == n &&
          (!weighted || COUNT(2) == n)))
        return leave(&arrays, "arrays do not fit each other");
    const double *h = AT(double, 0), *hit = AT(double, 1), *weight = AT(double, 2);
    Py_BEGIN_ALLOW_THREADS
    if (order == 3) add_residual(h, hit, weight, n, AT(double, 3), cells, 3);
    else add_residual(h, hit, weight, n, AT(double, 3), cells, (int)order);
    Py_END_ALLOW_THREADS
    return leave(&arrays, NULL);
}

/* -- every sum of a row added in one go: `cells.Block` ----------------------------------- */

typedef struct { /* columns of rows; values and lost are as many as their numbers say */
    const double *h, *own, *hit, *log_odds, *weight, *value[MOST_ARRAYS];
    const unsigned char *lost[MOST_ARRAYS];
    Size n;
    int values, losts, fields;
} Columns;

INLINE void add_powers(double *sums, double value, double t)
{
    for (int j = 0; j < ORDER; j++) {
        sums[j] += value;
        value *= t;
    }
}

static void add_row(const Columns *rows, Size i, double t, double *sums)
{
    double w = rows->weight ? rows->weight[i] : 1.0;
    double h = rows->h[i], a = rows->hit[i], z = rows->log_odds[i], r = a - h;
    add_powers(sums, w, t);
    for (int c = 0; c < rows->values; c++) {
        sums += ORDER;
        add_powers(sums, rows->value[c][i], t);
    }
    sums += ORDER;
    sums[0] += w * (a * a);
    sums[1] += w * r;
    sums[2] += w * (r * r);
    sums[3] += w * (r * r * r);
    sums[4] += w * (r * r * (r * r));
    sums[5] += w * h;
    sums[6] += w * between(z, -LOG_ODDS_REACH, LOG_ODDS_REACH);
    sums[7] += fabs(z) < INFINITY ? w * z : 0.0;
    for (int c = 0; c < rows->losts; c++) sums[8 + c] += rows->lost[c][i] ? w : 0.0;
}

#define TURNED 256 /* cells that join the table at a time, for the sake of the cache */

/* Cells that hold rows get a place in `part`, a cell's sums together; `place` says which. */
static void join(double *table, Size steps, const int32_t *place, const double *part,
                 Size fields)
{
    int32_t cell[TURNED];
    for (Size first = 0; first < steps; first += TURNED) {
        Size end = first + TURNED < steps ? first + TURNED : steps, count = 0;
        for (Size s = first; s < end; s++)
            if (place[s] >= 0) cell[count++] = (int32_t)s;
        for (Size f = 0; f < fields; f++)
            for (Size j = 0; j < count; j++)
                table[f * steps + cell[j]] += part[place[cell[j]] * fields + f];
    }
}

static void add_columns(const Columns *rows, double cells, double *table, Size steps,
                        double *low, double *high, int32_t *place, double *part)
{
    int32_t used = 0;
    memset(place, -1, (size_t)steps * sizeof(int32_t));
    for (Size i = 0; i < rows->n; i++) {
        double h = rows->h[i], inner = cell_of(h, cells);
        Size cell = (Size)inner + log_odds_cell(rows->own[i]);
        if (place[cell] < 0) {
            place[cell] = used++;
            memset(part + (Size)place[cell] * rows->fields, 0,
                   (size_t)rows->fields * sizeof(double));
        }
        add_row(rows, i, h * cells - inner - 0.5, part + (Size)place[cell] * rows->fields);
        if (low) low[cell] = least(h, low[cell]);
        if (high) high[cell] = most(h, high[cell]);
    }
    join(table, steps, place, part, rows->fields);
}

/* add_rows(cells, lost, table, low or None, high or None, place, part, weight or None, h,
            own, hit, log_odds, *values), `lost` being a tuple of masks */
static PyObject *add_rows(PyObject *self, PyObject *args)
{
    Arrays arrays, masks;
    Size cells = PyLong_AsSsize_t(PyTuple_GetItem(args, 0));
    PyObject *lost = PyTuple_GetItem(args, 1);
    if (!lost || take(lost, 0, "b+", &masks)) return lost ? leave(&masks, "arrays") : NULL;
    if (take(args, 2, "D?D?DID?dddddd+", &arrays)) {
        release(&masks);
        return leave(&arrays, "arrays");
    }
    Size steps = cells + LOG_ODDS_CELLS + 1, n = COUNT(6);
    Columns rows = {AT(double, 6), AT(double, 7), AT(double, 8), AT(double, 9),
                    AT(double, 5), {0}, {0}, n, arrays.count - 10, masks.count, 0};
    rows.fields = (1 + rows.values) * ORDER + 8 + rows.losts;
    Size slots = n < steps ? n : steps, bounds = COUNT(1);
    int fits = cells > 0 && COUNT(0) % steps == 0 && COUNT(0) / steps >= rows.fields;
    fits &= (!bounds || bounds == steps) && COUNT(2) == bounds && COUNT(3) == steps;
    fits &= COUNT(4) >= slots * rows.fields && (!rows.weight || COUNT(5) == n);
    for (int i = 7; i < arrays.count; i++) fits &= COUNT(i) == n;
    for (int i = 0; i < rows.values; i++) rows.value[i] = AT(double, 10 + i);
    for (int i = 0; i < rows.losts; i++) {
        fits &= masks.view[i].len == n;
        rows.lost[i] = (const unsigned char *)masks.view[i].buf;
    }
    if (fits) {
        Py_BEGIN_ALLOW_THREADS
        add_columns(&rows, (double)cells, AT(double, 0), steps, AT(double, 1),
                    AT(double, 2), AT(int32_t, 3), AT(double, 4));
        Py_END_ALLOW_THREADS
    }
    release(&masks);
    return leave(&arrays, fits ? NULL : "arrays do not fit each other");
}

/* -- sums by cell and hit: what frames do in a query (`query.Tally`) --------------------- */

#define CELLS 9600
#define STEPS (CELLS + LOG_ODDS_CELLS + 1)
#define PAIRS 256 /* rows whose cells are found together */
#define SUMS_OF_PAIRS 18
#define SUMS_OF_TOP 27

typedef struct {
    int32_t cell[PAIRS], inner[PAIRS];
    double t[PAIRS], z[PAIRS], loss[PAIRS];
} Places;

/* As `grid.cell_number` and `grid.locate`, and log-odds. */
CLONES static void find_cells(const double *RESTRICT h, Size n, Places *RESTRICT to)
{
    for (Size i = 0; i < n; i++) {
        double some = h[i] > TINY && h[i] < 1.0 ? h[i] : 0.5;
        double inner = cell_of(h[i], CELLS);
        to->z[i] = log_sum(0.0, some / (1.0 - some));
        to->inner[i] = (int32_t)inner;
        to->t[i] = h[i] * CELLS - inner - 0.5;
        to->cell[i] = to->inner[i] + inner_log_odds_cell(to->z[i]);
    }
}

/* Certain rows have cells at the ends and log-odds 0; those of nearly certain ones, beyond
   the grid, are kept apart after all others. */
static void mend_ends(const double *h, Size n, Places *to)
{
    for (Size i = 0; i < n; i++) {
        if (h[i] > TINY && h[i] < 1.0 && fabs(to->z[i]) < LOG_ODDS_REACH) continue;
        if (h[i] == 0.0 || h[i] == 1.0) {
            to->cell[i] = h[i] == 0.0 ? 0 : STEPS - 1;
            to->z[i] = 0.0;
            continue;
        }
        if (h[i] <= TINY) to->z[i] = log(h[i]);
        to->cell[i] = to->z[i] < 0.0 ? STEPS : STEPS + 1;
    }
}

INLINE void add_range(double *sums, Size width, double h)
{
    sums[width - 2] = least(h, sums[width - 2]);
    sums[width - 1] = most(h, sums[width - 1]);
}

INLINE void add_loss(double *sums, double t, double z, double loss)
{
    double t2 = t * t, t3 = t2 * t, t4 = t2 * t2;
    double terms[13] = {1.0, t, t2, t3, t4, t4 * t, loss * loss, z, loss, loss * t,
                        loss * t2, loss * t3, loss * t4};
    for (int j = 0; j < 13; j++) sums[j] += terms[j];
}

INLINE void add_z(double *sums, double t, double z)
{
    double t2 = t * t;
    double terms[4] = {z * t, z * t2, z * (t2 * t), z * (t2 * t2)};
    for (int j = 0; j < 4; j++) sums[j] += terms[j];
}

/* The log loss of a pair, 0 where it is infinite. */
INLINE double pair_loss(double h, double hit)
{
    double right = hit == 1.0 ? h : 1.0 - h;
    if (right > TINY) return -log_sum(0.0, right);
    return right > 0.0 ? -log(right) : 0.0;
}

static Size bad_pairs(const double *h, const double *hit, const double *loss, Size n)
{
    Size bad = 0;
    for (Size i = 0; i < n; i++)
        bad += !((h[i] >= 0) & (h[i] <= 1) & ((hit[i] == 0) | (hit[i] == 1)));
    for (Size i = 0; loss && i < n; i++) bad += !((loss[i] >= 0) & (loss[i] < INFINITY));
    return bad;
}

static void sum_pairs(const double *h, const double *hit, const double *loss, Size n,
                      double *table, Size width)
{
    Places at;
    for (Size first = 0; first < n; first += PAIRS) {
        Size size = n - first < PAIRS ? n - first : PAIRS;
        find_cells(h + first, size, &at);
        mend_ends(h + first, size, &at);
        for (Size i = 0; i < size; i++) {
            double x = h[first + i], a = hit[first + i], t = at.t[i];
            double *sums = table + (2 * at.cell[i] + (a == 1.0)) * width;
            add_range(sums, width, x);
            add_loss(sums, t, at.z[i], loss ? loss[first + i] : pair_loss(x, a));
            if (loss) continue;
            sums[13] += t * t * (t * t) * (t * t);
            add_z(sums + 14, t, at.z[i]);
        }
    }
}

/* add_pairs(width, table, h, hit, loss or None) -> whether all follow the rules; if not,
   none is added */
static PyObject *add_pairs(PyObject *self, PyObject *args)
{
    Arrays arrays;
    Size width = PyLong_AsSsize_t(PyTuple_GetItem(args, 0)), bad = 0;
    if (take(args, 1, "Ddd?d", &arrays)) return leave(&arrays, "arrays");
    Size n = COUNT(1);
    int given = arrays.view[3].obj != NULL;
    if (!(width >= SUMS_OF_PAIRS + 2 - 5 * given && COUNT(0) == 2 * (STEPS + 2) * width &&
          COUNT(2) == n && (!given || COUNT(3) == n)))
        return leave(&arrays, "arrays do not fit each other");
    const double *h = AT(double, 1), *hit = AT(double, 2), *loss = AT(double, 3);
    Py_BEGIN_ALLOW_THREADS
    bad = bad_pairs(h, hit, loss, n);
    if (!bad) sum_pairs(h, hit, loss, n, AT(double, 0), width);
    Py_END_ALLOW_THREADS
    release(&arrays);
    return PyBool_FromLong(!bad);
}

/* The log loss of each pair, softplus(-z) or softplus(z); 0 where z is infinite. */
CLONES static void unit_losses(const double *RESTRICT z, const double *RESTRICT hit, Size n,
                               double *RESTRICT losses)
{
    for (Size i = 0; i < n; i++) {
        double size = fabs(z[i]), small = log_sum(1.0, exp_d(-size));
        int right = (hit[i] == 1.0) == (z[i] >= 0.0);
        losses[i] = size < INFINITY ? (right ? small : small + size) : 0.0;
    }
}

typedef struct { /* what `reduce` gives */
    const double *confidence, *log_odds, *hit, *brier, *log;
    const int32_t *predicted;
} Reduced;

static void add_one_top(double *sums, const Reduced *row, Size i, double t, double unit)
{
    double z = finite_or_0(row->log_odds[i]), loss = finite_or_0(row->log[i]), t2 = t * t;
    double terms[10] = {loss, loss * t, loss * t2, loss * (t2 * t), loss * (t2 * t2),
                        loss * loss, row->log[i] == INFINITY, unit,
                        row->log_odds[i] == INFINITY,
                        between(z, -LOG_ODDS_REACH, LOG_ODDS_REACH)};
    add_loss(sums, t, z, row->brier[i]);
    for (int j = 0; j < 10; j++) sums[13 + j] += terms[j];
    add_z(sums + 23, t, z);
}

static void sum_top(const Reduced *row, Size n, double *table, Size width, double *within,
                    Size bins)
{
    Places at;
    for (Size first = 0; first < n; first += PAIRS) {
        Size size = n - first < PAIRS ? n - first : PAIRS;
        find_cells(row->confidence + first, size, &at);
        mend_ends(row->confidence + first, size, &at);
        unit_losses(row->log_odds + first, row->hit + first, size, at.loss);
        for (Size i = 0; i < size; i++) {
            Size j = first + i, bin = at.inner[i] / (CELLS / bins);
            double *sums = table + (2 * at.cell[i] + (row->hit[j] == 1.0)) * width;
            add_range(sums, width, row->confidence[j]);
            add_one_top(sums, row, j, at.t[i], at.loss[i]);
            within[row->predicted[j] * bins + bin] += row->hit[j] - row->confidence[j];
        }
    }
}

/* add_top(width, bins, table, within, confidence, log_odds, hit, brier, log, predicted) */
static PyObject *add_top(PyObject *self, PyObject *args)
{
    Arrays arrays;
    Size width = PyLong_AsSsize_t(PyTuple_GetItem(args, 0));
    Size bins = PyLong_AsSsize_t(PyTuple_GetItem(args, 1));
    if (take(args, 2, "DDdddddi", &arrays)) return leave(&arrays, "arrays");
    Size n = COUNT(2);
    int fits = width >= SUMS_OF_TOP + 2 && COUNT(0) == 2 * (STEPS + 2) * width;
    fits &= bins > 0 && CELLS % bins == 0 && COUNT(1) % bins == 0;
    for (int i = 3; i < 8; i++) fits &= COUNT(i) == n;
    Reduced row = {AT(double, 2), AT(double, 3), AT(double, 4), AT(double, 5),
                   AT(double, 6), AT(int32_t, 7)};
    for (Size i = 0; fits && i < n; i++)
        fits &= row.predicted[i] >= 0 && row.predicted[i] < COUNT(1) / bins;
    if (!fits) return leave(&arrays, "arrays do not fit each other");
    Py_BEGIN_ALLOW_THREADS
    sum_top(&row, n, AT(double, 0), width, AT(double, 1), bins);
    Py_END_ALLOW_THREADS
    return leave(&arrays, NULL);
}

/* -- local Platt scaling: `platt.fit`, node by node over the cells it can see ------------ */

#if defined(__clang__)
#pragma clang fp contract(fast)
#elif defined(__GNUC__)
#pragma GCC push_options
#pragma GCC optimize("fp-contract=fast")
#endif

#define SEEN 10.6 /* widths beyond which a kernel weighs less than 1e-24 of its peak */
#define WIDE 32

typedef struct { /* cells as seen from a node, padded with nothing to whole lanes */
    double *z, *t, *w, *a, *q; /* log-odds, offset, K weight, K hits, K^2 squared weight */
    Size count;
} View;

typedef struct {
    double g0, g1, j00, j01, j11;
} Slope;

/* Gradient and information of shift d0 and slope d1, cells weighing w. */
CLONES static void slope_at(const View *view, const double *RESTRICT w, double d0, double d1,
                            Slope *to)
{
    double lane[5][WIDE] = {{0.0}}, sums[5] = {0.0};
    for (Size first = 0; first < view->count; first += WIDE) {
        const double *z = view->z + first, *t = view->t + first, *a = view->a + first;
        for (int l = 0; l < WIDE; l++) {
            double eta = z[l] + (d0 + d1 * t[l]), e = exp_d(-fabs(eta));
            double p = (eta >= 0.0 ? 1.0 : e) / (1.0 + e);
            double expected = w[first + l] * p, residual = a[l] - expected;
            double information = expected * (1.0 - p);
            lane[0][l] += residual;
            lane[1][l] += residual * t[l];
            lane[2][l] += information;
            lane[3][l] += information * t[l];
            lane[4][l] += information * t[l] * t[l];
        }
    }
    for (int c = 0; c < 5; c++)
        for (int l = 0; l < WIDE; l++) sums[c] += lane[c][l];
    to->g0 = sums[0], to->g1 = sums[1];
    to->j00 = sums[2], to->j01 = sums[3], to->j11 = sums[4];
}

/* Fill in the view from a node; return the spread of the log-odds. */
CLONES static double look(double node, double at, double scale, const double *RESTRICT rank,
                          const double *const *cells, Size count, View *view)
{
    double total = 0.0, square = 0.0;
    const double *RESTRICT z = cells[0], *RESTRICT weight = cells[1];
    const double *RESTRICT hits = cells[2], *RESTRICT squared = cells[3];
    double *RESTRICT t = view->t, *RESTRICT w = view->w, *RESTRICT q = view->q;
    for (Size j = 0; j < count; j++) {
        double u = (at - rank[j]) * scale, kernel = exp_d(-0.5 * (u * u));
        view->z[j] = z[j];
        t[j] = z[j] - node;
        w[j] = kernel * weight[j];
        view->a[j] = kernel * hits[j];
        q[j] = kernel * kernel * squared[j];
    }
    for (Size j = 0; j < count; j++) {
        total += w[j];
        square += w[j] * t[j] * t[j];
    }
    view->count = (count + WIDE - 1) / WIDE * WIDE;
    for (Size j = count; j < view->count; j++)
        view->z[j] = t[j] = w[j] = view->a[j] = q[j] = 0.0;
    return square / most(total, 1e-300);
}

#if defined(__clang__)
#pragma clang fp contract(off)
#elif defined(__GNUC__)
#pragma GCC pop_options
#endif

typedef struct {
    double width, shift, slope, tolerance, longest; /* shift, slope: precision of priors */
    Size steps;
} Rules;

/* As `platt._climb`. */
static void climb(const View *view, const double *prior, const Rules *rules, double *d0,
                  double *d1)
{
    double last0 = 0.0, last1 = 0.0, rise = 0.0, steep = sqrt(prior[1] / prior[0]);
    for (Size step = 0; step < rules->steps; step++) {
        Slope s;
        slope_at(view, view->w, *d0, *d1, &s);
        double g0 = s.g0 - *d0 * prior[0], g1 = s.g1 - *d1 * prior[1];
        if (g0 * last0 + g1 * last1 < -0.5 * rise) { /* too far: take half of it back */
            last0 *= 0.5, last1 *= 0.5, rise *= 0.5;
            *d0 -= last0, *d1 -= last1;
            continue;
        }
        double j00 = s.j00 + prior[0], j11 = s.j11 + prior[1];
        double determinant = j00 * j11 - s.j01 * s.j01;
        double s0 = (j11 * g0 - s.j01 * g1) / determinant;
        double s1 = (j00 * g1 - s.j01 * g0) / determinant;
        double length = most(fabs(s0), fabs(s1) * steep);
        double cut = rules->longest / most(length, rules->longest);
        last0 = s0 * cut, last1 = s1 * cut;
        rise = g0 * last0 + g1 * last1;
        *d0 += last0, *d1 += last1;
        if (!(length >= rules->tolerance)) break;
    }
}

static void fit_node(const View *view, double spread, const Rules *rules, double *shift,
                     double *slope, double *leverage, double *variance)
{
    double steep = rules->slope > 0.0 ? rules->slope : rules->shift * spread + 1e-6;
    double prior[2] = {rules->shift, steep};
    Slope s, q;
    climb(view, prior, rules, shift, slope);
    slope_at(view, view->w, *shift, *slope, &s);
    slope_at(view, view->q, *shift, *slope, &q);
    double j00 = s.j00 + prior[0], j11 = s.j11 + prior[1];
    double determinant = j00 * j11 - s.j01 * s.j01;
    double c0 = j11 / determinant, c1 = -s.j01 / determinant;
    *leverage = c0;
    *variance = c0 * c0 * q.j00 + 2 * c0 * c1 * q.j01 + c1 * c1 * q.j11;
}

static Size first_from(const double *x, Size n, double value)
{
    Size low = 0;
    while (n > low) {
        Size middle = low + (n - low) / 2;
        if (x[middle] < value) low = middle + 1;
        else n = middle;
    }
    return low;
}

/* fit_platt(width, prior_shift, prior_slope, tolerance, steps, longest, rank, z, weight,
             hits, squared, nodes, at, shift, slope, leverage, variance) */
static PyObject *fit_platt(PyObject *self, PyObject *args)
{
    Arrays arrays;
    double given[6] = {0.0};
    for (Size i = 0; i < 6; i++) given[i] = PyFloat_AsDouble(PyTuple_GetItem(args, i));
    Rules rules = {given[0], given[1], given[2], given[3], given[5], (Size)given[4]};
    if (take(args, 6, "dddddddDDDD", &arrays)) return leave(&arrays, "arrays");
    Size n = COUNT(0), nodes = COUNT(5), room = n + WIDE;
    int fits = rules.width > 0.0 && rules.shift > 0.0;
    for (int i = 1; i < 5; i++) fits &= COUNT(i) == n;
    for (int i = 6; i < 11; i++) fits &= COUNT(i) == nodes;
    if (!fits) return leave(&arrays, "arrays do not fit each other");
    double *memory = (double *)malloc((size_t)(5 * room) * sizeof(double));
    if (!memory) {
        PyErr_NoMemory();
        return leave(&arrays, "memory");
    }
    const double *rank = AT(double, 0), *at = AT(double, 6);
    Py_BEGIN_ALLOW_THREADS
    View view = {memory, memory + room, memory + 2 * room, memory + 3 * room,
                 memory + 4 * room, 0};
    for (Size i = 0; i < nodes; i++) {
        Size from = first_from(rank, n, at[i] - SEEN * rules.width);
        Size to = first_from(rank, n, at[i] + SEEN * rules.width);
        const double *cells[4] = {AT(double, 1) + from, AT(double, 2) + from,
                                  AT(double, 3) + from, AT(double, 4) + from};
        double spread = look(AT(double, 5)[i], at[i], 1.0 / rules.width, rank + from, cells,
                             to - from, &view);
        fit_node(&view, spread, &rules, AT(double, 7) + i, AT(double, 8) + i,
                 AT(double, 9) + i, AT(double, 10) + i);
    }
    Py_END_ALLOW_THREADS
    free(memory);
    return leave(&arrays, NULL);
}

/* -- a batch of tensors: sums by cell, where they are (`torch/_tensor_cells.py`) ----------- */

#define BATCH_FIELDS 40 /* of Brier and log, in the order of `cells.fields_of` */
#define BATCH_TOTALS 5

INLINE double softplus(double x)
{
    return most(x, 0.0) + log1p(exp(-fabs(x)));
}

/* As `_tensor_cells._totals`, for Brier, then log. */
static void add_totals(double h, double z, double hit, double brier, double log_loss,
                       double *totals)
{
    double finite[2] = {finite_or_0(brier), finite_or_0(log_loss)}, r = hit - h;
    double unit[2] = {r * r, softplus(hit > 0.0 ? -z : z)};
    double phi[2] = {hit, 0.0};
    double tangent[2] = {-h * h, fabs(z) < INFINITY ? -softplus(z) : 0.0};
    for (int d = 0; d < 2; d++) {
        double terms[BATCH_TOTALS] = {finite[d], finite[d] * finite[d], unit[d], phi[d],
                                      tangent[d]};
        for (int j = 0; j < BATCH_TOTALS; j++) totals[d * BATCH_TOTALS + j] += terms[j];
    }
}

typedef struct {
    double *table, *low, *high, *totals, *certain, *within;
    Size bins, classes;
} Batch;

static void add_to_batch(const Columns *rows, const double *brier, const double *log_loss,
                         const unsigned char *keep, const int64_t *predicted, Batch *to)
{
    for (Size i = 0; i < rows->n; i++) {
        if (!keep[i]) continue;
        double h = rows->h[i], z = rows->log_odds[i], hit = rows->hit[i];
        double inner = cell_of(h, CELLS);
        Size cell = (Size)inner + log_odds_cell(log(h) - log1p(-h));
        double *sums = to->table + cell * BATCH_FIELDS;
        add_row(rows, i, h * CELLS - inner - 0.5, sums);
        to->low[cell] = least(h, to->low[cell]);
        to->high[cell] = most(h, to->high[cell]);
        add_totals(h, z, hit, brier[i], log_loss[i], to->totals);
        to->certain[0] += z == -INFINITY;
        to->certain[1] += z == INFINITY;
        if (to->bins)
            to->within[predicted[i] * to->bins + (Size)cell_of(h, (double)to->bins)] += hit - h;
    }
}

/* add_batch(bins, table, low, high, totals, certain, within or None, keep, predicted,
             h, log_odds, hit, brier, log, work): rows of weight 1 */
static PyObject *add_batch(PyObject *self, PyObject *args)
{
    Arrays arrays;
    Size bins = PyLong_AsSsize_t(PyTuple_GetItem(args, 0));
    if (take(args, 1, "DDDDD?DbqdddddD", &arrays)) return leave(&arrays, "arrays");
    Size n = COUNT(8), classes = bins > 0 ? COUNT(5) / bins : 0;
    int fits = bins >= 0 && COUNT(0) == STEPS * BATCH_FIELDS && COUNT(1) == STEPS;
    fits &= COUNT(2) == STEPS && COUNT(3) == 2 * BATCH_TOTALS && COUNT(4) == 2;
    fits &= COUNT(5) == classes * bins && COUNT(6) == n && COUNT(13) == 7 * n;
    for (int i = 7; i < 13; i++) fits &= COUNT(i) == n;
    if (!fits || (bins && !within_reach(AT(int64_t, 7), n, classes)))
        return leave(&arrays, "arrays do not fit each other");
    const double *h = AT(double, 8), *z = AT(double, 9), *hit = AT(double, 10);
    const double *brier = AT(double, 11), *log_loss = AT(double, 12);
    double *work = AT(double, 13);
    unsigned char *lost = (unsigned char *)(work + 5 * n);
    Py_BEGIN_ALLOW_THREADS
    Columns rows = {h, NULL, hit, z, NULL, {0}, {0}, n, 5, 2, BATCH_FIELDS};
    for (Size i = 0; i < n; i++) {
        work[i] = hit[i];
        work[n + i] = finite_or_0(brier[i]);
        work[2 * n + i] = 2.0 * h[i];
        work[3 * n + i] = finite_or_0(log_loss[i]);
        work[4 * n + i] = finite_or_0(z[i]);
        lost[i] = !(fabs(brier[i]) < INFINITY);
        lost[n + i] = !(fabs(log_loss[i]) < INFINITY);
    }
    for (int c = 0; c < 5; c++) rows.value[c] = work + c * n;
    for (int c = 0; c < 2; c++) rows.lost[c] = lost + c * n;
    Batch to = {AT(double, 0), AT(double, 1), AT(double, 2), AT(double, 3),
                AT(double, 4), AT(double, 5), bins, classes};
    add_to_batch(&rows, brier, log_loss, AT(unsigned char, 6), AT(int64_t, 7), &to);
    Py_END_ALLOW_THREADS
    return leave(&arrays, NULL);
}

/* -- Poisson counts, bit for bit as NumPy has them in `poisson.py` --------------- */

INLINE double uniform(uint64_t seed, uint64_t number) /* of SplitMix64, inside (0, 1) */
{
    uint64_t x = seed + (number + 1) * 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    x ^= x >> 31;
    return ((double)(x >> 12) + 0.5) * 0x1p-52;
}

#define MOST_COUNTS 1024
#define GUIDES 256

/* Shares of counts up to each, times a constant, multiplied up and down from the mode. */
static Size share_out(double mean, Size reach, Size *lowest, double *shares)
{
    Size mode = (Size)mean, low = mode > reach ? mode - reach : 0, count = 0;
    double total = 0.0;
    shares[mode - low] = 1.0;
    for (Size j = mode; j > low; j--)
        shares[j - 1 - low] = shares[j - low] * ((double)j / mean);
    for (Size j = mode + 1; j <= mode + reach; j++)
        shares[j - low] = shares[j - 1 - low] * (mean / (double)j);
    for (count = 0; count <= mode + reach - low; count++)
        shares[count] = total += shares[count];
    *lowest = low;
    return count;
}

static void draw(double mean, Size reach, uint64_t seed, uint64_t number, Size draws,
                 double *out)
{
    double shares[MOST_COUNTS];
    int32_t guide[GUIDES];
    Size low, count = share_out(mean, reach, &low, shares), at = 0;
    double total = shares[count - 1];
    for (int g = 0; g < GUIDES; g++) {
        while (at < count - 1 && shares[at] <= (double)g / GUIDES * total) at++;
        guide[g] = (int32_t)at;
    }
    for (Size r = 0; r < draws; r++) {
        double u = uniform(seed, number + (uint64_t)r), place = u * total;
        Size found = guide[(int)(u * GUIDES)];
        while (found < count - 1 && shares[found] <= place) found++;
        out[r] = (double)(low + found);
    }
}

/* poisson(seed, draws, means, reaches, counts): counts by mean, then draw, by a table of
   counts as far from the mode as the reaches say */
static PyObject *poisson(PyObject *self, PyObject *args)
{
    Arrays arrays;
    uint64_t seed = PyLong_AsUnsignedLongLong(PyTuple_GetItem(args, 0));
    Size draws = PyLong_AsSsize_t(PyTuple_GetItem(args, 1));
    if (take(args, 2, "dqD", &arrays)) return leave(&arrays, "arrays");
    Size n = COUNT(0);
    const double *means = AT(double, 0);
    const int64_t *reaches = AT(int64_t, 1);
    int fits = draws >= 0 && COUNT(1) == n && COUNT(2) == n * draws;
    for (Size i = 0; fits && i < n; i++)
        fits &= means[i] >= 0.0 && means[i] <= MOST_COUNTS && reaches[i] >= 0 &&
                reaches[i] < MOST_COUNTS / 2;
    if (!fits) return leave(&arrays, "arrays do not fit each other");
    Py_BEGIN_ALLOW_THREADS
    for (Size i = 0; i < n; i++)
        draw(means[i], (Size)reaches[i], seed, (uint64_t)i * (uint64_t)draws, draws,
             AT(double, 2) + i * draws);
    Py_END_ALLOW_THREADS
    return leave(&arrays, NULL);
}

/* -- sorting by digits -------------------------------------------------------------------

   Whole numbers from 0 on, a byte at a time from the lowest: bytes that all have in common
   are skipped. What is tied stays in order. */

#define DIGITS 8

static void count_digits(const int64_t *keys, Size n, Size (*counts)[256])
{
    memset(counts, 0, DIGITS * sizeof *counts);
    for (Size i = 0; i < n; i++)
        for (int d = 0; d < DIGITS; d++) counts[d][(uint64_t)keys[i] >> (8 * d) & 255]++;
}

static void swap(int64_t **one, int64_t **two)
{
    int64_t *kept = *one;
    *one = *two;
    *two = kept;
}

/* Returns where the sorted keys are: in `keys` or in `spare`; likewise for what goes along. */
static int sort_by_digits(int64_t *keys, int64_t *spare, int64_t *along, int64_t *spare_along,
                          Size n)
{
    Size counts[DIGITS][256];
    int swapped = 0;
    count_digits(keys, n, counts);
    for (int d = 0; d < DIGITS; d++) {
        Size place[256], total = 0;
        int all = 0;
        for (int b = 0; b < 256; b++) {
            all |= counts[d][b] == n;
            place[b] = total;
            total += counts[d][b];
        }
        if (all) continue;
        for (Size i = 0; i < n; i++) {
            Size to = place[(uint64_t)keys[i] >> (8 * d) & 255]++;
            spare[to] = keys[i];
            if (along) spare_along[to] = along[i];
        }
        swap(&keys, &spare);
        swap(&along, &spare_along);
        swapped = !swapped;
    }
    return swapped;
}

/* sort(keys, spare, along or None, spare_along or None) -> whether the result is in spare */
static PyObject *sort(PyObject *self, PyObject *args)
{
    Arrays arrays;
    if (take(args, 0, "QQ?Q?Q", &arrays)) return leave(&arrays, "arrays");
    Size n = COUNT(0), other = COUNT(2);
    int swapped = 0;
    if (!(COUNT(1) == n && COUNT(3) == other && (other == n || !AT(int64_t, 2))))
        return leave(&arrays, "arrays do not fit each other");
    Py_BEGIN_ALLOW_THREADS
    swapped = n > 0 && sort_by_digits(AT(int64_t, 0), AT(int64_t, 1), AT(int64_t, 2),
                                      AT(int64_t, 3), n);
    Py_END_ALLOW_THREADS
    release(&arrays);
    return PyBool_FromLong(swapped);
}

/* -- sums over cells, places and terms of laws -------------------------------------------- */

#include "_compiled_sums.h"

/* -- the module -------------------------------------------------------------------------- */

#define FUNCTION(name) {#name, name, METH_VARARGS, NULL}

static PyMethodDef functions[] = {
    FUNCTION(reduce),    FUNCTION(bend),     FUNCTION(replace),   FUNCTION(follow),
    FUNCTION(stretches), FUNCTION(residual), FUNCTION(add_rows),  FUNCTION(add_pairs),
    FUNCTION(add_top),   FUNCTION(fit_platt), FUNCTION(poisson),  FUNCTION(sort),
    FUNCTION(kernel_sums), FUNCTION(pairs), FUNCTION(events),   FUNCTION(quantile),
    FUNCTION(left_out),  FUNCTION(add_cells),  FUNCTION(node_weights), FUNCTION(bells),
    FUNCTION(crossings), FUNCTION(tally),    FUNCTION(add_up),  FUNCTION(add_batch),
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {{0, NULL}};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_compiled", NULL, 0, functions, slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__compiled(void) { return PyModuleDef_Init(&module); }
