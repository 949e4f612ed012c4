/* Sums over cells and places, and laws: what estimators do thousands of times on arrays that
   are too short for NumPy. Included by `_compiled.c`, whose exp and buffers they use. */

#define LANES 16 /* places that are summed together */
#define SETS 40 /* data sets that are, in parts of FEW: a law has a whole number of either */
#define FEW 8
#define MOST_AT_ONCE 4 /* importances */

#if defined(__clang__)
#pragma clang fp contract(fast)
#elif defined(__GNUC__)
#pragma GCC push_options
#pragma GCC optimize("fp-contract=fast")
#endif

/* -- kernel sums over places: `ladder.Level` ---------------------------------------------- */

typedef struct { /* places in order, `taps` the kernel at whole distances from 0 on */
    const double *taps;
    const int64_t *number, *place;
    Size reach, places, cells;
} Level;

/* Whether places are in order and each cell, in order too, has one of them. */
static int is_level(const Level *level)
{
    int fine = level->reach >= 0;
    for (Size p = 1; p < level->places; p++) fine &= level->number[p - 1] < level->number[p];
    for (Size c = 0; c < level->cells; c++) {
        fine &= level->place[c] >= 0 && level->place[c] < level->places;
        fine &= c == 0 || level->place[c - 1] <= level->place[c];
    }
    return fine;
}

/* Kernel sums (of its square, for a power of 2) of `width` columns at each place. */
INLINE void spread_some(const Level *level, int power, const double *at, int width,
                        double *sums)
{
    Size from = 0;
    for (Size p = 0; p < level->places; p++) {
        double sum[SETS] = {0.0};
        while (level->number[p] - level->number[from] > level->reach) from++;
        for (Size j = from; j < level->places; j++) {
            int64_t apart = level->number[j] - level->number[p];
            if (apart > level->reach) break;
            double tap = level->taps[apart < 0 ? -apart : apart];
            if (power == 2) tap *= tap;
            for (int l = 0; l < width; l++) sum[l] += tap * at[j * width + l];
        }
        for (int l = 0; l < width; l++) sums[p * width + l] = sum[l];
    }
}

/* Numbers from the first place to the last, those of no place among them. */
static Size span_of(const Level *level)
{
    return level->places ? (Size)(level->number[level->places - 1] - level->number[0]) + 1 : 0;
}

/* Room for `spread_along`, if places lie so close that it is faster; else 0. */
static Size room_along(const Level *level)
{
    Size span = span_of(level);
    return span > 0 && span <= 8 * level->places ? 2 * (span + level->reach) : 0;
}

/* The same of one column, along all numbers at once. */
CLONES static void spread_along(const Level *level, int power, const double *RESTRICT at,
                                double *RESTRICT room, double *RESTRICT sums)
{
    Size span = span_of(level), reach = level->reach;
    double *RESTRICT here = room + reach, *RESTRICT to = room + span + 2 * reach;
    memset(room, 0, (size_t)(span + 2 * reach) * sizeof(double));
    for (Size p = 0; p < level->places; p++) here[level->number[p] - level->number[0]] = at[p];
    for (Size q = 0; q < span; q++) to[q] = 0.0;
    for (Size t = reach; t >= 0; t--) {
        double tap = power == 2 ? level->taps[t] * level->taps[t] : level->taps[t];
        if (t == 0) tap *= 0.5;
        for (Size q = 0; q < span; q++) to[q] += tap * (here[q - t] + here[q + t]);
    }
    for (Size p = 0; p < level->places; p++) sums[p] = to[level->number[p] - level->number[0]];
}

/* `along` is room for one column, or NULL. */
CLONES static void spread(const Level *level, int power, const double *at, int width,
                          double *along, double *sums)
{
    if (width == SETS) spread_some(level, power, at, SETS, sums);
    else if (width > 1) spread_some(level, power, at, width, sums);
    else if (along) spread_along(level, power, at, along, sums);
    else spread_some(level, power, at, 1, sums);
}

