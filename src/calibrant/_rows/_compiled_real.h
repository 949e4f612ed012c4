/* The loops over matrices, included by `_compiled.c` once for float and once for double.

   REAL is the type, EXP its exponential, and NAME names a function of that type. */

#define LANES 32 /* more than compilers unroll before they look for vectors */

/* -- rows of scores: sums without the largest entry -------------------------------------- */

/* The largest entry, or NaN if there is any; the least one of probabilities. */
INLINE REAL NAME(ends)(int logits, const REAL *x, Size k, REAL *low)
{
    REAL high[LANES], bottom[LANES], odd[LANES] = {0}, top = x[0], wrong = 0;
    Size whole = k - k % LANES;
    for (int l = 0; l < LANES; l++) high[l] = bottom[l] = top;
    for (Size j = 0; j < whole; j += LANES)
        for (int l = 0; l < LANES; l++) {
            REAL v = x[j + l];
            high[l] = v > high[l] ? v : high[l];
            if (!logits) bottom[l] = v < bottom[l] ? v : bottom[l];
            odd[l] += v == v ? (REAL)0 : (REAL)1;
        }
    for (Size j = whole; j < k; j++) {
        REAL v = x[j];
        high[0] = v > high[0] ? v : high[0];
        bottom[0] = v < bottom[0] ? v : bottom[0];
        wrong = v == v ? wrong : 1;
    }
    for (int l = 0; l < LANES; l++) {
        top = high[l] > top ? high[l] : top;
        *low = bottom[l] < *low ? bottom[l] : *low;
        wrong += odd[l];
    }
    return wrong == 0 ? top : (REAL)NAN;
}

CLONES static REAL NAME(largest)(const REAL *x, Size k)
{
    REAL low = 0;
    return NAME(ends)(1, x, k, &low);
}

CLONES static REAL NAME(both_ends)(const REAL *x, Size k, REAL *low)
{
    return NAME(ends)(0, x, k, low);
}

/* Where the largest entry is first found. */
CLONES static Size NAME(first_of)(const REAL *x, Size k, REAL top)
{
    Size at = 0;
    for (; at + LANES <= k; at += LANES) {
        int32_t found = 0;
        for (int l = 0; l < LANES; l++) found |= x[at + l] == top;
        if (found) break;
    }
    while (at < k - 1 && x[at] != top) at++;
    return at;
}

/* The sum of all lanes, in double: always the same pairs first. */
INLINE double NAME(total)(const REAL *lane)
{
    double sums[8];
    for (int l = 0; l < 8; l++) sums[l] = (double)lane[l] + (double)lane[l + 8];
    for (Size first = 16; first < LANES; first += 8)
        for (int l = 0; l < 8; l++) sums[l] += lane[first + l];
    for (int l = 0; l < 4; l++) sums[l] += sums[l + 4];
    return (sums[0] + sums[2]) + (sums[1] + sums[3]);
}

/* As many entries as there are lanes, with `other` for those beyond the end of a row. */
INLINE void NAME(pad)(const REAL *part, Size size, REAL other, REAL *to)
{
    for (int l = 0; l < LANES; l++) to[l] = l < size ? part[l] : other;
}

INLINE void NAME(add_lanes)(int logits, const REAL *v, REAL top, REAL (*to)[LANES])
{
    for (int l = 0; l < LANES; l++) {
        REAL e = logits ? EXP(v[l] - top) : v[l];
        to[0][l] += e;
        to[1][l] += e * e;
    }
}

/* Ask for lanes of the next row, while this one keeps the processor busy. */
INLINE void NAME(fetch)(const REAL *lanes)
{
    for (Size byte = 0; byte < (Size)(LANES * sizeof(REAL)); byte += 64)
        PREFETCH((const char *)lanes + byte);
}

