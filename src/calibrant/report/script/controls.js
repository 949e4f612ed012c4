// Controls: they change the state, and the state is drawn once per frame.

let waiting = 0;
function redraw() {
  if (!waiting) {
    waiting = requestAnimationFrame(() => {
      waiting = 0;
      draw();
    });
  }
}

function setWidth(width) {
  S.width = width === null || !ANY_SUMS ? null : clampWidth(width);
  redraw();
}

function addSmoothing() {
  $("auto").textContent = D.adaptive ? "Auto" : "As evaluated";
  $("auto").addEventListener("click", () => setWidth(S.width === null ? D.bandwidth : null));
  $("width").addEventListener("input", event => setWidth(widthAt(event.target.value / 1000)));
  $("width-number").addEventListener("input", event => {
    const width = Number(event.target.value);
    if (width >= LEAST_WIDTH && width <= MOST_WIDTH) setWidth(width);
  });
  // What was typed gives way to the width in use. The charts stay: whoever presses the mouse
  // on one leaves this box by it, and lets go of the chart that was pressed.
  $("width-number").addEventListener("blur", showState);
  for (const width of [0.01, 0.03, 0.05, 0.1]) {
    $("width-marks").append(make("option", { value: Math.round(1000 * widthShare(width)) }));
  }
  $("reset").addEventListener("click", () => {
    Object.assign(S, { ...DEFAULTS, off: S.off, view: S.view, at: S.at, sort: S.sort, down: S.down });
    redraw();
  });
}

function addChoices() {
  $("scores").append(...D.scores.map(({ key, label }) => make("label", {},
    make("input", { type: "radio", name: "score", value: key }), label)));
  for (const name of ["kernel", "score", "view", "axis"]) {
    for (const input of document.getElementsByName(name)) {
      input.addEventListener("change", () => {
        S[name] = input.value;
        // A kernel is a choice only where one is used.
        if (name === "kernel" && S.width === null) S.width = D.bandwidth;
        redraw();
      });
    }
  }
  for (const name of ["band", "intervals"]) {
    $(`show-${name}`).addEventListener("change", event => {
      S[name] = event.target.checked;
      redraw();
    });
  }
}

function addChips() {
  $("chips").append(...MODELS.map(model => {
    const chip = make("button", { type: "button", "class": "chip", title: model.name },
      swatch(model, 20), make("span", {}, model.name));
    chip.addEventListener("click", () => {
      S.off = S.off.includes(model.index)
        ? S.off.filter(i => i !== model.index) : [...S.off, model.index].sort((a, b) => a - b);
      redraw();
    });
    return chip;
  }));
  $("chips").hidden = MODELS.length === 1;
}

// Where nothing can be recomputed, the controls say so and rest.
function showFrozen() {
  const own = !LIVE_SCORES.includes(S.score);
  const frozen = !ANY_SUMS || own;
  for (const id of ["auto", "width", "width-number"]) $(id).disabled = frozen;
  for (const input of document.getElementsByName("kernel")) input.disabled = frozen;
  const reason = ANY_SUMS
    ? "the page cannot compute this score."
    : "these evaluations came without the sums behind them (restored from a file, or class by class).";
  $("frozen").textContent = frozen ? `Bandwidth and kernel are fixed: ${reason} All is as evaluated.` : "";
  $("frozen").hidden = !frozen;
}

function showState() {
  const auto = S.width === null;
  showFrozen();
  const [slider, box] = [$("width"), $("width-number")];
  $("auto").setAttribute("aria-pressed", auto);
  slider.value = Math.round(1000 * widthShare(auto ? D.bandwidth : S.width));
  slider.setAttribute("aria-valuetext", auto ? $("auto").textContent : `bandwidth ${S.width}`);
  box.placeholder = D.adaptive ? "auto" : "";
  if (document.activeElement !== box) box.value = auto ? "" : S.width;
  for (const name of ["kernel", "score", "view", "axis"]) {
    for (const input of document.getElementsByName(name)) input.checked = input.value === S[name];
  }
  $("kernels").querySelector(".segments").classList.toggle("off", auto && D.adaptive);
  $("show-band").checked = S.band;
  $("show-intervals").checked = S.intervals;
  document.documentElement.classList.toggle("intervals", S.intervals);
  [...$("chips").children].forEach((chip, i) => chip.setAttribute("aria-pressed", !S.off.includes(i)));
  $("print-state").textContent = `${auto ? "As evaluated" : `Kernel ${S.kernel}, bandwidth ${S.width}`}, `
    + `score ${scoreNow().label}.`;
  $("fold-state").textContent = `${auto ? $("auto").textContent : S.width} bandwidth · ${scoreNow().label}`;
  showSteady();
}

// What does not follow the controls says so.
function showSteady() {
  const moved = isLive() || S.score !== D.score;
  const how = D.adaptive ? "at bandwidth auto" : "as evaluated";
  const score = D.scores.find(one => one.key === D.score).label;
  $("steady-words").hidden = !moved;
  $("steady-words").textContent = `Findings, notes and differences are ${how}, for the ${score} score: `
    + "they do not follow the controls.";
}

// On a phone the controls and the explanation are folded away until asked for.
function addFolding() {
  const narrow = matchMedia("(max-width: 720px)");
  const fold = () => { $("reading").open = !narrow.matches; };
  narrow.addEventListener("change", fold);
  fold();
  $("fold").addEventListener("click", () => {
    const open = document.documentElement.classList.toggle("unfolded");
    $("fold").setAttribute("aria-expanded", open);
  });
}

function addTheme() {
  const root = document.documentElement, button = $("theme");
  const show = theme => {
    root.dataset.theme = theme;
    button.textContent = theme === "dark" ? "Light" : "Dark";
    button.setAttribute("aria-pressed", theme === "dark");
  };
  let kept = null;
  try { kept = localStorage.getItem("calibrant-theme"); } catch { /* files may have no storage */ }
  const dark = matchMedia("(prefers-color-scheme: dark)");
  show(["light", "dark"].includes(kept) ? kept : dark.matches ? "dark" : "light");
  button.addEventListener("click", () => {
    show(root.dataset.theme === "dark" ? "light" : "dark");
    try { localStorage.setItem("calibrant-theme", root.dataset.theme); } catch { /* as above */ }
  });
}
