// The data of the page: JSON, with columns of numbers as base64.

const D = JSON.parse(document.getElementById("data").textContent);
const EACH = D.each[0].toUpperCase() + D.each.slice(1);
const { geometry: G, box: BOX, nodes: M } = D;
const placeOf = node => node / (M - 1);
const PLACES = Float64Array.from({ length: M }, (_, node) => placeOf(node));

const WORDS = { inf: Infinity, "-inf": -Infinity, nan: NaN };
const number = value => (typeof value === "string" ? WORDS[value] : value);
const numbers = values => values.map(number);

function decode(text, Kind = Float32Array) {
  const bytes = Uint8Array.from(atob(text), sign => sign.charCodeAt(0));
  return Float64Array.from(new Kind(bytes.buffer));
}

const decodeEach = table =>
  Object.fromEntries(Object.entries(table).map(([key, text]) => [key, decode(text)]));
const numberEach = table =>
  Object.fromEntries(Object.entries(table).map(([key, value]) => [key, number(value)]));

function readSums(given) {
  const weight = decode(given.weight);
  const below = new Float64Array(M + 1);
  for (let i = 0; i < M; i++) below[i + 1] = below[i] + weight[i];
  return {
    ...given,
    weight,
    below,
    hits: decode(given.hits),
    losses: decodeEach(given.losses),
    infinite: given.infinite ? decode(given.infinite) : new Float64Array(M),
    slope: decode(given.slope, Float64Array),
    total: numberEach(given.total),
    tangent: numberEach(given.tangent),
    unit: numberEach(given.unit),
  };
}

function readLine(given) {
  const columns = {};
  for (const key of ["confidence", "accuracy", "low", "high", "band_low", "band_high", "support"]) {
    columns[key] = decode(given[key]);
  }
  return {
    ...columns,
    gaps: decodeEach(given.gaps),
    state: Uint8Array.from(given.state, Number),
    bandwidth: given.bandwidth,
  };
}

function readMass(given) {
  if (!given.density) return given;
  return {
    ...given,
    density: decode(given.density),
    support: decode(given.support),
    gaps: decodeEach(given.gaps),
  };
}

function readReported(given) {
  const read = {};
  for (const [score, parts] of Object.entries(given)) {
    read[score] = {
      calibration: numbers(parts.calibration),
      total: numbers(parts.total),
      gap: numbers(parts.sharpness_gap),
    };
  }
  return read;
}

const MODELS = D.models.map((model, index) => ({
  ...model,
  index,
  atoms: model.atoms.map(numbers),
  metrics: Object.fromEntries(
    Object.entries(model.metrics).map(([key, values]) => [key, numbers(values)])),
  reported: readReported(model.reported),
  line: readLine(model.line),
  mass: readMass(model.mass),
  sums: model.sums && readSums(model.sums),
}));
