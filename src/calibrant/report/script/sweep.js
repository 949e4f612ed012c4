// Bandwidth sensitivity: d_CAL of every model against the bandwidth, and what follows.

const LOG_LEAST = Math.log(LEAST_WIDTH), LOG_MOST = Math.log(MOST_WIDTH);
const widthShare = width => (Math.log(width) - LOG_LEAST) / (LOG_MOST - LOG_LEAST);
const widthAt = share =>
  Number(Math.exp(LOG_LEAST + clampShare(share) * (LOG_MOST - LOG_LEAST)).toPrecision(3));
const SWEEP_TICKS = [0, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500];

function drawSweep() {
  const host = $("sweep"), words = $("sweep-words");
  if (!D.sweep || !LIVE_SCORES.includes(S.score)) {
    host.replaceChildren();
    words.textContent = D.sweep
      ? "Computed for the Brier and the log score only."
      : "Not computed: the sums behind an evaluation are needed, and some " + D.each + " here was "
        + "restored from a file or evaluated class by class.";
    return;
  }
  const curves = D.sweep[S.kernel][S.score].map(numbers);
  host.replaceChildren(sweepChart(host, curves));
  words.textContent = rankingWords(curves);
}

function sweepChart(host, curves) {
  const width = Math.max(220, host.getBoundingClientRect().width);
  const models = shown();
  const box = { left: 44, right: roomFor(models, width), head: 28, height: 222, foot: 36 };
  const floor = box.head + box.height, right = width - box.right;
  const values = models.flatMap(model => curves[model.index]).filter(isFinite);
  const most = 1.05 * Math.max(0, ...values) || 1;
  const x = w => box.left + widthShare(w) * (right - box.left);
  const y = v => box.head + (1 - Math.sqrt(Math.max(0, v) / most)) * box.height;
  const svg = make("svg", { viewBox: `0 0 ${width} ${floor + box.foot}`, width,
    height: floor + box.foot, role: "img", "aria-label":
      "d_CAL of every model against the bandwidth; the vertical line marks the current one." });
  let above = Infinity;
  for (const tick of SWEEP_TICKS) {
    const at = y(tick / 100);
    if (tick / 100 > most || above - at < 20) continue;
    above = at;
    svg.append(make("path", { "class": "grid", d: `M${box.left} ${at}H${right}` }),
      textAt(box.left - 6, at + 4, "end", tick));
  }
  let before = -Infinity;
  for (const tick of [0.005, 0.01, 0.03, 0.05, 0.1, 0.25]) {
    svg.append(make("path", { "class": "grid", d: `M${x(tick)} ${box.head}V${floor}` }));
    if (x(tick) - before < 34) continue; // a label of its own only where there is room
    before = x(tick);
    svg.append(textAt(before, floor + 15, "middle", tick));
  }
  svg.append(textAt((box.left + right) / 2, floor + 31, "middle", "bandwidth (log scale)"),
    textAt(4, 12, "start", "calibration error d_CAL ×100 (square-root scale)"));
  drawSweepLines(svg, models, curves, { x, y, right, floor, room: box.right });
  if (S.width !== null) {
    svg.append(make("line", { "class": "now", x1: x(S.width), x2: x(S.width), y1: box.head, y2: floor,
      stroke: "var(--ink)", "stroke-width": 1.5 }));
  }
  svg.style.cursor = "pointer";
  svg.addEventListener("click", event => {
    const { left, width: wide } = svg.getBoundingClientRect();
    const at = ((event.clientX - left) / wide) * width;
    setWidth(widthAt((at - box.left) / (right - box.left)));
  });
  return svg;
}

function drawSweepLines(svg, models, curves, { x, y, right, floor, room }) {
  const labels = [], widths = D.sweep.bandwidths;
  for (const model of models) {
    const curve = curves[model.index];
    for (const [first, last] of runsOf(widths.length, j => isFinite(curve[j]))) {
      const along = pathAlong(first, last, j => x(widths[j]), j => y(curve[j]));
      svg.append(make("path", { d: openPath(along), fill: "none", stroke: colour(model),
        "stroke-width": 2, "stroke-dasharray": dash(model) }));
    }
    const end = curve[widths.length - 1];
    if (isFinite(end)) labels.push({ model, y: y(end) });
  }
  for (const { model, y: at } of spreadDown(labels, 14, floor)) {
    svg.append(textAt(right + 6, at + 4, "start", elide(model.name, room - 12),
      { "class": "strong", fill: colour(model) }));
  }
}

// Trivial models are left out: they always have the least d_CAL, which says nothing.
function rankingWords(curves) {
  const ranked = shown().filter(m => !m.trivial && curves[m.index].every(isFinite));
  const endless = shown().filter(m => curves[m.index].includes(Infinity)).map(m => m.name);
  const tail = endless.length ? ` Infinite, and not drawn: ${endless.join(", ")}.` : "";
  const aside = shown().some(m => m.trivial) ? ` (trivial ${D.each}s aside)` : "";
  if (ranked.length < 2) return `One ${D.each}: see how much d_CAL varies with the bandwidth.${tail}`;
  if (new Set(ranked.map(m => m.alike_live)).size > 1) {
    return `No ranking: d_CAL of these ${D.each}s cannot be compared.${tail}`;
  }
  const widths = D.sweep.bandwidths;
  const order = j => [...ranked].sort((a, b) => curves[a.index][j] - curves[b.index][j]);
  const same = (j, k) => order(j).every((model, i) => model === order(k)[i]);
  const distance = j => Math.abs(Math.log(widths[j] / D.bandwidth));
  const start = widths.reduce((best, _, j) => (distance(j) < distance(best) ? j : best), 0);
  let low = start, high = start;
  while (low > 0 && same(low - 1, start)) low--;
  while (high + 1 < widths.length && same(high + 1, start)) high++;
  const names = ranked.length > 6 ? "" : ` (${order(start).map(m => m.name).join(" < ")})`;
  const all = low === 0 && high === widths.length - 1;
  const range = low === high
    ? "changes at the next bandwidth on either side"
    : `holds from ${widths[low]} to ${widths[high]}${all ? ", the whole range" : " and changes outside it"}`;
  return `The d_CAL ranking at bandwidth ${widths[start]}${names}${aside} ${range}.${tail}`;
}