/* Sums over the cells of each place of some columns of a table. */
CLONES static void gather(const Level *level, const double *RESTRICT table, Size columns,
                          Size first, int width, double *RESTRICT sums)
{
    memset(sums, 0, (size_t)(level->places * width) * sizeof(double));
    for (Size c = 0; c < level->cells; c++) {
        const double *row = table + c * columns + first;
        double *sum = sums + level->place[c] * width;
        for (int l = 0; l < width; l++) sum[l] += row[l];
    }
}

/* kernel_sums(power, taps, number, place, table, sums): of cells, at the cells */
static PyObject *kernel_sums(PyObject *self, PyObject *args)
{
    Arrays arrays;
    Size power = PyLong_AsSsize_t(PyTuple_GetItem(args, 0));
    if (take(args, 1, "dqqdD", &arrays)) return leave(&arrays, "arrays");
    Level level = {AT(double, 0), AT(int64_t, 1), AT(int64_t, 2), COUNT(0) - 1, COUNT(1),
                   COUNT(2)};
    Size columns = level.cells ? COUNT(3) / level.cells : 0;
    if (!(is_level(&level) && COUNT(3) == columns * level.cells && COUNT(4) == COUNT(3)))
        return leave(&arrays, "arrays do not fit each other");
    Size step = columns < FEW ? 1 : SETS, along = room_along(&level);
    Size room = 2 * level.places * step + along + 1;
    double *memory = (double *)malloc((size_t)room * sizeof(double));
    if (!memory) {
        PyErr_NoMemory();
        return leave(&arrays, "memory");
    }
    Py_BEGIN_ALLOW_THREADS
    for (Size first = 0; first < columns; first += step) {
        int width = (int)(columns - first < step ? columns - first : step);
        double *sums = memory + level.places * step;
        double *one = along ? sums + level.places * step : NULL;
        gather(&level, AT(double, 3), columns, first, width, memory);
        spread(&level, power == 2 ? 2 : 1, memory, width, one, sums);
        for (Size c = 0; c < level.cells; c++)
            memcpy(AT(double, 4) + c * columns + first, sums + level.place[c] * width,
                   (size_t)width * sizeof(double));
    }
    Py_END_ALLOW_THREADS
    free(memory);
    return leave(&arrays, NULL);
}

/* -- products of close residuals: `ladder.pairs` ------------------------------------------ */

typedef struct { /* of one importance: by cell, of r g and of r; by place, of g and of g^2;
                    and what does not depend on residuals */
    double *both, *own, *mean, *size, rest;
} Terms;

typedef struct { /* cells; each of w^2 r, w^2 r^2, w^3 r^2 is a base and a slope times r */
    const double *near, *weight, *base[3], *slope[3];
} Cell;

/* Of one importance. `at` and `seen` are room for a number at each place. */
static void find_terms(const Level *level, const Cell *cell, const double *importance,
                       double *at, double *seen, double *along, Terms *to)
{
    memset(to->size, 0, (size_t)level->places * sizeof(double));
    memset(to->mean, 0, (size_t)level->places * sizeof(double));
    memset(at, 0, (size_t)level->places * sizeof(double));
    for (Size c = 0; c < level->cells; c++) {
        double counted = importance[c] * cell->weight[c], D = cell->near[c];
        to->size[level->place[c]] += counted;
        at[level->place[c]] += counted / (D * D);
    }
    spread(level, 2, at, 1, along, seen);
    to->rest = 0.0;
    for (Size c = 0; c < level->cells; c++) {
        double i = importance[c], D = cell->near[c], by = i / D;
        double twice = seen[level->place[c]] - 2 * by, thrice = -2 * by / D;
        to->both[c] = 2 * (i + by * cell->slope[0][c]);
        to->mean[level->place[c]] += 2 * by * cell->base[0][c];
        to->own[c] = twice * cell->slope[1][c] + thrice * cell->slope[2][c];
        to->rest += twice * cell->base[1][c] + thrice * cell->base[2][c];
    }
}

