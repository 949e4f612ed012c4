// What a diagram draws of one model: a line, a band and three numbers.
// Either as evaluated in Python, or live from the sums at the chosen bandwidth.

function interpolate(x, y, at) {
  const last = x.length - 1;
  if (!(at >= x[0] && at <= x[last])) return NaN;
  let low = 0, high = last;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (x[middle] <= at) low = middle;
    else high = middle;
  }
  if (at === x[high]) return y[high];
  const share = high > low ? (at - x[low]) / (x[high] - x[low]) : 0;
  return share === 0 ? y[low] : y[low] + share * (y[high] - y[low]);
}

function bandOf(model, x, middle, density, gap, support) {
  const least = Math.min(G.least_mass, model.rows / 10);
  const height = density.map((value, i) => value * gap[i]);
  const seen = i => support[i] >= least && isFinite(height[i]) && isFinite(middle[i]);
  return { x, middle, height, seen };
}

// The gap as the printed numbers leave it, so that they add up; as in Python, printed_gap.
function printedGap(total, calibration, gap) {
  const rest = (Number(percent(total)) - Number(percent(calibration))) / 100;
  return isFinite(rest) ? rest : gap;
}

function liveRecord(model) {
  const e = estimateOf(model, S.width, S.kernel, S.score);
  const reach = model.z;
  return {
    live: true,
    x: PLACES,
    accuracy: e.accuracy,
    low: e.accuracy.map((m, i) => Math.max(0, m - reach * e.error[i])),
    high: e.accuracy.map((m, i) => Math.min(1, m + reach * e.error[i])),
    gap: e.gap,
    rows: e.rows,
    state: Uint8Array.from(e.rows, n => (n >= G.enough_rows ? 2 : n >= 1 ? 1 : 0)),
    band: bandOf(model, PLACES, e.accuracy, e.density, e.gap, e.support),
    density: e.density,
    calibration: [e.calibration, NaN, NaN],
    total: e.total,
    totalRange: [NaN, NaN],
    gapTotal: printedGap(e.total, e.calibration, e.total - e.calibration),
    gapRange: [NaN, NaN],
  };
}

// The line between its places; beyond the first and last, as there.
function centreOf(line) {
  const known = [...line.confidence.keys()].filter(i => isFinite(line.accuracy[i]));
  const x = known.map(i => line.confidence[i]), y = known.map(i => line.accuracy[i]);
  if (!x.length) return () => NaN;
  return at => interpolate(x, y, Math.min(x[x.length - 1], Math.max(x[0], at)));
}

// The band of an adaptive line is mass at the paper's bandwidth, centred on the line.
function reportedBand(model) {
  const { line, mass } = model;
  const centre = centreOf(line);
  if (model.sums && LIVE_SCORES.includes(S.score)) {
    const e = estimateOf(model, mass.bandwidth, mass.kernel, S.score);
    return bandOf(model, PLACES, PLACES.map(centre), e.density, e.gap, e.support);
  }
  const places = mass.density.map((_, i) => i / (mass.density.length - 1));
  return bandOf(model, places, places.map(centre), mass.density, mass.gaps[S.score], mass.support);
}

// At a fixed bandwidth Python gives no interval; the sums do.
function reportedRibbon(model) {
  const { line, mass } = model;
  if (line.bandwidth === null || !model.sums) return [line.low, line.high];
  const { error } = estimateOf(model, mass.bandwidth, mass.kernel, "brier");
  const spread = line.confidence.map(at => model.z * interpolate(PLACES, error, at));
  return [
    line.accuracy.map((m, i) => Math.max(0, m - spread[i])),
    line.accuracy.map((m, i) => Math.min(1, m + spread[i])),
  ];
}

function reportedRecord(model) {
  const { line } = model;
  const parts = model.reported[S.score];
  const [low, high] = reportedRibbon(model);
  return {
    live: false,
    x: line.confidence,
    accuracy: line.accuracy,
    low,
    high,
    wide: [line.band_low, line.band_high],
    gap: line.gaps[S.score],
    rows: line.support,
    state: line.state,
    band: reportedBand(model),
    density: null,
    calibration: parts.calibration,
    total: parts.total[0],
    totalRange: parts.total.slice(1),
    gapTotal: printedGap(parts.total[0], parts.calibration[0], parts.gap[0]),
    gapRange: parts.gap.slice(1),
  };
}

const recordOf = model => (isLive() && model.sums ? liveRecord(model) : reportedRecord(model));

// What can be read off at one confidence; null where no row is near.
function readingAt(record, at) {
  const read = column => interpolate(record.x, column, at);
  const accuracy = read(record.accuracy), rows = read(record.rows);
  const near = record.state[nearest(record.x, at)];
  if (!isFinite(accuracy) || !near || !(rows >= 0.5)) return null;
  return { accuracy, low: read(record.low), high: read(record.high), gap: read(record.gap), rows };
}

function nearest(x, at) {
  let best = 0;
  for (let i = 1; i < x.length; i++) if (Math.abs(x[i] - at) < Math.abs(x[best] - at)) best = i;
  return best;
}
