// The state of the page; it lives in the URL fragment, so that a view can be sent.

const [LEAST_WIDTH, MOST_WIDTH] = D.widths;
const SCORE_KEYS = D.scores.map(score => score.key);
const CHOICES = {
  kernel: Object.keys(KERNELS),
  score: SCORE_KEYS,
  view: ["panels", "overlay"],
  axis: ["aligned", "free"],
};
const DEFAULTS = {
  width: null, // null: as evaluated in Python
  kernel: D.kernel,
  score: D.score,
  view: "panels",
  axis: "aligned",
  band: true,
  intervals: true,
  off: [],
  sort: "total",
  down: false,
  at: null, // the confidence that is read off
};
const S = { ...DEFAULTS, off: [] };

const clampWidth = width => Math.min(MOST_WIDTH, Math.max(LEAST_WIDTH, width));
const clampShare = share => Math.min(1, Math.max(0, share));
const ANY_SUMS = MODELS.some(model => model.sums);
const isLive = () => S.width !== null && LIVE_SCORES.includes(S.score);
const shown = () => MODELS.filter(model => !S.off.includes(model.index));
const scoreNow = () => D.scores.find(score => score.key === S.score);
// A column that shows the whole of the score already; then d_TOT is not shown beside it.
const scoreColumn = () =>
  (D.columns.some(column => column.key === scoreNow().column) ? scoreNow().column : "total");
const columnsNow = () =>
  D.columns.filter(column => column.key !== "total" || scoreColumn() === "total");

function readFragment(text) {
  const given = new URLSearchParams(text.replace(/^#/, ""));
  for (const [key, value] of given) {
    if (key === "width" && Number(value) > 0 && ANY_SUMS) S.width = clampWidth(Number(value));
    else if (Object.hasOwn(CHOICES, key) && CHOICES[key].includes(value)) S[key] = value;
    else if (key === "band" || key === "intervals" || key === "down") S[key] = value === "1";
    else if (key === "at" && value !== "" && isFinite(value)) S.at = clampShare(Number(value));
    else if (key === "sort" && (value === "name" || D.columns.some(c => c.key === value))) S.sort = value;
    else if (key === "off") {
      S.off = value.split(",").map(Number).filter(i => MODELS[i] !== undefined);
    }
  }
}

function writeFragment() {
  const out = new URLSearchParams();
  for (const key of Object.keys(DEFAULTS)) {
    const value = S[key];
    if (value === null || String(value) === String(DEFAULTS[key])) continue;
    out.set(key, typeof value === "boolean" ? Number(value) : value);
  }
  const text = out.toString();
  try {
    history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
  } catch {
    // Some browsers refuse for files; the view then cannot be sent, but works.
  }
}
