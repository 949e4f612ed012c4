// Taking things away: the diagrams as SVG, the table as CSV, the page on paper.

const SAVED_RULES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "fill-opacity",
  "stroke-opacity", "font-family", "font-size", "font-weight", "text-anchor"];

// A copy that needs no style sheet: colours and fonts as the browser resolved them.
function standalone(svg) {
  const copy = svg.cloneNode(true);
  const [from, to] = [svg, copy].map(root => [...root.querySelectorAll("*")]);
  from.forEach((element, i) => {
    if (!element.checkVisibility || element.tagName === "title") return;
    const style = getComputedStyle(element);
    for (const rule of SAVED_RULES) {
      const own = rule.startsWith("font") || rule === "text-anchor";
      if (own && element.tagName !== "text") continue;
      const value = style.getPropertyValue(rule);
      if (value) to[i].setAttribute(rule, value.replace(/url\("?[^#]*(#[^")]+)"?\)/, "url($1)"));
    }
    to[i].removeAttribute("class");
  });
  return copy;
}

function allDiagrams() {
  const gap = 16, head = 40;
  const sizes = charts.map(chart => ({ width: chart.box.width, height: chart.box.total + head }));
  const columns = across(charts.length);
  const wide = sizes[0].width + gap, tall = sizes[0].height + gap;
  const sheet = make("svg", { xmlns: "http://www.w3.org/2000/svg", width: columns * wide,
    height: Math.ceil(charts.length / columns) * tall });
  sheet.setAttribute("viewBox", `0 0 ${sheet.getAttribute("width")} ${sheet.getAttribute("height")}`);
  const ink = getComputedStyle(document.body);
  sheet.append(make("rect", { width: "100%", height: "100%", fill: ink.backgroundColor }));
  charts.forEach((chart, k) => {
    const [x, y] = [(k % columns) * wide, Math.floor(k / columns) * tall];
    const picture = standalone(chart.svg);
    const record = chart.pairs[0][1];
    const alone = S.view === "panels";
    const name = alone ? chart.pairs[0][0].name : `All shown ${D.each}s`;
    const font = { fill: ink.color, "font-family": "sans-serif" };
    const sum = `d_CAL ${percent(record.calibration[0])} + gap ${percent(record.gapTotal)} = ${scoreNow().total} ${percent(record.total)}`;
    const group = make("g", { transform: `translate(${x + gap / 2} ${y + gap / 2})` },
      textAt(0, 14, "start", name, { ...font, "font-size": 13, "font-weight": 700 }),
      textAt(0, 30, "start", alone ? sum : "", { ...font, "font-size": 11 }),
      make("g", { transform: `translate(0 ${head})` }, ...picture.childNodes));
    sheet.append(group);
  });
  return `${new XMLSerializer().serializeToString(sheet)}\n`;
}

function save(name, text, type) {
  const link = make("a", { download: name, href: URL.createObjectURL(new Blob([text], { type })) });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// Full precision, never x100. A name that a spreadsheet would run gets an apostrophe.
function tableAsCsv(pairs) {
  const quote = text => `"${text.replaceAll('"', '""')}"`;
  const name = text => quote(/^[=+\-@\t\r]/.test(text) ? `'${text}` : text);
  const value = v => (Number.isNaN(v) ? "nan" : isFinite(v) ? String(v) : v > 0 ? "inf" : "-inf");
  const columns = columnsNow();
  const lines = [["model", ...columns.map(column => column.key)].map(quote).join(",")];
  for (const [model, record] of sorted(pairs)) {
    const cells = columns.map(column => value(valuesOf(column, model, record)[0]));
    lines.push([name(model.name), ...cells].join(","));
  }
  return `${lines.join("\r\n")}\r\n`;
}

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = make("textarea", {});
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

function addSaving() {
  $("save").addEventListener("click", () => save("diagrams.svg", allDiagrams(), "image/svg+xml"));
  $("copy").addEventListener("click", async () => {
    await copyText(tableAsCsv(pairsNow));
    $("say").textContent = "Table copied as CSV.";
    $("copy").textContent = "Copied";
    setTimeout(() => { $("copy").textContent = "Copy CSV"; }, 1500);
  });
  $("print").addEventListener("click", () => window.print());
}