/* Sums of all entries but the best (of exponentials relative to it), and of squares. */
INLINE void NAME(sums_along)(int logits, const REAL *x, Size k, Size best, double *sums)
{
    const REAL top = x[best], nothing = logits ? (REAL)-INFINITY : 0;
    for (Size first = 0; first < k; first += CHUNK) {
        REAL to[2][LANES] = {{0}}, last[LANES];
        Size size = k - first < CHUNK ? k - first : CHUNK, whole = size - size % LANES;
        Size at = best - first, special = at < 0 || at >= size ? -LANES : at - at % LANES;
        const REAL *part = x + first;
        Size from[2] = {0, special + LANES}, until[2] = {special, whole};
        for (int side = 0; side < 2; side++)
            for (Size j = from[side]; j < until[side]; j += LANES) {
                NAME(fetch)(part + k + j);
                NAME(add_lanes)(logits, part + j, top, to);
            }
        if (whole < size && special < whole) {
            NAME(pad)(part + whole, size - whole, nothing, last);
            NAME(add_lanes)(logits, last, top, to);
        }
        if (special >= 0) { /* the lanes that hold the best */
            NAME(pad)(part + special, size - special, nothing, last);
            last[at - special] = nothing;
            NAME(add_lanes)(logits, last, top, to);
        }
        sums[0] += NAME(total)(to[0]);
        sums[1] += NAME(total)(to[1]);
    }
}

CLONES static void NAME(sums_of_logits)(const REAL *x, Size k, Size best, double *sums)
{
    NAME(sums_along)(1, x, k, best, sums);
}

CLONES static void NAME(sums_of_probs)(const REAL *x, Size k, Size best, double *sums)
{
    NAME(sums_along)(0, x, k, best, sums);
}

/* The same for all rows of a block at once, of few classes, with their largest entries. */
INLINE void NAME(sums_across)(int logits, const REAL *x, int rows, Size k, Block *b)
{
    REAL column[FEW_CLASSES][BLOCK], top[BLOCK];
    REAL rest[BLOCK] = {0}, squares[BLOCK] = {0}, below[BLOCK] = {0}, low[BLOCK] = {0};
    memset(column, 0, sizeof column);
    for (int i = 0; i < rows; i++)
        for (Size j = 0; j < k; j++) column[j][i] = x[i * k + j];
    for (int i = 0; i < BLOCK; i++) {
        top[i] = column[0][i];
        b->best[i] = 0;
    }
    for (int32_t j = 1; j < k; j++)
        for (int i = 0; i < BLOCK; i++) {
            b->best[i] = column[j][i] > top[i] ? j : b->best[i];
            top[i] = column[j][i] > top[i] ? column[j][i] : top[i];
        }
    for (Size j = 0; j < k; j++)
        for (int i = 0; i < BLOCK; i++) {
            REAL v = column[j][i], is_below = v < top[i] ? (REAL)1 : (REAL)0;
            REAL e = is_below * (logits ? EXP(v - top[i]) : v);
            rest[i] += e;
            squares[i] += e * e;
            below[i] += is_below;
            if (!logits) low[i] = v < low[i] ? v : low[i];
        }
    for (int i = 0; i < BLOCK; i++) {
        b->top[i] = top[i];
        b->rest[i] = rest[i];
        b->squares[i] = squares[i];
        b->odd[i] = (double)k - below[i];
        b->low[i] = low[i];
    }
}

CLONES static void NAME(logits_across)(const REAL *x, int rows, Size k, Block *b)
{
    NAME(sums_across)(1, x, rows, k, b);
}

CLONES static void NAME(probs_across)(const REAL *x, int rows, Size k, Block *b)
{
    NAME(sums_across)(0, x, rows, k, b);
}

static void NAME(add_up)(int logits, const REAL *x, const int64_t *labels, int rows, Size k,
                         Block *b)
{
    if (k <= FEW_CLASSES) (logits ? NAME(logits_across) : NAME(probs_across))(x, rows, k, b);
    for (int i = 0; i < rows; i++) {
        const REAL *row = x + i * k;
        if (k > FEW_CLASSES) {
            REAL low = 0;
            REAL top = logits ? NAME(largest)(row, k) : NAME(both_ends)(row, k, &low);
            Size best = NAME(first_of)(row, k, top);
            double sums[2] = {0.0, 0.0};
            (logits ? NAME(sums_of_logits) : NAME(sums_of_probs))(row, k, best, sums);
            b->rest[i] = sums[0], b->squares[i] = sums[1];
            b->best[i] = (int32_t)best;
            b->top[i] = top, b->low[i] = low, b->odd[i] = 1.0;
        }
        b->own[i] = row[labels[i]];
        b->hit[i] = b->best[i] == labels[i];
    }
}

static int NAME(has_nan)(const REAL *row, Size k)
{
    int found = 0;
    for (Size j = 0; j < k; j++) found |= row[j] != row[j];
    return found;
}