/* What some data sets have of some importances: residuals r at cells, means g at places. */
INLINE void add_terms(const Level *level, const Terms *terms, int count, const double *r,
                      Size columns, const double *g, Size stride, int width,
                      double sums[MOST_AT_ONCE][FEW])
{
    double sum[MOST_AT_ONCE][FEW] = {{0.0}};
    for (Size p = 0, c = 0; p < level->places; p++) {
        double near[MOST_AT_ONCE][FEW] = {{0.0}};
        const double *mean = g + p * stride;
        for (; c < level->cells && level->place[c] == p; c++)
            for (int i = 0; i < count; i++) {
                double both = terms[i].both[c], slope = terms[i].own[c];
                for (int l = 0; l < width; l++) {
                    near[i][l] += both * r[c * columns + l];
                    sum[i][l] += slope * r[c * columns + l];
                }
            }
        for (int i = 0; i < count; i++)
            for (int l = 0; l < width; l++)
                sum[i][l] += mean[l] * (near[i][l] + terms[i].mean[p] -
                                        terms[i].size[p] * mean[l]);
    }
    for (int i = 0; i < count; i++)
        for (int l = 0; l < width; l++) sums[i][l] = sum[i][l] + terms[i].rest;
}

CLONES static void add_all_terms(const Level *level, const Terms *terms, int count,
                                 const double *r, Size columns, const double *g,
                                 Size stride, int width, double sums[MOST_AT_ONCE][FEW])
{
#define OF(count, width) add_terms(level, terms, count, r, columns, g, stride, width, sums)
    if (width != FEW) OF(count, width);
    else if (count == 4) OF(4, FEW);
    else if (count == 3) OF(3, FEW);
    else if (count == 2) OF(2, FEW);
    else OF(1, FEW);
#undef OF
}

static int is_nothing(const double *x, Size n)
{
    for (Size i = 0; i < n; i++)
        if (x[i] != 0.0) return 0;
    return 1;
}

/* Kernel means of residuals at places, of some data sets. */
static void find_means(const Level *level, const Cell *cell, const double *r, Size columns,
                       Size first, int width, double *along, double *room, double *g)
{
    gather(level, r, columns, first, width, room);
    spread(level, 1, room, width, along, g);
    for (Size c = 0; c < level->cells; c++) { /* a place has the sum of its first cell */
        if (c > 0 && level->place[c] == level->place[c - 1]) continue;
        double *mean = g + level->place[c] * width;
        for (int l = 0; l < width; l++) mean[l] /= cell->near[c];
    }
}

/* What all data sets have of up to `MOST_AT_ONCE` importances, whose numbers are `which`. */
static void sum_some_pairs(const Level *level, const Cell *cell, const Terms *terms,
                           const Size *which, int count, const double *r, Size columns,
                           double scale, double *along, double *room, double *out)
{
    double *g = room + level->places * SETS, sums[MOST_AT_ONCE][FEW];
    for (Size first = 0; first < columns; first += SETS) {
        int width = (int)(columns - first < SETS ? columns - first : SETS);
        find_means(level, cell, r, columns, first, width, along, room, g);
        for (int part = 0; part < width; part += FEW) {
            int few = width - part < FEW ? width - part : FEW;
            add_all_terms(level, terms, count, r + first + part, columns, g + part, width,
                          few, sums);
            for (int i = 0; i < count; i++)
                for (int l = 0; l < few; l++)
                    out[which[i] * columns + first + part + l] += sums[i][l] * scale;
        }
    }
}

