// Elements, texts and paths: the small pieces every picture is made of.

const $ = id => document.getElementById(id);
const SVG = new Set(["svg", "g", "path", "line", "text", "rect", "circle", "defs", "pattern", "title"]);
const INFINITE = "∞", MISSING = "–";

function make(tag, attributes = {}, ...children) {
  const space = SVG.has(tag) ? "http://www.w3.org/2000/svg" : "http://www.w3.org/1999/xhtml";
  const element = document.createElementNS(space, tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

const textAt = (x, y, anchor, words, more = {}) =>
  make("text", { x, y, "text-anchor": anchor, ...more }, words);
const colour = model => `var(--c${model.index % BOX.colours})`;
const dash = model => BOX.dashes[model.index % BOX.dashes.length] || null;
const tint = model => `m${model.index % BOX.colours}`;
const swatch = (model, width = 18) => make("svg",
  { "class": "swatch", width, height: 10, "aria-hidden": "true" },
  make("line", { x1: 0, x2: width, y1: 5, y2: 5, stroke: colour(model), "stroke-width": 3,
    "stroke-dasharray": dash(model) }));

// Names often differ at their ends, so both ends are kept. Letters are about 7 pixels wide.
function elide(text, room) {
  const most = Math.max(6, Math.floor(room / 7));
  const half = Math.floor((most - 1) / 2);
  return text.length > most ? `${text.slice(0, most - 1 - half)}…${text.slice(-half)}` : text;
}
// Room for names beside a picture: as much as they need, up to a third of it.
const roomFor = (models, width) =>
  Math.min(20 + 7 * Math.max(0, ...models.map(model => model.name.length)), width / 3);
const whole = value => Math.round(value).toLocaleString("en-US");

// Fixed digits; no sign on zero, signs for what is no number. As in Python.
function fixed(value, digits = 2) {
  if (Number.isNaN(value)) return MISSING;
  if (!isFinite(value)) return value > 0 ? INFINITE : `-${INFINITE}`;
  const text = value.toFixed(digits);
  return Number(text) === 0 ? (0).toFixed(digits) : text;
}
const percent = value => fixed(100 * value);
const percentRange = (low, high) =>
  isFinite(low) && isFinite(high) ? `[${percent(low)}, ${percent(high)}]` : "";

function runsOf(length, test) {
  const runs = [];
  let first = -1;
  for (let i = 0; i <= length; i++) {
    const inside = i < length && test(i);
    if (inside && first < 0) first = i;
    if (!inside && first >= 0) {
      runs.push([first, i - 1]);
      first = -1;
    }
  }
  return runs;
}

const point = (x, y) => `${x.toFixed(2)} ${y.toFixed(2)}`;

// Every second of many nodes is enough to draw; the last one always counts.
function pathAlong(first, last, x, y, step = 1) {
  const points = [];
  for (let i = first; i < last; i += step) points.push(point(x(i), y(i)));
  points.push(point(x(last), y(last)));
  return points;
}

const openPath = points => `M${points.join("L")}`;
const closedPath = (there, back) => `M${[...there, ...back.reverse()].join("L")}Z`;

// Labels that would overlap are pushed down, in order, and up again from the floor.
function spreadDown(labels, least, floor) {
  labels.sort((a, b) => a.y - b.y);
  for (let k = 1; k < labels.length; k++) {
    labels[k].y = Math.max(labels[k].y, labels[k - 1].y + least);
  }
  for (let k = labels.length - 1; k >= 0; k--) {
    labels[k].y = Math.min(labels[k].y, floor - (labels.length - 1 - k) * least);
  }
  return labels;
}

function niceTicks(low, high, count) {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map(f => f * power).find(s => s >= rough);
  const ticks = [];
  for (let t = Math.ceil(low / step - 1e-9) * step; t <= high + 1e-9 * step; t += step) {
    ticks.push(Number(t.toPrecision(12)));
  }
  return ticks;
}
