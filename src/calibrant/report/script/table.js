// The table of metrics: sortable, with the best of each column marked as rounded.

const LIVE_VALUES = {
  calibration: record => record.calibration,
  sharpness_gap: record => [record.gapTotal, ...record.gapRange],
  total: record => [record.total, ...record.totalRange],
};

const valuesOf = (column, model, record) =>
  column.live ? LIVE_VALUES[column.key](record) : model.metrics[column.key];

// Where a rounded value ranks: less is better. A calibration error below 0 counts as 0.
function rankOf(column, value) {
  const printed = Math.round(1e4 * value) / 1e2;
  if (!isFinite(printed)) return Infinity;
  if (column.calibration) return Math.max(Number(percent(value)), 0);
  return column.up ? -Number(percent(value)) : Number(percent(value));
}

// Models among which there is a best: as Python says, as evaluated and where numbers follow the
// bandwidth.
function peers(column, model, record, pairs) {
  const live = column.estimated && record.live;
  const set = one => (live ? one.alike_live : one.alike[column.key]);
  return pairs.filter(([other, its]) => set(other) === set(model)
    && (!column.estimated || its.live === record.live));
}

function bestOf(column, pairs) {
  const honest = pairs.filter(([model]) => !(column.calibration && model.trivial));
  return Math.min(Infinity, ...honest.map(([model, record]) =>
    rankOf(column, valuesOf(column, model, record)[0])));
}

function cellOf(column, model, record, some) {
  const best = bestOf(column, some), several = some.length > 1;
  const [value, low, high] = valuesOf(column, model, record);
  const cell = make("td", { "data-column": column.key, "data-label": column.label }, percent(value));
  const rank = rankOf(column, value), barred = column.calibration && model.trivial;
  const mark = (name, words) => {
    cell.className = name;
    cell.append(make("span", { "class": "unseen" }, ` ${words}`));
  };
  if (value === Infinity) mark("infinite", "infinite");
  else if (barred && rank <= best && rank < Infinity) mark("hollow", "lower, but meaningless");
  else if (!barred && several && rank === best && rank < Infinity) mark("best", "best");
  const range = percentRange(low, high);
  if (range) cell.append(make("span", { "class": "interval" }, range));
  return cell;
}

const SIGNS = { bad: "✕", warn: "⚠", note: "ℹ" };

function badgesOf(model) {
  return model.badges.map(({ level, text, detail }) => make("span",
    { "class": `badge ${level}`, title: detail }, `${SIGNS[level]} ${text}`));
}

const sortKey = () => (S.sort === "total" ? scoreColumn() : S.sort);

function sorted(pairs) {
  const column = D.columns.find(one => one.key === sortKey());
  const sign = S.down ? -1 : 1;
  const key = ([model, record]) => (column ? valuesOf(column, model, record)[0] : model.name);
  const order = (a, b) => (column
    ? (a < b ? -1 : a > b ? 1 : 0) : a.localeCompare(b, "en", { numeric: true }));
  const missing = x => Number(Number.isNaN(x));
  return [...pairs].sort((a, b) => {
    const [x, y] = [key(a), key(b)];
    return missing(x) - missing(y) || sign * order(x, y) || a[0].index - b[0].index;
  });
}

function sortBy(key, downFirst) {
  S.down = sortKey() === key ? !S.down : downFirst;
  S.sort = key === scoreColumn() ? "total" : key;
  redraw();
  $("say").textContent = `Sorted by ${key}, ${S.down ? "descending" : "ascending"}.`;
}

function drawHead(head) {
  const cell = (key, label, downFirst, live) => {
    const button = make("button", { type: "button" }, ...labelOf(label));
    button.addEventListener("click", () => sortBy(key, downFirst));
    const th = make("th", { scope: "col", "data-column": key }, button);
    if (live && ANY_SUMS) th.append(make("span", { "class": "live", title: "Follows the bandwidth" }, "live"));
    return th;
  };
  head.replaceChildren(make("tr", {},
    cell("name", EACH, false, false),
    ...columnsNow().map(c => cell(c.key, c.label, c.up, c.live && c.key !== "total")),
    make("th", { scope: "col" }, "Notes", make("span", { "class": "live" }, evaluatedAt()))));
}

// What the notes are about, once the numbers beside them have moved.
const evaluatedAt = () => (!isLive() ? "" : D.adaptive ? "at auto" : "as evaluated");

// What the parts of the score are at this bandwidth.
function partsWords(pairs) {
  const { total } = scoreNow(), sum = `d_CAL (calibration error) + sharpness gap = ${total}, up to rounding`;
  const negative = pairs.some(([, record]) => percent(record.gapTotal).startsWith("-"));
  const gap = negative ? D.gap_below_0 : "";
  if (isLive()) {
    return `${sum}; at bandwidth ${S.width} d_CAL is the paper's estimate (${S.kernel} kernel), which noise `
      + `biases up and which has no interval.${D.variants}${gap}`;
  }
  const below = pairs.some(([, record]) => percent(record.calibration[0]).startsWith("-"));
  return sum + D.estimators
    + (below ? " d_CAL below 0 means that no calibration error was found." : "") + gap;
}

const labelOf = label => (label.startsWith("d_")
  ? [make("i", {}, "d"), make("sub", {}, label.slice(2))] : [label]);

function drawTable(pairs) {
  const [head, body] = [$("metrics").tHead, $("metrics").tBodies[0]];
  const held = document.activeElement?.closest("#metrics th")?.dataset.column;
  drawHead(head);
  for (const th of head.rows[0].cells) {
    if (!th.dataset.column) continue;
    const direction = S.down ? "descending" : "ascending";
    th.setAttribute("aria-sort", th.dataset.column === sortKey() ? direction : "none");
    if (th.dataset.column === held) th.firstChild.focus({ preventScroll: true });
  }
  $("parts").textContent = partsWords(pairs);
  body.replaceChildren(...sorted(pairs).map(([model, record]) => make("tr", {},
    make("th", { scope: "row", title: model.name }, swatch(model), model.name),
    ...columnsNow().map(c => cellOf(c, model, record, peers(c, model, record, pairs))),
    make("td", { "class": "notes" }, ...badgesOf(model)))));
}