static void sum_pairs_of(const Level *level, const Cell *cell, const double *importance,
                         Size count, const double *r, Size columns, double scale,
                         double *memory, double *out)
{
    Size C = level->cells, P = level->places, which[MOST_AT_ONCE];
    double *room = memory + MOST_AT_ONCE * 2 * (C + P);
    double *along = room_along(level) ? room + 2 * P * SETS : NULL;
    Terms terms[MOST_AT_ONCE];
    for (Size i = 0; i < count;) {
        int found = 0;
        for (; i < count && found < MOST_AT_ONCE; i++) {
            double *own = memory + found * 2 * (C + P);
            Terms here = {own, own + C, own + 2 * C, own + 2 * C + P, 0.0};
            if (is_nothing(importance + i * C, C)) continue;
            find_terms(level, cell, importance + i * C, room, room + P, along, &here);
            terms[found] = here;
            which[found++] = i;
        }
        if (found > 0)
            sum_some_pairs(level, cell, terms, which, found, r, columns, scale, along, room,
                           out);
    }
}

/* pairs(scale, taps, number, place, importance, r, near, weight, three bases, three slopes,
         out): adds to `out`, by importance and data set */
static PyObject *pairs(PyObject *self, PyObject *args)
{
    Arrays arrays;
    double scale = PyFloat_AsDouble(PyTuple_GetItem(args, 0));
    if (take(args, 1, "dqqddddddddddD", &arrays)) return leave(&arrays, "arrays");
    Level level = {AT(double, 0), AT(int64_t, 1), AT(int64_t, 2), COUNT(0) - 1, COUNT(1),
                   COUNT(2)};
    Cell cell = {AT(double, 5), AT(double, 6), {AT(double, 7), AT(double, 8), AT(double, 9)},
                 {AT(double, 10), AT(double, 11), AT(double, 12)}};
    Size C = level.cells, count = C ? COUNT(3) / C : 0, columns = C ? COUNT(4) / C : 0;
    int fits = is_level(&level) && COUNT(3) == count * C && COUNT(4) == columns * C;
    fits &= COUNT(13) == count * columns;
    for (int i = 5; i < 13; i++) fits &= COUNT(i) == C;
    if (!fits) return leave(&arrays, "arrays do not fit each other");
    Size room = 2 * level.places * SETS + MOST_AT_ONCE * 2 * (C + level.places);
    room += room_along(&level) + 1;
    double *memory = (double *)malloc((size_t)room * sizeof(double));
    if (!memory) {
        PyErr_NoMemory();
        return leave(&arrays, "memory");
    }
    Py_BEGIN_ALLOW_THREADS
    sum_pairs_of(&level, &cell, AT(double, 3), count, AT(double, 4), columns, scale, memory,
                 AT(double, 13));
    Py_END_ALLOW_THREADS
    free(memory);
    return leave(&arrays, NULL);
}

#if defined(__clang__)
#pragma clang fp contract(off)
#elif defined(__GNUC__)
#pragma GCC pop_options
#endif

/* -- events of simulated data sets: `ladder._quantiles` ----------------------------------- */

#define MOST_EVENTS 1000.0 /* expected */

static void count_events(double n, double p, const float *uniform, Size draws, double *out)
{
    double term = pow(1 - p, n), below = term, odds = p / (1 - p), largest = 0.0;
    for (Size d = 0; d < draws; d++) {
        largest = most(uniform[d], largest);
        out[d] = 0.0;
    }
    for (double k = 0.0; largest > below && n > k; k += 1.0) {
        for (Size d = 0; d < draws; d++) out[d] += uniform[d] > below ? 1.0 : 0.0;
        term = term * (n - k) / (k + 1) * odds;
        below += term;
    }
    for (Size d = 0; d < draws; d++) out[d] = least(out[d], n);
}

