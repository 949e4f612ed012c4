// Start: read the fragment, wire the controls, draw.

let pairsNow = [];

function draw() {
  const started = performance.now();
  const pairs = shown().map(model => [model, recordOf(model)]);
  const computed = performance.now();
  pairsNow = pairs;
  showState();
  drawTable(pairs);
  drawPanels(pairs);
  drawSweep();
  drawMap(pairs);
  writeFragment();
  // For whoever drives the page: what was drawn, and how long it took.
  const host = document.documentElement;
  host.dataset.drawn = JSON.stringify([S.width, S.kernel, S.score]);
  calibrant.milliseconds = { compute: computed - started, draw: performance.now() - computed };
}

const calibrant = {
  state: S,
  milliseconds: null,
  estimate: (i, width, kernel, score) => {
    const found = estimate(MODELS[i].sums, width, kernel, score);
    const plain = value => (typeof value === "number" ? value : Array.from(value));
    return Object.fromEntries(Object.entries(found).map(([key, value]) => [key, plain(value)]));
  },
};
window.calibrant = calibrant;

document.documentElement.classList.add("script");
readFragment(location.hash);
addTheme();
addFolding();
addSmoothing();
addChoices();
addChips();
addSaving();
D.views.forEach(addView);
draw();

let lastWidth = innerWidth;
window.addEventListener("resize", () => {
  if (innerWidth !== lastWidth) {
    lastWidth = innerWidth;
    redraw();
  }
});
window.addEventListener("hashchange", () => {
  Object.assign(S, DEFAULTS, { off: [] });
  readFragment(location.hash);
  redraw();
});
