// One calibration-sharpness diagram, of one model or of several laid over each other.

const isDrawn = (record, scale) => i =>
  record.band.seen(i) && record.band.height[i] * scale > G.least_band;
const upper = (band, scale) => i => band.middle[i] + (band.height[i] * scale) / 2;
const lower = (band, scale) => i => Math.max(0, band.middle[i] - (band.height[i] * scale) / 2);

function peakOf(record) {
  const drawn = isDrawn(record, 1);
  return record.band.height.reduce((most, h, i) => (drawn(i) ? Math.max(most, h) : most), 0);
}

// One scale for all bands, from the models that are not trivial; the key states it.
function bandScale(pairs) {
  const honest = pairs.filter(([model]) => !model.trivial);
  const peaks = (honest.length ? honest : pairs).map(([, record]) => peakOf(record));
  const peak = Math.max(0, ...peaks);
  return G.scales.find(s => peak * s <= G.most_band) ?? G.scales.at(-1);
}

function topOf(record, scale) {
  if (!S.band) return 1;
  const drawn = isDrawn(record, scale), up = upper(record.band, scale);
  return record.band.height.reduce((top, _, i) => (drawn(i) ? Math.max(top, up(i)) : top), 1);
}

function layOut(width, top, big) {
  const { left, head } = BOX, right = big ? big : BOX.right;
  const height = big ? Math.min(420, width * 0.55) : Math.min(width * 0.92, Math.min(420, 250 + Math.max(0, width - 300) * 0.5));
  const floor = head + height, base = floor + BOX.between + BOX.strip;
  return {
    left, right, head, floor, base, width, top,
    x: share => left + share * (width - left - right),
    y: value => head + (1 - Math.min(value, top) / top) * height,
    total: base + 34,
  };
}

function drawAxes(svg, box) {
  for (const tick of [0, 0.25, 0.5, 0.75, 1]) {
    svg.append(make("path", { "class": "grid",
      d: `M${box.x(0)} ${box.y(tick)}H${box.x(1)}M${box.x(tick)} ${box.head}V${box.floor}` }));
    if (tick % 0.5 === 0) svg.append(textAt(box.left - 6, box.y(tick) + 4, "end", tick));
    const anchor = tick === 0 ? "start" : tick === 1 ? "end" : "middle";
    svg.append(textAt(box.x(tick), box.base + 14, anchor, tick));
  }
  svg.append(
    textAt(box.x(0.5), box.base + 29, "middle", D.words.said),
    make("path", { "class": "axis",
      d: `M${box.x(0)} ${box.floor}H${box.x(1)}M${box.x(0)} ${box.base}H${box.x(1)}` }));
}

const stepOf = x => (x.length > 600 ? 2 : 1);

function drawBand(layer, box, model, record, scale) {
  const { band } = record;
  const hatched = S.score === "log" && model.infinite > 0;
  const x = i => box.x(band.x[i]);
  for (const [first, last] of runsOf(band.x.length, isDrawn(record, scale))) {
    const step = stepOf(band.x);
    const there = pathAlong(first, last, x, i => box.y(upper(band, scale)(i)), step);
    const back = pathAlong(first, last, x, i => box.y(lower(band, scale)(i)), step);
    layer.append(make("path", {
      "class": hatched ? "band hatched" : "band",
      d: closedPath(there, back),
      fill: hatched ? `url(#hatch${model.index})` : colour(model),
      stroke: colour(model),
    }));
  }
}