/* events(n, p, uniform, out): how many of n there are at each probability, a float32 */
static PyObject *events(PyObject *self, PyObject *args)
{
    Arrays arrays;
    if (take(args, 0, "ddrD", &arrays)) return leave(&arrays, "arrays");
    Size n = COUNT(0), draws = n ? COUNT(3) / n : 0;
    const double *tries = AT(double, 0), *p = AT(double, 1);
    int fits = COUNT(1) == n && COUNT(2) == n * draws && COUNT(3) == n * draws;
    fits &= n == 0 || IS_FLOAT(2);
    for (Size i = 0; fits && i < n; i++) 
        fits &= p[i] >= 0.0 && p[i] <= 0.5 && tries[i] >= 0.0 && tries[i] * p[i] <= MOST_EVENTS;
    if (!fits) return leave(&arrays, "arrays do not fit each other");
    Py_BEGIN_ALLOW_THREADS
    for (Size i = 0; i < n; i++)
        count_events(tries[i], p[i], AT(float, 2) + i * draws, draws,
                     AT(double, 3) + i * draws);
    Py_END_ALLOW_THREADS
    return leave(&arrays, NULL);
}

/* -- gamma and noncentral chi-square laws: `quantiles` ------------------------------------ */

#define FARTHEST 9.0
#define MOST_TERMS 8192

/* As `quantiles._poisson`. */
static double poisson_chance(double n, double mean)
{
    if (n < 20.0) return exp(n * log(mean) - mean - lgamma(n + 1));
    double off = (mean - n) / n, r = 1 / (n * n);
    double stirling = (1.0 / 12 - r * (1.0 / 360 - r * (1.0 / 1260 - r / 1680))) / n;
    return exp(n * (log1p(off) - off) - stirling) / sqrt(2 * 3.141592653589793 * n);
}

/* As `quantiles.gamma_terms`, at most `room` of them; how many there are. */
static Size gamma_terms(double shape, double x, Size room, double *terms)
{
    double few = most(x - shape, 0.0) + FARTHEST * sqrt(most(x, shape)) + 4 * FARTHEST;
    Size count = few < (double)room ? (Size)few : room;
    Size mode = x > shape ? (Size)least(x - shape, (double)count - 1) : 0;
    terms[mode] = poisson_chance(shape + (double)mode, x);
    for (Size j = mode + 1; j < count; j++) terms[j] = terms[j - 1] * (x / (shape + (double)j));
    for (Size j = mode; j > 0; j--) terms[j - 1] = terms[j] * ((shape + (double)j) / x);
    return count;
}

typedef struct { /* of a law at the value in question: summands, sums from each on */
    double shape, p, terms[MOST_TERMS], below[MOST_TERMS], chances[MOST_TERMS];
    Size count;
} Law;

/* Either law at x less p, rising in x; and its density. */
static double gamma_excess(Law *law, double x, double *slope)
{
    double sum = 0.0;
    *slope = 0.0;
    if (x > MOST_TERMS - 1000) return 1.0 - law->p; /* far above all shapes */
    Size count = gamma_terms(law->shape, x, MOST_TERMS, law->terms);
    for (Size j = 0; j < count; j++) sum += law->terms[j];
    *slope = law->terms[0] * law->shape / x;
    return sum - law->p;
}

static double noncentral_excess(Law *law, double x, double *slope)
{
    double sum = 0.0, density = 0.0;
    Size count = x > 0 ? gamma_terms(0.0, x / 2, law->count, law->chances) : 1;
    if (!(x > 0)) law->chances[0] = 1.0;
    for (Size j = 0; j < count; j++) {
        sum += law->chances[j] * law->below[j];
        density += law->chances[j] * law->terms[j];
    }
    *slope = 0.5 * density;
    return law->p - sum;
}

/* As `quantiles._solve`. */
static double solve(double (*f)(Law *, double, double *), Law *law, double x)
{
    double low = 0.0, high = INFINITY;
    for (int i = 0; i < 100; i++) {
        double slope, value = f(law, x, &slope);
        if (value < 0) low = x;
        else high = x;
        double step = slope > TINY ? value / slope : INFINITY;
        if ((low < x - step && x - step < high) || fabs(step) <= 1e-9 * x) {
            x -= step;
            if (fabs(step) <= 1e-9 * x) break;
        } else {
            x = high == INFINITY ? 2 * x : 0.5 * (low + high);
        }
    }
    return x;
}

