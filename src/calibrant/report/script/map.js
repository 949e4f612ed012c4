// The score map: calibration error against sharpness gap; lines are of equal score.

function drawMap(pairs) {
  const host = $("map");
  const placed = pairs.filter(([, r]) => isFinite(r.gapTotal) && isFinite(r.calibration[0]));
  const absent = pairs.filter(pair => !placed.includes(pair)).map(([model]) => model.name);
  $("map-words").textContent = `Better is left and down. On a slanted line ${scoreNow().total} is the same.`
    + (placed.some(([model]) => model.trivial) ? " Hollow: trivially calibrated." : "")
    + (absent.length ? ` Infinite score, not shown: ${absent.join(", ")}.` : "");
  host.replaceChildren(...(placed.length ? [mapChart(host, placed)] : []));
}

function mapLimits(placed) {
  const xs = placed.map(([, r]) => 100 * r.gapTotal);
  const ys = placed.flatMap(([, r]) => r.calibration.filter(isFinite).map(v => 100 * v));
  const middle = (Math.min(...xs) + Math.max(...xs)) / 2;
  const wide = Math.max(Math.max(...xs) - Math.min(...xs), 0.15 * Math.max(...xs), 0.01);
  const high = Math.max(...ys, 0.01), low = Math.min(0, ...ys);
  return { x0: Math.max(middle - 0.7 * wide, 0), x1: middle + 0.7 * wide,
    y0: low - 0.05 * (high - low), y1: high + 0.12 * (high - low) };
}

function mapChart(host, placed) {
  const width = Math.max(220, host.getBoundingClientRect().width);
  const room = placed.length > 1 ? roomFor(placed.map(([model]) => model), width) : 16;
  const head = 36, height = Math.max(214, 14 * placed.length), left = 44;
  const right = width - room, floor = head + height;
  const at = mapLimits(placed);
  const x = v => left + ((v - at.x0) / (at.x1 - at.x0)) * (right - left);
  const y = v => head + (1 - (v - at.y0) / (at.y1 - at.y0)) * height;
  const svg = make("svg", { viewBox: `0 0 ${width} ${floor + 36}`, width, height: floor + 36,
    role: "img", "aria-label": `Score map. ${placed.map(([model, r]) =>
      `${model.name}: calibration error ${percent(r.calibration[0])}, sharpness gap ${percent(r.gapTotal)}.`).join(" ")}` });
  drawEqualScores(svg, at, x, y, head);
  for (const tick of niceTicks(at.x0, at.x1, 5)) svg.append(textAt(x(tick), floor + 15, "middle", tick));
  for (const tick of niceTicks(at.y0, at.y1, 5)) svg.append(textAt(left - 6, y(tick) + 4, "end", tick));
  svg.append(make("path", { "class": "axis", d: `M${left} ${head}V${floor}H${right}` }),
    textAt((left + right) / 2, floor + 31, "middle", "sharpness gap ×100"),
    textAt(4, 12, "start", "calibration error d_CAL ×100"));
  const marks = placed.map(([model, record]) => drawModel(svg, model, record, x, y));
  drawMapNames(svg, marks, { left, right, floor, width });
  return svg;
}

function drawEqualScores(svg, at, x, y, head) {
  for (const total of niceTicks(at.x0 + Math.max(at.y0, 0), at.x1 + at.y1, 5)) {
    const from = Math.max(at.x0, total - at.y1), to = Math.min(at.x1, total - at.y0);
    if (from >= to) continue;
    svg.append(make("path", { "class": "grid", d: `M${point(x(from), y(total - from))}L${point(x(to), y(total - to))}` }));
    if (from > at.x0) svg.append(textAt(x(from), head - 5, "middle", `${scoreNow().total} ${total}`));
  }
}

function drawModel(svg, model, record, x, y) {
  const [value, low, high] = record.calibration.map(v => 100 * v);
  const cx = x(100 * record.gapTotal), cy = y(value);
  if (isFinite(low) && isFinite(high)) {
    svg.append(make("path", { d: `M${cx} ${y(low)}V${y(high)}`, stroke: colour(model), fill: "none" }));
  }
  svg.append(make("circle", { cx, cy, r: 5, stroke: colour(model), "stroke-width": 2,
    fill: model.trivial ? "var(--panel)" : colour(model), "data-model": model.index },
  make("title", {}, model.name)));
  return { model, cx, cy };
}

const overlap = (a, b) => Math.max(0, Math.min(a.right, b.right) - Math.max(a.left, b.left))
  * Math.max(0, Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top));

// Names go beside their markers if all of them find room there, else in a column.
function drawMapNames(svg, marks, edge) {
  const placed = placesBeside(marks, edge);
  if (!placed) return drawMapColumn(svg, marks, edge);
  for (const { model, x, y, anchor } of placed) {
    svg.append(textAt(x, y, anchor, model.name, { "class": "strong", fill: colour(model) }));
  }
}

function placesBeside(marks, edge) {
  const taken = marks.map(({ cx, cy }) => ({ left: cx - 7, right: cx + 7, top: cy - 7, bottom: cy + 7 }));
  const found = [];
  for (const { model, cx, cy } of marks) {
    const long = 7 * model.name.length;
    const best = [4, -10, 18].flatMap(down => [["start", 10, down], ["end", -10, down]])
      .map(([anchor, aside, down]) => {
        const left = anchor === "start" ? cx + aside : cx + aside - long;
        const box = { left, right: left + long, top: cy + down - 10, bottom: cy + down + 3 };
        return { model, anchor, x: cx + aside, y: cy + down, box };
      })
      .find(({ box }) => box.left > edge.left && box.right < edge.width && box.bottom < edge.floor
        && taken.every(other => !overlap(box, other)));
    if (!best) return null;
    taken.push(best.box);
    found.push(best);
  }
  return found;
}

function drawMapColumn(svg, marks, edge) {
  const labels = marks.map(mark => ({ ...mark, y: mark.cy }));
  for (const { model, cx, cy, y } of spreadDown(labels, 14, edge.floor)) {
    svg.append(
      make("line", { x1: cx + 6, y1: cy, x2: edge.right + 6, y2: y, stroke: colour(model),
        "stroke-width": 0.8, opacity: 0.6 }),
      textAt(edge.right + 10, y + 4, "start", elide(model.name, edge.width - edge.right - 12),
        { "class": "strong", fill: colour(model) }));
  }
}