/* As `losses._log_rest`. */
static double NAME(log_rest)(const REAL *row, Size k, double top, Size best)
{
    double second = -INFINITY, rest = 0.0;
    for (Size j = 0; j < k; j++)
        if (j != best) second = most(row[j], second);
    if (second == -INFINITY) return second;
    for (Size j = 0; j < k; j++)
        if (j != best) rest += exp_d(row[j] - second);
    return (second - top) + log_sum(0.0, rest);
}

/* Say whether a row breaks a rule; take sums that underflowed again, in double. */
static int NAME(mend_logits)(const REAL *row, Size k, Block *b, int i)
{
    double top = b->top[i];
    if (!(fabs(top) < INFINITY)) return 1;
    if (b->odd[i] > 1.0 && NAME(has_nan)(row, k)) return 1;
    if (b->rest[i] >= (sizeof(REAL) == 4 ? 1e-25 : TINY)) return 0;
    double log_rest = NAME(log_rest)(row, k, top, b->best[i]), rest = exp(log_rest);
    b->confidence[i] = 1.0 / (1.0 + rest);
    b->log_odds[i] = -log_rest;
    b->log[i] = log1p(rest) + (top - b->own[i]);
    return 0;
}

/* Say whether a row breaks a rule; take logs of 0 and its like again. */
static int NAME(mend_probs)(const REAL *row, Size k, double tolerance, Block *b, int i)
{
    double top = b->top[i], rest = b->rest[i], p_y = b->own[i];
    if (rest < TINY || p_y < TINY) {
        b->log_odds[i] = log(top) - log(rest);
        b->log[i] = -log(least(p_y, 1.0));
    }
    if (!(fabs(top + rest - 1.0) <= tolerance) || b->low[i] < 0.0) return 1;
    return b->odd[i] > 1.0 && NAME(has_nan)(row, k);
}

static void NAME(reduce)(int logits, double tolerance, const REAL *x, const int64_t *labels,
                         Size n, Size k, double *const *out, int32_t *predicted,
                         unsigned char *offends)
{
    Block b;
    memset(&b, 0, sizeof b);
    for (Size first = 0; first < n; first += BLOCK) {
        const REAL *rows = x + first * k;
        int size = (int)(n - first < BLOCK ? n - first : BLOCK);
        NAME(add_up)(logits, rows, labels + first, size, k, &b);
        (logits ? finish_logits : finish_probs)(&b);
        for (int i = 0; i < size; i++)
            offends[first + i] = (unsigned char)(
                logits ? NAME(mend_logits)(rows + i * k, k, &b, i)
                       : NAME(mend_probs)(rows + i * k, k, tolerance, &b, i));
        const double *made[] = {b.confidence, b.log_odds, b.hit, b.brier, b.log};
        for (int c = 0; c < 5; c++)
            memcpy(out[c] + first, made[c], (size_t)size * sizeof(double));
        memcpy(predicted + first, b.best, (size_t)size * sizeof(int32_t));
    }
}

/* -- temperature: log loss, slope and curvature of each row at one beta ------------------ */

/* Sums of e, e d and e d^2 with d = z - top and e = exp(beta d); NaN stays NaN. */
INLINE void NAME(bend_lanes)(const REAL *z, REAL top, REAL beta, REAL (*to)[LANES])
{
    for (int l = 0; l < LANES; l++) {
        REAL d = z[l] - top;
        d = d < (REAL)-1e30 ? (REAL)-1e30 : d;
        REAL e = EXP(beta * d), ed = e * d;
        to[0][l] += e;
        to[1][l] += ed;
        to[2][l] += ed * d;
    }
}

CLONES static void NAME(bend)(const REAL *x, Size k, REAL top, REAL beta, double *sums)
{
    for (Size first = 0; first < k; first += CHUNK) {
        REAL to[3][LANES] = {{0}};
        Size size = k - first < CHUNK ? k - first : CHUNK, whole = size - size % LANES;
        const REAL *part = x + first;
        for (Size j = 0; j < whole; j += LANES) {
            NAME(fetch)(part + k + j);
            NAME(bend_lanes)(part + j, top, beta, to);
        }
        if (whole < size) {
            REAL last[LANES];
            NAME(pad)(part + whole, size - whole, (REAL)-INFINITY, last);
            NAME(bend_lanes)(last, top, beta, to);
        }
        for (int c = 0; c < 3; c++) sums[c] += NAME(total)(to[c]);
    }
}