/* quantile(freedom, value, p, start): that of a gamma law of shape `freedom`, if there is no
   value; else the noncentrality at which a chi-square is below it. All are within reach of
   the tables, or NaN comes back. */
static PyObject *quantile(PyObject *self, PyObject *args)
{
    double given[4], found = NAN;
    for (Size i = 0; i < 4; i++) given[i] = PyFloat_AsDouble(PyTuple_GetItem(args, i));
    if (PyErr_Occurred()) return NULL;
    double freedom = given[0], value = given[1], start = given[3];
    if (PyTuple_Size(args) != 4) {
        PyErr_SetString(PyExc_TypeError, "four numbers");
        return NULL;
    }
    int fits = freedom > 0 && freedom <= 4000 && value >= 0 && value <= 4000;
    fits &= start > 0 && start <= 4000;
    Law *law = fits ? (Law *)malloc(sizeof(Law)) : NULL;
    if (fits && !law) return PyErr_NoMemory();
    if (!fits) return PyFloat_FromDouble(found);
    law->shape = freedom, law->p = given[2];
    if (value == 0) {
        found = solve(gamma_excess, law, start);
    } else {
        law->count = gamma_terms(freedom / 2, value / 2, MOST_TERMS, law->terms);
        double sum = 0.0;
        for (Size j = law->count; j-- > 0;) law->below[j] = sum += law->terms[j];
        found = sum <= law->p ? 0.0 : solve(noncentral_excess, law, start);
    }
    free(law);
    return PyFloat_FromDouble(found);
}

#if defined(__clang__)
#pragma clang fp contract(fast)
#elif defined(__GNUC__)
#pragma GCC push_options
#pragma GCC optimize("fp-contract=fast")
#endif

/* -- rows left out of a fit: `platt_error.left_out` --------------------------------------- */

CLONES static void leave_out(const double *RESTRICT eta, const double *RESTRICT leverage,
                             const double *RESTRICT hit, Size n, const double *rules,
                             double *RESTRICT out)
{
    double prior = rules[0], longest = rules[1], largest = rules[2];
    int steps = (int)rules[3];
    for (Size i = 0; i < n; i++) {
        double e = exp_d(-fabs(eta[i])), m = (eta[i] >= 0.0 ? 1.0 : e) / (1.0 + e);
        double w = most((1 / leverage[i] - prior) / most(m * (1 - m), 1e-300), 1.0);
        double shift = 0.0;
        for (int k = 0; k < steps; k++) {
            double x = eta[i] + shift, f = exp_d(-fabs(x));
            double s = (x >= 0.0 ? 1.0 : f) / (1.0 + f);
            double score = w * (m - s) - (hit[i] - s) - prior * shift;
            double step = score / ((w - 1) * s * (1 - s) + prior);
            shift = between(shift + between(step, -longest, longest), -largest, largest);
        }
        out[i] = leverage[i] == leverage[i] ? eta[i] + shift : NAN;
    }
}

/* left_out(prior, longest, largest, steps, eta, leverage, hit, out) */
static PyObject *left_out(PyObject *self, PyObject *args)
{
    Arrays arrays;
    double rules[4] = {0.0};
    for (Size i = 0; i < 4; i++) rules[i] = PyFloat_AsDouble(PyTuple_GetItem(args, i));
    if (take(args, 4, "dddD", &arrays)) return leave(&arrays, "arrays");
    Size n = COUNT(0);
    int fits = rules[3] >= 0 && rules[3] < 1000;
    for (int i = 1; i < 4; i++) fits &= COUNT(i) == n;
    if (!fits) return leave(&arrays, "arrays do not fit each other");
    Py_BEGIN_ALLOW_THREADS
    leave_out(AT(double, 0), AT(double, 1), AT(double, 2), n, rules, AT(double, 3));
    Py_END_ALLOW_THREADS
    return leave(&arrays, NULL);
}

