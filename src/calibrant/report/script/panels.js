// The diagrams of all models, and what is read off them at one confidence.

let charts = [];
let focus = null;

function panelOf(model, record) {
  const sum = make("div", { "class": "sum" });
  const parts = [["d_CAL", record.calibration], ["+ gap", [record.gapTotal]], [`= ${scoreNow().total}`, [record.total]]];
  for (const [label, [value, low, high]] of parts) {
    const ends = make("span", { "class": "interval" }, percentRange(low ?? NaN, high ?? NaN));
    sum.append(make("div", {}, label, make("b", {}, percent(value)), ends));
  }
  const plot = make("div", { "class": "plot" });
  const figure = make("figure", { "class": `panel ${tint(model)}` },
    make("figcaption", {}, make("b", { title: model.name }, model.name), sum),
    plot, make("div", { "class": "read" }));
  if (S.score === "log" && model.infinite > 0) {
    figure.append(make("div", { "class": "warned" },
      `The loss of ${model.lost} is infinite; the hatched band is that of the others.`));
  }
  if (isLive() && !model.sums) {
    figure.append(make("div", { "class": "hint" }, "As evaluated: without sums, it cannot follow the bandwidth."));
  }
  return { figure, plot };
}

function overlayOf() {
  const plot = make("div", { "class": "plot" });
  const figure = make("figure", {},
    make("figcaption", {}, make("b", {}, `All shown ${D.each}s`),
      make("span", { "class": "hint" }, "Point near a curve to see its band and intervals.")),
    plot, make("div", { "class": "read" }));
  return { figure, plot };
}

// Diagrams side by side, so that rows are full and few. As in Python.
function across(count) {
  const cost = c => ((c - (count % c)) % c) + 1.5 * Math.ceil(count / c);
  return count <= 5 ? count : [5, 4, 3].reduce((best, c) => (cost(c) < cost(best) ? c : best));
}

function drawPanels(pairs) {
  const host = $("panels"), big = S.view === "overlay";
  const held = document.activeElement?.classList.contains("hit")
    ? document.activeElement.dataset.chart : null;
  host.dataset.across = big ? 1 : across(pairs.length);
  $("diagrams").dataset.count = big ? 1 : pairs.length;
  const sets = big ? (pairs.length ? [pairs] : []) : pairs.map(pair => [pair]);
  const frames = sets.map(set => ({ set, ...(big ? overlayOf() : panelOf(...set[0])) }));
  host.replaceChildren(...frames.map(frame => frame.figure));
  // Measure all, then draw all: taking turns would lay the page out once per panel.
  for (const frame of frames) frame.width = Math.max(200, frame.plot.getBoundingClientRect().width);
  const scale = bandScale(pairs);
  const tops = pairs.map(([, record]) => topOf(record, scale));
  const shared = Math.min(G.most_top, Math.max(1, ...tops));
  charts = frames.map((frame, k) => {
    const own = big ? Math.max(...tops) : tops[k];
    const top = S.axis === "aligned" ? shared : own;
    const chart = diagram(frame.set, frame.width, { top, scale, big, focus });
    chart.figure = frame.figure;
    addReader(chart, frame.plot, k, big);
    return chart;
  });
  drawReading();
  if (held !== null) charts[held]?.hit.focus({ preventScroll: true });
  drawKey(scale);
}

function addReader(chart, plot, k, big) {
  const { box, pairs } = chart;
  const name = big ? `All ${D.each}s` : pairs[0][0].name;
  const hit = make("div", { "class": "hit", tabindex: 0, role: "slider", "data-chart": k,
    "aria-label": `${name}: read the diagram at a ${D.words.said}`,
    "aria-valuemin": 0, "aria-valuemax": 1, "aria-orientation": "horizontal" });
  hit.style.left = `${box.left}px`;
  hit.style.right = `${box.right}px`;
  hit.style.height = `${box.base}px`;
  plot.append(chart.svg, hit);
  chart.hit = hit;
  const point = event => {
    const { left, width, top } = hit.getBoundingClientRect();
    S.at = clampShare(Math.round(((event.clientX - left) / width) * 1000) / 1000);
    setFocus(nearestModel(chart, event.clientY - top), big);
  };
  hit.addEventListener("pointermove", point);
  hit.addEventListener("pointerdown", point);
  hit.addEventListener("keydown", event => {
    const at = movedBy(event, S.at ?? 0.5);
    if (at === undefined) return;
    event.preventDefault();
    S.at = at;
    setFocus(focus ?? pairs[0][0].index, big);
    writeFragment();
  });
  hit.addEventListener("pointerleave", writeFragment);
}

function setFocus(index, big) {
  if (big && focus !== index) {
    focus = index;
    redraw();
  } else {
    focus = index;
    drawReading();
  }
}

function nearestModel({ box, pairs }, y) {
  let best = pairs[0][0].index, least = Infinity;
  for (const [model, record] of pairs) {
    const reading = readingAt(record, S.at);
    const distance = reading ? Math.abs(box.y(reading.accuracy) - y) : Infinity;
    if (distance < least) [best, least] = [model.index, distance];
  }
  return best;
}

function movedBy(event, at) {
  const steps = { ArrowLeft: -0.01, ArrowDown: -0.01, ArrowRight: 0.01, ArrowUp: 0.01,
    PageDown: -0.1, PageUp: 0.1 };
  if (event.key === "Escape") return null;
  if (event.key === "Home") return 0;
  if (event.key === "End") return 1;
  if (!(event.key in steps)) return undefined;
  const step = event.shiftKey ? Math.sign(steps[event.key]) * 0.001 : steps[event.key];
  return clampShare(Math.round((at + step) * 1000) / 1000);
}

