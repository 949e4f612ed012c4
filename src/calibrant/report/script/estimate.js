// The paper's kernel estimate from sums on the nodes: same formulas as in Python.

const LIVE_SCORES = D.live;
const KERNELS = {
  gaussian: { profile: u => Math.exp(-0.5 * u * u), mass: Math.sqrt(2 * Math.PI), reach: 8.6 },
  epanechnikov: { profile: u => Math.max(1 - u * u, 0), mass: 4 / 3, reach: 1 },
};

const xlogx = p => (p > 0 ? p * Math.log(p) : 0);
const PHI = { brier: m => m * m, log: m => xlogx(m) + xlogx(1 - m) };

function divergence(score, m, h) {
  if (score === "brier") return (m - h) * (m - h);
  const part = (a, b) => (a > 0 ? a * Math.log(a / b) : 0);
  return part(m, h) + part(1 - m, 1 - h);
}

// The kernel at whole numbers of nodes. The grid is uniform, so one table serves all.
function kernelTable(bandwidth, kernel, boundary) {
  const { profile, reach } = KERNELS[kernel];
  let last = Math.ceil(reach * bandwidth * (M - 1));
  if (boundary === "none") last = Math.min(last, M - 1);
  return Float64Array.from({ length: last + 1 }, (_, d) => profile(d / (bandwidth * (M - 1))));
}

// A column with its images beyond 0 and 1; a node on the edge is its own image.
function mirrored(column, pad) {
  if (!pad) return column;
  const out = new Float64Array(M + 2 * pad);
  const period = 2 * (M - 1);
  for (let k = 0; k < out.length; k++) {
    const j = (((k - pad) % period) + period) % period;
    const node = Math.min(j, period - j);
    out[k] = node === 0 || node === M - 1 ? 2 * column[node] : column[node];
  }
  return out;
}

function kernelSums(sums, score, table) {
  const pad = sums.boundary === "reflect" ? table.length - 1 : 0;
  const [n, c, l, lost] = [sums.weight, sums.hits, sums.losses[score], sums.infinite]
    .map(column => mirrored(column, pad));
  const whole = score === "brier"; // no Brier loss is infinite
  const [mass, hits, loss, finite, hits2, misses2] = Array.from({ length: 6 },
    () => new Float64Array(M));
  for (let i = 0; i < M; i++) {
    let s0 = 0, s1 = 0, sl = 0, sf = 0, q1 = 0, q0 = 0;
    const at = i + pad;
    const from = Math.max(0, at - table.length + 1);
    const to = Math.min(n.length - 1, at + table.length - 1);
    for (let j = from; j <= to; j++) {
      if (n[j] === 0) continue;
      const k = table[j > at ? j - at : at - j];
      const k2 = k * k;
      s0 += k * n[j];
      s1 += k * c[j];
      sl += k * l[j];
      if (!whole) sf += k * (n[j] - lost[j]);
      q1 += k2 * c[j];
      q0 += k2 * (n[j] - c[j]);
    }
    mass[i] = s0; hits[i] = s1; loss[i] = sl; finite[i] = whole ? s0 : sf;
    hits2[i] = q1; misses2[i] = q0;
  }
  return { mass, hits, loss, finite, hits2, misses2 };
}

function rowsWithin(sums, i, bandwidth) {
  const reach = bandwidth * (M - 1);
  const first = Math.max(0, Math.ceil(i - reach - 1e-9));
  const last = Math.min(M - 1, Math.floor(i + reach + 1e-9));
  return sums.below[last + 1] - sums.below[first];
}

function calibrationError(sums, accuracy, score) {
  const [no, yes] = sums.certain;
  const plugin = sums.estimator === "plugin";
  if (score === "log" && !plugin) {
    // A forecast of 0 or 1 that does not hold costs without end.
    if ((no && accuracy[0] > 1e-9) || (yes && accuracy[M - 1] < 1 - 1e-9)) return Infinity;
  }
  let total = 0;
  for (let i = 0; i < M; i++) {
    const n = sums.weight[i], m = accuracy[i];
    if (!(n > 0)) continue;
    if (plugin) total += n * PHI[score](m);
    else if (score === "brier") total += n * (m - placeOf(i)) ** 2;
    else total += n * PHI.log(m) - m * sums.slope[i];
  }
  const mean = total / sums.rows;
  if (plugin) return sums.unit[score] + mean;
  return score === "brier" ? mean : mean - sums.tangent.log;
}

function estimate(sums, bandwidth, kernel, score) {
  const table = kernelTable(bandwidth, kernel, sums.boundary);
  const found = kernelSums(sums, score, table);
  const factor = score === "brier" ? sums.factor : 1;
  const [accuracy, error, density, gap, rows] = Array.from({ length: 5 },
    () => new Float64Array(M));
  const peak = KERNELS[kernel].mass * bandwidth * sums.rows;
  for (let i = 0; i < M; i++) {
    const mass = found.mass[i];
    const m = Math.min(1, Math.max(0, found.hits[i] / mass));
    const spread = found.hits2[i] * (1 - m) ** 2 + found.misses2[i] * m * m;
    accuracy[i] = m;
    error[i] = Math.sqrt(Math.max(spread, 0)) / mass;
    density[i] = mass / peak;
    gap[i] = found.loss[i] / found.finite[i] - factor * divergence(score, m, placeOf(i));
    // A row exactly one bandwidth away has weight 0 in the Epanechnikov kernel.
    rows[i] = mass > 0 ? rowsWithin(sums, i, bandwidth) : 0;
  }
  const calibration = factor * calibrationError(sums, accuracy, score);
  const total = sums.total[score];
  return { accuracy, error, density, gap, rows, support: found.mass, calibration, total };
}

// Moving back and forth between settings should not compute anything twice.
const remembered = new Map();
function estimateOf(model, bandwidth, kernel, score) {
  const key = [model.index, bandwidth, kernel, score].join("|");
  if (!remembered.has(key)) {
    if (remembered.size > 8 * MODELS.length) remembered.clear();
    remembered.set(key, estimate(model.sums, bandwidth, kernel, score));
  }
  return remembered.get(key);
}