/* -- sizes of residuals with noise: `intervals.Family.crossings` -------------------------- */

/* The sum of |scale shape + noise|, and how it grows with the scale. */
CLONES static double size_at(double scale, const double *RESTRICT shape,
                             const double *RESTRICT noise, Size n, double *growth)
{
    double size[LANES] = {0.0}, slope[LANES] = {0.0}, sum = 0.0;
    Size whole = n - n % LANES;
    *growth = 0.0;
    for (Size first = 0; first < whole; first += LANES)
        for (int l = 0; l < LANES; l++) {
            double x = scale * shape[first + l] + noise[first + l];
            size[l] += fabs(x);
            slope[l] += x > 0.0 ? shape[first + l] : x < 0.0 ? -shape[first + l] : 0.0;
        }
    for (Size i = whole; i < n; i++) {
        double x = scale * shape[i] + noise[i];
        sum += fabs(x);
        *growth += x > 0.0 ? shape[i] : x < 0.0 ? -shape[i] : 0.0;
    }
    for (int l = 0; l < LANES; l++) {
        sum += size[l];
        *growth += slope[l];
    }
    return sum;
}

/* crossings(steps, bound, shape, noise, scale): as `Family._descend`, from the scales given */
static PyObject *crossings(PyObject *self, PyObject *args)
{
    Arrays arrays;
    Size steps = PyLong_AsSsize_t(PyTuple_GetItem(args, 0));
    double bound = PyFloat_AsDouble(PyTuple_GetItem(args, 1));
    if (take(args, 2, "ddD", &arrays)) return leave(&arrays, "arrays");
    Size n = COUNT(0), rows = COUNT(2);
    double *scale = AT(double, 2);
    if (COUNT(1) != n * rows) return leave(&arrays, "arrays do not fit each other");
    Py_BEGIN_ALLOW_THREADS
    for (Size r = 0; r < rows; r++)
        for (Size step = 0; step < steps; step++) {
            double growth, before = scale[r];
            double size = size_at(before, AT(double, 0), AT(double, 1) + r * n, n, &growth);
            scale[r] = most(before - (size - bound) / (growth > 0.0 ? growth : INFINITY), 0.0);
            if (fabs(scale[r] - before) <= 1e-12 * before) break;
        }
    Py_END_ALLOW_THREADS
    return leave(&arrays, NULL);
}

/* -- moments of cells: `cells._added_up`, `grid.node_weights`, `kernels.sums_at` ---------- */

/* add_cells(cells, cell, table, sums): sums over runs of cells of each row of a table */
static PyObject *add_cells(PyObject *self, PyObject *args)
{
    Arrays arrays;
    Size cells = PyLong_AsSsize_t(PyTuple_GetItem(args, 0));
    if (take(args, 1, "qdD", &arrays)) return leave(&arrays, "arrays");
    Size steps = COUNT(0), rows = cells > 0 ? COUNT(2) / cells : 0;
    const int64_t *cell = AT(int64_t, 0);
    if (!(cells > 0 && COUNT(1) == rows * steps && COUNT(2) == rows * cells &&
          within_reach(cell, steps, cells)))
        return leave(&arrays, "arrays do not fit each other");
    Py_BEGIN_ALLOW_THREADS
    memset(AT(double, 2), 0, (size_t)(rows * cells) * sizeof(double));
    for (Size r = 0; r < rows; r++) {
        const double *row = AT(double, 1) + r * steps;
        double *sums = AT(double, 2) + r * cells;
        for (Size s = 0; s < steps; s++) sums[cell[s]] += row[s];
    }
    Py_END_ALLOW_THREADS
    return leave(&arrays, NULL);
}

CLONES static void weigh_nodes(const double *RESTRICT moments, Size order, Size cells,
                               const double *RESTRICT poly, double *RESTRICT weights)
{
    for (int shift = 0; shift < ORDER; shift++, poly += order)
        for (Size c = 0; c < cells; c++) {
            double sum = moments[c] * poly[0];
            for (Size j = 1; j < order; j++) sum += moments[j * cells + c] * poly[j];
            weights[shift + c] += sum;
        }
}

