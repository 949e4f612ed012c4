// Parts of the rows: classes or groups, as small diagrams and a table for one model.

const PART_COLUMNS = [
  ["rows", "Examples", value => whole(value)],
  ["accuracy", "Accuracy", percent],
  ["ece", "ECE", percent],
  ["calibration", "d_CAL", percent],
  ["sharpness_gap", "Sharpness gap", percent],
  ["total", D.scores.find(score => score.key === D.score).total, percent],
];

function readPart(part) {
  const all = decode(part.curve, Uint16Array).map(v => (v === D.nothing ? NaN : v / (D.nothing - 1)));
  const n = all.length / 4;
  const [x, accuracy, low, high] = [0, 1, 2, 3].map(k => all.slice(k * n, (k + 1) * n));
  const calibration = numbers(part.calibration);
  return {
    x, accuracy, low, high,
    state: Uint8Array.from(part.state, Number),
    interval: calibration.slice(1),
    numbers: {
      rows: number(part.rows), accuracy: number(part.accuracy), ece: number(part.ece),
      calibration: calibration[0], total: number(part.total),
      sharpness_gap: printedGap(number(part.total), calibration[0], number(part.sharpness_gap)),
    },
  };
}

function smallDiagram(model, part) {
  const width = 160, left = 22, right = 156, head = 5, floor = 139;
  const box = { x: v => left + v * (right - left), y: v => floor - v * (floor - head) };
  const svg = make("svg", { viewBox: `0 0 ${width} 156`, "aria-hidden": "true" });
  for (const tick of [0, 0.5, 1]) {
    svg.append(
      make("path", { "class": "grid", d: `M${left} ${box.y(tick)}H${right}M${box.x(tick)} ${head}V${floor}` }),
      textAt(left - 4, box.y(tick) + 4, "end", tick),
      textAt(box.x(tick), floor + 13, tick === 1 ? "end" : "middle", tick));
  }
  svg.append(make("path", { "class": "axis", d: `M${left} ${floor}H${right}` }));
  drawRibbons(svg, box, model, part);
  svg.append(make("path", { "class": "diagonal", d: `M${left} ${floor}L${right} ${head}` }));
  drawLine(svg, box, model, part, true);
  if (part.x.length === 1) {
    svg.append(make("circle", { "class": "atom", cx: box.x(part.x[0]), cy: box.y(part.accuracy[0]),
      r: 5, stroke: colour(model) }));
  }
  return svg;
}

function smallPanel(model, name, part) {
  const { calibration, sharpness_gap: gap, total } = part.numbers;
  const sum = make("div", { "class": "sum" });
  const whole = PART_COLUMNS.at(-1)[1];
  for (const [label, value] of [["d_CAL", calibration], ["+ gap", gap], [`= ${whole}`, total]]) {
    sum.append(make("div", {}, label, make("b", {}, percent(value))));
  }
  return make("figure", { "class": tint(model) },
    make("figcaption", {}, make("b", { title: name }, name), sum), smallDiagram(model, part));
}

function partsTable(view, names, parts, sort) {
  const columns = PART_COLUMNS.filter(([key]) => parts.some(p => !Number.isNaN(p.numbers[key])));
  const head = [["name", view.kind === "class" ? "Class" : "Group"], ...columns].map(([key, label]) => {
    const button = make("button", { type: "button" }, ...labelOf(label));
    button.addEventListener("click", () => sort.by(key));
    return make("th", { scope: "col", "data-column": key,
      "aria-sort": key !== sort.key ? "none" : sort.down ? "descending" : "ascending" }, button);
  });
  const value = i => (sort.key === "name" ? i : parts[i].numbers[sort.key]);
  const order = names.map((_, i) => i)
    .sort((a, b) => (sort.down ? -1 : 1) * (value(a) - value(b)) || a - b);
  const rows = order.map(i => make("tr", {},
    make("th", { scope: "row", title: names[i] }, names[i]),
    ...columns.map(([key, label, words]) => {
      const cell = make("td", { "data-column": key, "data-label": label }, words(parts[i].numbers[key]));
      const range = key === "calibration" ? percentRange(...parts[i].interval) : "";
      if (range) cell.append(make("span", { "class": "interval" }, range));
      return cell;
    })));
  return make("table", { "class": "plain" }, make("thead", {}, make("tr", {}, ...head)),
    make("tbody", {}, ...rows));
}

function addView(view, k) {
  const parts = view.models.map(ofModel => ofModel.map(part => part && readPart(part)));
  const title = make("h2", { id: `h-view${k}` }, view.heading);
  const small = make("div", { "class": "small" });
  const scroll = make("div", { "class": "scroll", tabindex: 0, role: "region",
    "aria-label": `Table: ${view.heading}` });
  const choice = make("select", { id: `model${k}`, "aria-label": `Model shown in: ${view.heading}` },
    ...MODELS.map(model => make("option", { value: model.index }, model.name)));
  const sort = {
    key: "name", down: false,
    by(key) {
      this.down = this.key === key ? !this.down : key !== "name";
      this.key = key;
      draw();
      scroll.querySelector(`[data-column="${key}"] button`).focus();
    },
  };
  function draw() {
    const model = MODELS[choice.value];
    const own = parts[model.index].filter(part => part);  // a model may have some groups only
    const names = view.names.filter((_, i) => parts[model.index][i]);
    small.replaceChildren(...names.map((name, i) => smallPanel(model, name, own[i])));
    scroll.replaceChildren(names.length ? partsTable(view, names, own, sort) : `${model.name} has no groups.`);
  }
  choice.addEventListener("change", draw);
  choice.hidden = MODELS.length === 1;
  draw();
  const label = D.scores.find(score => score.key === D.score).label;
  const words = `${view.note} As evaluated; the score is ${label}, ×100.`.trim();
  $("views").append(make("section", { "aria-labelledby": `h-view${k}` },
    make("div", { "class": "head" }, title, make("span", { "class": "hint" }, words), choice),
    small, scroll));
}