function hatching(model) {
  const line = make("line", { x1: 0, x2: 0, y1: 0, y2: 6, stroke: colour(model),
    "stroke-width": 2, opacity: 0.55 });
  return make("defs", {}, make("pattern", { id: `hatch${model.index}`, width: 6, height: 6,
    patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" }, line));
}

// A band cut by the shared axis says how far it goes.
function drawCut(layer, box, model, record, scale) {
  const drawn = isDrawn(record, scale), up = upper(record.band, scale);
  let peak = box.top + 1e-9, first = -1;
  record.band.height.forEach((_, i) => {
    if (!drawn(i) || up(i) <= box.top + 1e-9) return;
    if (first < 0) first = i;
    peak = Math.max(peak, up(i));
  });
  if (first < 0) return;
  const at = record.band.x[first], before = at > 0.4;
  layer.append(textAt(box.x(at) + (before ? -6 : 6), box.head + 11, before ? "end" : "start",
    `band to ${peak.toFixed(2)} ↑`, { fill: colour(model) }));
}

// The darker ribbon holds at each place; the lighter one, of adaptive lines, at all at once.
function drawRibbons(layer, box, model, record) {
  if (record.wide) drawRibbon(layer, box, model, record, ...record.wide, "wide ribbon");
  drawRibbon(layer, box, model, record, record.low, record.high, "ribbon");
}

function drawRibbon(layer, box, model, record, low, high, name) {
  const known = i => record.state[i] === 2 && isFinite(low[i]) && isFinite(high[i]);
  const x = i => box.x(record.x[i]);
  for (const [first, last] of runsOf(record.x.length, known)) {
    const step = stepOf(record.x);
    const there = pathAlong(first, last, x, i => box.y(high[i]), step);
    const back = pathAlong(first, last, x, i => box.y(low[i]), step);
    layer.append(make("path", { "class": name, d: closedPath(there, back), fill: colour(model) }));
  }
}

function drawLine(layer, box, model, record, alone) {
  const x = i => box.x(record.x[i]), y = i => box.y(record.accuracy[i]);
  const step = stepOf(record.x);
  for (const [state, name] of [[2, "curve"], [1, "faint"]]) {
    for (const [first, last] of runsOf(record.x.length, i => record.state[i] === state)) {
      layer.append(make("path", {
        "class": name,
        d: openPath(pathAlong(first, last, x, y, step)),
        stroke: colour(model),
        "stroke-dasharray": !alone && state === 2 ? dash(model) : null,
        "data-model": model.index,
      }));
    }
  }
}

function drawAtoms(layer, box, model, alone) {
  const most = Math.max(...model.atoms.map(([, share]) => share));
  const aside = alone ? 0 : model.index % 5 - 2;
  for (const [at, share, accuracy] of model.atoms) {
    layer.append(
      make("circle", { "class": "atom", cx: box.x(at), cy: box.y(accuracy),
        r: 2 + 5 * Math.sqrt(share), stroke: colour(model) }),
      make("path", { "class": "bars", "stroke-width": alone ? 3 : 1.8,
        stroke: alone ? null : colour(model),
        d: `M${box.x(at) + aside} ${box.base}v${(-BOX.strip * 0.92 * share) / most}` }));
  }
  if (!alone || model.atoms.length > 5) return;
  const [at, share] = model.atoms.reduce((a, b) => (b[1] > a[1] ? b : a));
  const before = at > 0.45;
  const words = share > 0.9995 ? "all examples" : `${Math.round(100 * share)}% of examples`;
  layer.append(textAt(box.x(at) + (before ? -6 : 6), box.base - BOX.strip * 0.55,
    before ? "end" : "start", words));
}

function drawRows(under, over, box, model, record, alone, most) {
  if (record.density && alone) {
    const tall = i => box.base - (BOX.bar * record.density[i]) / most;
    const along = pathAlong(0, M - 1, i => box.x(PLACES[i]), tall, 2);
    under.append(make("path", { "class": "mass",
      d: `${openPath(along)}L${point(box.x(1), box.base)}L${point(box.x(0), box.base)}Z` }));
    over.append(make("path", { "class": "density", d: openPath(along), stroke: "var(--rows-edge)" }));
    return;
  }
  const width = (box.x(1) - box.x(0)) / model.bars.length;
  const tallest = alone ? Math.max(...model.bars) : most;
  const edge = (k, y) => `L${point(box.x(k / model.bars.length), y)}`;
  let d = `M${point(box.x(0), box.base)}`;
  model.bars.forEach((bar, k) => {
    const y = box.base - (BOX.bar * bar) / tallest;
    d += edge(k, y) + edge(k + 1, y);
  });
  d += edge(model.bars.length, box.base);
  if (alone && width > 0) under.append(make("path", { "class": "mass", d: `${d}Z` }));
  over.append(make("path", { "class": "density", d,
    stroke: alone ? "var(--rows-edge)" : colour(model),
    "stroke-dasharray": alone ? null : dash(model) }));
}

function drawNames(svg, box, pairs) {
  const labels = pairs.flatMap(([model, record]) => {
    const last = record.state.lastIndexOf(2);
    if (last < 0) return [];
    const y = box.y(record.accuracy[last]);
    return [{ model, from: box.x(record.x[last]), at: y, y }];
  });
  for (const { model, from, at, y } of spreadDown(labels, 15, box.base)) {
    const x = box.x(1) + 8;
    svg.append(
      make("line", { x1: from, y1: at, x2: x - 2, y2: y, stroke: colour(model),
        "stroke-width": 0.8, opacity: 0.6 }),
      textAt(x, y + 4, "start", elide(model.name, box.right - 14), { "class": "strong", fill: colour(model) }));
  }
}

// `focus` is the model whose band and intervals show where several are laid over each other.
function diagram(pairs, width, { top, scale, big, focus }) {
  const box = layOut(width, top, big && roomFor(pairs.map(([model]) => model), width)), alone = pairs.length === 1 && !big;
  const svg = make("svg", { viewBox: `0 0 ${width} ${box.total}`, width, height: box.total,
    "aria-hidden": "true", focusable: "false" });
  const [under, middle, over, cross] = Array.from({ length: 4 }, () => make("g"));
  cross.setAttribute("class", "cross");
  drawAxes(svg, box);
  // Stems of few confidences have a height of their own.
  const most = Math.max(...pairs.filter(([model]) => !model.atoms.length).map(([model, record]) =>
    Math.max(...(record.density && alone ? record.density : model.bars))));
  for (const [model, record] of pairs) {
    const clear = alone || focus === model.index || pairs.length === 1;
    if (S.band && clear) {
      svg.append(hatching(model));
      drawBand(under, box, model, record, scale);
      if (alone) drawCut(over, box, model, record, scale);
    }
    if (S.intervals && clear) drawRibbons(middle, box, model, record);
    if (model.atoms.length) drawAtoms(over, box, model, alone);
    else drawRows(under, over, box, model, record, alone, most);
    drawLine(over, box, model, record, alone);
  }
  svg.append(under, middle, make("path", { "class": "diagonal",
    d: `M${point(box.x(0), box.y(0))}L${point(box.x(1), box.y(1))}` }), over);
  if (big) drawNames(svg, box, pairs);
  svg.append(cross);
  return { svg, box, cross, pairs };
}