/* node_weights(cells, polynomials, moments, weights) */
static PyObject *node_weights(PyObject *self, PyObject *args)
{
    Arrays arrays;
    Size cells = PyLong_AsSsize_t(PyTuple_GetItem(args, 0));
    if (take(args, 1, "ddD", &arrays)) return leave(&arrays, "arrays");
    Size nodes = cells + ORDER - 1, order = COUNT(0) / ORDER; /* higher moments may be left out */
    Size columns = cells > 0 && order > 0 ? COUNT(1) / (order * cells) : 0;
    if (!(cells > 0 && order > 0 && order <= ORDER && COUNT(0) == ORDER * order &&
          COUNT(1) == columns * order * cells && COUNT(2) == columns * nodes))
        return leave(&arrays, "arrays do not fit each other");
    Py_BEGIN_ALLOW_THREADS
    memset(AT(double, 2), 0, (size_t)(columns * nodes) * sizeof(double));
    for (Size c = 0; c < columns; c++)
        weigh_nodes(AT(double, 1) + c * order * cells, order, cells, AT(double, 0),
                    AT(double, 2) + c * nodes);
    Py_END_ALLOW_THREADS
    return leave(&arrays, NULL);
}

#define MOST_SUMMED 8
#define TOGETHER 32 /* places that see the same nodes */

/* Bell-shaped kernel sums at one place, of columns at nodes. */
CLONES static void bell_sums(double at, double scale, const double *RESTRICT nodes,
                             const double *RESTRICT values, Size stride, Size count,
                             Size columns, double *sums)
{
    double kernel[LANES];
    for (Size first = 0; first < count; first += LANES) {
        Size width = count - first < LANES ? count - first : LANES;
        for (Size l = 0; l < width; l++) {
            double u = (at - nodes[first + l]) * scale;
            kernel[l] = exp_d(-0.5 * (u * u));
        }
        for (Size c = 0; c < columns; c++)
            for (Size l = 0; l < width; l++)
                sums[c] += kernel[l] * values[c * stride + first + l];
    }
}

/* bells(bandwidth, reach, places, nodes, values, sums) */
static PyObject *bells(PyObject *self, PyObject *args)
{
    Arrays arrays;
    double bandwidth = PyFloat_AsDouble(PyTuple_GetItem(args, 0));
    double reach = PyFloat_AsDouble(PyTuple_GetItem(args, 1));
    if (take(args, 2, "dddD", &arrays)) return leave(&arrays, "arrays");
    Size places = COUNT(0), nodes = COUNT(1), columns = places ? COUNT(3) / places : 0;
    if (!(bandwidth > 0 && columns <= MOST_SUMMED && COUNT(2) == columns * nodes &&
          COUNT(3) == columns * places))
        return leave(&arrays, "arrays do not fit each other");
    const double *at = AT(double, 0), *x = AT(double, 1);
    Py_BEGIN_ALLOW_THREADS
    for (Size p = 0; p < places; p++) {
        double sums[MOST_SUMMED] = {0.0};
        Size last = p - p % TOGETHER + TOGETHER - 1;
        Size from = first_from(x, nodes, at[p - p % TOGETHER] - reach);
        Size to = first_from(x, nodes, at[last < places ? last : places - 1] + reach);
        bell_sums(at[p], 1.0 / bandwidth, x + from, AT(double, 2) + from, nodes,
                  to > from ? to - from : 0, columns, sums);
        for (Size c = 0; c < columns; c++) AT(double, 3)[c * places + p] = sums[c];
    }
    Py_END_ALLOW_THREADS
    return leave(&arrays, NULL);
}

#if defined(__clang__)
#pragma clang fp contract(off)
#elif defined(__GNUC__)
#pragma GCC pop_options
#endif