static void NAME(bend_rows)(double beta, const REAL *x, const int64_t *labels, Size n, Size k,
                            double *value, double *slope, double *curvature, double *own)
{
    for (Size i = 0; i < n; i++) {
        const REAL *row = x + i * k;
        double sums[3] = {0.0, 0.0, 0.0}, gap;
        REAL top = NAME(largest)(row, k);
        NAME(bend)(row, k, top, (REAL)beta, sums);
        gap = (double)row[labels[i]] - (double)top;
        gap = gap < -1e30 ? -1e30 : gap;
        double mean = sums[1] / sums[0];
        value[i] = log_sum(0.0, sums[0]) - beta * gap;
        slope[i] = mean - gap;
        curvature[i] = sums[2] / sums[0] - mean * mean;
        own[i] = gap;
    }
}

/* -- recalibration: new values of probabilities, by bin or along a curve ----------------- */

CLONES static double NAME(sum)(const REAL *x, Size k)
{
    double lane[LANES] = {0.0}, total = 0.0;
    Size whole = k - k % LANES;
    for (Size j = 0; j < whole; j += LANES)
        for (int l = 0; l < LANES; l++) lane[l] += x[j + l];
    for (Size j = whole; j < k; j++) lane[j - whole] += x[j];
    for (int l = 0; l < LANES; l++) total += lane[l];
    return total;
}

/* The sum of a row, in double; `wrong` is set where an entry is negative or NaN. */
CLONES static double NAME(checked_sum)(const REAL *x, Size k, int32_t *wrong)
{
    double lane[LANES] = {0.0}, total = 0.0;
    int32_t odd[LANES] = {0};
    Size whole = k - k % LANES;
    for (Size j = 0; j < whole; j += LANES)
        for (int l = 0; l < LANES; l++) {
            lane[l] += x[j + l];
            odd[l] |= !(x[j + l] >= (REAL)0);
        }
    for (Size j = whole; j < k; j++) {
        lane[j - whole] += x[j];
        odd[0] |= !(x[j] >= (REAL)0);
    }
    for (int l = 0; l < LANES; l++) {
        total += lane[l];
        *wrong |= odd[l];
    }
    return total;
}

CLONES static void NAME(divide)(const REAL *RESTRICT x, Size k, REAL by, REAL *RESTRICT out)
{
    for (Size j = 0; j < k; j++) out[j] = x[j] / by;
}

/* The next place from `at` on whose entry is not below `near`, or k. */
CLONES static Size NAME(next_from)(const REAL *x, Size at, Size k, REAL near)
{
    for (; at % LANES && at < k; at++)
        if (x[at] >= near) return at;
    for (; at + LANES <= k; at += LANES) {
        int32_t found = 0;
        for (int l = 0; l < LANES; l++) found |= x[at + l] >= near;
        if (found) break;
    }
    while (at < k && !(x[at] >= near)) at++;
    return at;
}

/* The bin (a, b] of equal width; a product rounds to one too far at most. What is no
   probability, and refused elsewhere, has a bin, too. */
INLINE Size NAME(bin_of)(double p, const double *edges, Size bins)
{
    double product = p > 0 ? p * (double)bins : 0;
    Size at = product < (double)bins ? (Size)product : bins - 1;
    if (at > 0 && p <= edges[at]) return at - 1;
    if (at < bins - 1 && p > edges[at + 1]) return at + 1;
    return at;
}

/* Nearly all probabilities are in the first bin; `values` by bin, then class. A row is
   made in `fresh`, and written once. */
static void NAME(replace)(const REAL *x, Size n, Size k, const double *edges, Size bins,
                          const REAL *values, const int64_t *absent, Size absents,
                          REAL *fresh, REAL *out)
{
    REAL near = (REAL)edges[1];
    for (Size i = 0; i < n; i++) {
        const REAL *row = x + i * k;
        memcpy(fresh, values, (size_t)k * sizeof(REAL));
        for (Size j = NAME(next_from)(row, 0, k, near); j < k;
             j = NAME(next_from)(row, j + 1, k, near))
            fresh[j] = values[NAME(bin_of)(row[j], edges, bins) * k + j];
        for (Size c = 0; c < absents; c++) fresh[absent[c]] = row[absent[c]];
        double total = NAME(sum)(fresh, k);
        if (total == 0) {
            memcpy(fresh, row, (size_t)k * sizeof(REAL));
            total = NAME(sum)(fresh, k);
        }
        NAME(divide)(fresh, k, (REAL)total, out + i * k);
    }
}