function wordsOf(model, record) {
  const reading = readingAt(record, S.at);
  if (!reading) return { accuracy: "no examples here", gap: MISSING, rows: "0", none: true };
  const { accuracy, low, high, gap, rows } = reading;
  const infinite = S.score === "log" && model.infinite > 0;
  const interval = isFinite(low) && isFinite(high) ? ` [${low.toFixed(3)}, ${high.toFixed(3)}]` : "";
  return {
    accuracy: accuracy.toFixed(3) + interval,
    gap: infinite ? INFINITE : fixed(gap, 3),
    rows: whole(rows),
    none: false,
  };
}

const nearby = record => (record.live ? `examples within ±${S.width}` : "examples nearby");

function drawReading() {
  for (const chart of charts) {
    chart.cross.replaceChildren();
    const box = chart.figure.querySelector(".read");
    if (S.at === null) {
      chart.hit.setAttribute("aria-valuenow", 0.5);
      chart.hit.setAttribute("aria-valuetext", "Use the arrow keys to read values");
      box.textContent = "Point here, or use the arrow keys, to read values.";
      continue;
    }
    drawCross(chart);
    const head = `At ${D.words.said} ${S.at.toFixed(3)}`;
    const said = chart.pairs.length === 1 && S.view === "panels"
      ? readOne(box, head, ...chart.pairs[0])
      : readAll(box, head, chart.pairs);
    chart.hit.setAttribute("aria-valuenow", S.at.toFixed(3));
    chart.hit.setAttribute("aria-valuetext", said);
  }
}

function drawCross({ cross, box, pairs }) {
  const x = box.x(S.at);
  cross.append(make("line", { x1: x, x2: x, y1: box.head, y2: box.base, stroke: "var(--ink)", opacity: 0.55 }));
  for (const [model, record] of pairs) {
    const reading = readingAt(record, S.at);
    if (reading) {
      cross.append(make("circle", { cx: x, cy: box.y(reading.accuracy), r: 4.2, fill: colour(model),
        stroke: "var(--panel)", "stroke-width": 1.5 }));
    }
  }
}

function readOne(box, head, model, record) {
  const words = wordsOf(model, record), near = nearby(record);
  const strong = text => make("b", {}, text);
  if (words.none) {
    box.replaceChildren(`${head}: `, strong("no examples"), ` ${record.live ? `within ±${S.width}` : "nearby"}`);
    return box.textContent;
  }
  const parts = [[`${head}:`], [`${D.words.hit} `, strong(words.accuracy)],
    ["sharpness gap ", strong(words.gap)], [strong(words.rows), ` ${near}`]];
  box.replaceChildren(...parts.map(part => make("span", { "class": "part" }, ...part)));
  return `${head}: ${D.words.hit} ${words.accuracy}, sharpness gap ${words.gap}, ${words.rows} ${near}`;
}

function readAll(box, head, pairs) {
  const titles = [head, D.words.hit, "sharpness gap", nearby(pairs[0][1])];
  const rows = pairs.map(([model, record]) => [model, wordsOf(model, record)]);
  box.replaceChildren(make("table", { "class": "plain" },
    make("thead", {}, make("tr", {}, ...titles.map(title => make("th", { scope: "col" }, title)))),
    make("tbody", {}, ...rows.map(([model, words]) => make("tr", { "class": tint(model) },
      make("th", { scope: "row", title: model.name }, model.name),
      ...[words.accuracy, words.gap, words.rows].map(text => make("td", {}, text)))))));
  return `${head}. ` + rows.map(([model, words]) =>
    `${model.name}: ${D.words.hit} ${words.accuracy}, gap ${words.gap}, ${words.rows} examples.`).join(" ");
}

function drawKey(scale) {
  const sign = (...marks) => make("svg", { width: 26, height: 12, "aria-hidden": "true" }, ...marks);
  const stroke = more => make("line", { x1: 0, x2: 26, y1: 6, y2: 6, stroke: "var(--ink)", ...more });
  const patch = more => make("rect", { width: 26, height: 12, ...more });
  const items = [
    [sign(stroke({ "stroke-width": 2.2 })), `${D.words.hit} at this ${D.words.said}`],
    [sign(patch({ fill: "var(--ink)", "fill-opacity": 0.22 })),
      `sharpness gap, density-weighted${scale < 1 ? ` (drawn at ×${scale})` : ""}`],
    [sign(stroke({ "stroke-dasharray": "5 4" })), "perfect calibration"],
    [sign(patch({ fill: "var(--rows)" })), "where the examples are"],
  ];
  if (S.intervals) {
    const ribbon = { x: 0, width: 26, fill: "var(--ink)" };
    items.splice(1, 0, [sign(make("rect", { ...ribbon, height: 12, "fill-opacity": 0.15 }),
      make("rect", { ...ribbon, y: 3, height: 6, "fill-opacity": 0.35 })),
      `${D.intervals}${isLive() ? "" : " (light: of the whole curve)"}`]);
  }
  if (shown().some(model => model.atoms.length)) {
    items.push([sign(make("circle", { cx: 13, cy: 6, r: 4, fill: "none", stroke: "var(--ink)",
      "stroke-width": 1.7 })), `a single repeated ${D.words.said}`]);
  }
  $("key").replaceChildren(...items.map(([mark, words]) => make("span", {}, mark, words)));
}