/* Add a weight for each entry that is below `near`. */
CLONES static void NAME(add_below)(const REAL *RESTRICT row, Size k, REAL near, double w,
                                   double *RESTRICT first)
{
    for (Size c = 0; c < k; c++) first[c] += row[c] < near ? w : 0.0;
}

/* Weight of all rows, and of those of the class, by class, then bin; `first` is that of
   entries below the second bin. */
static void NAME(tally)(const REAL *x, Size n, Size k, const double *edges, Size bins,
                        const double *weight, const int64_t *labels, double *first,
                        double *counts, double *hits)
{
    REAL near = (REAL)edges[1];
    for (Size i = 0; i < n; i++) {
        const REAL *row = x + i * k;
        double w = weight ? weight[i] : 1.0;
        NAME(add_below)(row, k, near, w, first);
        for (Size j = NAME(next_from)(row, 0, k, near); j < k;
             j = NAME(next_from)(row, j + 1, k, near))
            counts[j * bins + NAME(bin_of)(row[j], edges, bins)] += w;
        hits[labels[i] * bins + NAME(bin_of)(row[labels[i]], edges, bins)] += w;
    }
    for (Size c = 0; c < k; c++) counts[c * bins] += first[c];
}

static int NAME(add_rows_up)(const REAL *x, Size n, Size k, double *sums)
{
    int32_t wrong = 0;
    for (Size i = 0; i < n; i++) sums[i] = NAME(checked_sum)(x + i * k, k, &wrong);
    return wrong != 0;
}

/* Nearly all probabilities get the least value of their class: up to `flat`. A segment is
   its first knot, the value there, the slope, and the value at its end. */
static void NAME(follow)(const REAL *x, Size n, Size k, const int64_t *starts,
                         const double *segments, const REAL *lowest, const REAL *flat,
                         REAL *out)
{
    for (Size i = 0; i < n; i++) {
        const REAL *row = x + i * k;
        REAL *new = out + i * k;
        memcpy(new, lowest, (size_t)k * sizeof(REAL));
        for (Size c = 0; c < k; c++) {
            if (!(row[c] > flat[c])) continue;
            double p = row[c];
            int64_t at = starts[c], left = starts[c + 1] - at - 1;
            while (left > 0) { /* the last knot that is not above */
                int64_t half = (left + 1) >> 1;
                at += segments[4 * (at + half)] <= p ? half : 0;
                left -= half;
            }
            const double *on = segments + 4 * at;
            new[c] = (REAL)least(on[2] * (p - on[0]) + on[1], on[3]);
        }
    }
}

/* Rows between the marks of each class (`_isotonic.Marks`): their weight and ends. */
CLONES static void NAME(below_marks)(const REAL *RESTRICT row, Size k, double w,
                                     const REAL *RESTRICT first, double *RESTRICT weight,
                                     REAL *RESTRICT low, REAL *RESTRICT high)
{
    for (Size c = 0; c < k; c++) {
        int below = row[c] < first[c];
        weight[c] += below ? w : 0.0;
        low[c] = row[c] < low[c] ? row[c] : low[c];
        high[c] = below & (row[c] > high[c]) ? row[c] : high[c];
    }
}

static void NAME(stretches)(const REAL *x, Size n, Size k, const double *weights,
                            const int64_t *starts, const REAL *marks, const REAL *first,
                            double *below_weight, REAL *below_low, REAL *below_high,
                            double *weight, REAL *low, REAL *high)
{
    for (Size i = 0; i < n; i++) {
        const REAL *row = x + i * k;
        NAME(below_marks)(row, k, weights[i], first, below_weight, below_low, below_high);
        for (Size c = 0; c < k; c++) {
            REAL p = row[c];
            if (!(p >= first[c])) continue;
            int64_t at = starts[c], left = starts[c + 1] - at;
            while (left > 0) { /* the first mark that is not below */
                int64_t half = (left + 1) >> 1;
                at += marks[at + half - 1] < p ? half : 0;
                left -= half;
            }
            int64_t to = 2 * at + c + (at < starts[c + 1] && marks[at] == p);
            weight[to] += weights[i];
            low[to] = p < low[to] ? p : low[to];
            high[to] = p > high[to] ? p : high[to];
        }
    }
}

#undef LANES
