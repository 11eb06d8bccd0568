"use strict";
(() => {
const data = JSON.parse(document.getElementById("data").textContent);
const at = (id) => document.getElementById(id);
const count = data.texts.length;

const WORDS = {
  en: {
    find: "Find in texts", all: "all", none: "none", only: "only", other: "other", unlabeled: "no label",
    word: "word", label: "label", matches: (n, all) => `${n} of ${all} match`, nothing: "nothing matches",
    facts: (n, what, model) => `${n} ${what}${model ? " · " + model : ""}`,
    texts: "texts", occurrences: "occurrences", row: (n) => `row ${n}`,
    results: "Matches", neighbors: "Nearest on the map",
    sampled: (n, all, what) => `${n} of ${all} ${what}, drawn at random.`,
    others: (n) => `${n} less frequent labels share one color (“other”).`,
    beyond: (n) => `${n} occurrences lie after the last token that the model reads; they are not shown.`,
    cut: (n) => `${n} texts are longer than the model reads; their ends have no influence.`,
    pca: (a, b) => `PCA: the two axes show ${a} % and ${b} % of the variance.`,
    tsne: "t-SNE keeps near points near; distances between groups, and their sizes, mean little.",
    umap: "UMAP keeps near points near; distances between groups, and their sizes, mean little.",
    keys: "Keys on the map: arrows move, + and − zoom, 0 shows all, n and p step through points, L names, / finds, Esc clears.",
    closer: "zoom in", farther: "zoom out", whole: "show all", names: "names of groups", theme: "light or dark", language: "switch to Chinese",
    previous: "previous match", next: "next match", map: "Map of points", methods: "method", other_language: "中文",
  },
  zh: {
    find: "在文本中查找", all: "全选", none: "全不选", only: "仅此", other: "其他", unlabeled: "无标签",
    word: "词语", label: "标签", matches: (n, all) => `${all} 条中有 ${n} 条匹配`, nothing: "没有匹配",
    facts: (n, what, model) => `${n} ${what}${model ? " · " + model : ""}`,
    texts: "条文本", occurrences: "处出现", row: (n) => `第 ${n} 行`,
    results: "匹配结果", neighbors: "图上最近的点",
    sampled: (n, all, what) => `从 ${all} ${what}中随机抽取 ${n} 个。`,
    others: (n) => `另有 ${n} 个较少的标签共用一种颜色（“其他”）。`,
    beyond: (n) => `${n} 处出现在模型读取范围之后，未显示。`,
    cut: (n) => `${n} 条文本超出模型可读长度，其末尾不起作用。`,
    pca: (a, b) => `PCA：两个轴分别解释方差的 ${a} % 和 ${b} %。`,
    tsne: "t-SNE 保持邻近关系；组间距离和组的大小意义不大。",
    umap: "UMAP 保持邻近关系；组间距离和组的大小意义不大。",
    keys: "图上按键：方向键移动，+ 和 − 缩放，0 显示全部，n 和 p 逐点浏览，L 显示组名，/ 查找，Esc 清除。",
    closer: "放大", farther: "缩小", whole: "显示全部", names: "组名", theme: "浅色或深色", language: "切换到英文",
    previous: "上一个", next: "下一个", map: "点图", methods: "方法", other_language: "English",
  },
};
const NAMES = { pca: "PCA", tsne: "t-SNE", umap: "UMAP" };
const COLORS = {
  light: ["#2f6fd0", "#e07b00", "#249a52", "#d1334a", "#8a4fc7", "#0b95a1", "#dd4f98", "#8c6d1f", "#6aa512", "#a35a34", "#37a3ea", "#5b45cf"],
  dark: ["#6ea3ff", "#ffab4d", "#57cf80", "#ff7482", "#c196ff", "#39cdd6", "#ff8cc6", "#d9b74a", "#a9dc58", "#d39570", "#85ccff", "#9b8cff"],
};
const GRAY = { light: ["#98a2ad", "#d9dee4", "#fbfcfd", "#1b1f24"], dark: ["#78828d", "#2b3139", "#101317", "#e6e9ed"] };
const calm = matchMedia("(prefers-reduced-motion: reduce)");
const wanted = new URLSearchParams(location.hash.slice(1));  // #theme=dark&lang=zh&find=word&method=pca

let lang = wanted.get("lang") in WORDS ? wanted.get("lang") : (navigator.language || "").startsWith("zh") ? "zh" : "en";
let theme = wanted.get("theme") in COLORS ? wanted.get("theme") : matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
let themeChosen = wanted.has("theme");
const say = () => WORDS[lang];
const digits = (n) => n.toLocaleString(lang);

// ---- groups: a label each, then the others, then points without one
const groups = data.names.map((name) => ({ name, size: 0, on: true }));
const OTHER = data.others ? groups.push({ name: null, key: "other", size: 0, on: true }) - 1 : -1;
const BARE = data.labels.includes(-2) ? groups.push({ name: null, key: "unlabeled", size: 0, on: true }) - 1 : -1;
const group = Uint16Array.from(data.labels, (label) => label === -1 ? OTHER : label === -2 ? BARE : label);
for (let i = 0; i < count; i++) groups[group[i]].size++;
const labeled = data.names.length > 0;
const nameOf = (g) => groups[g].name === null ? say()[groups[g].key] : groups[g].name;
const colorOf = (g) => g === OTHER || (g === BARE && labeled) ? GRAY[theme][0] : COLORS[theme][g === BARE ? 0 : g];

// ---- places, view, choice
const x = new Float32Array(count), y = new Float32Array(count);
let method = Math.max(0, data.maps.findIndex((map) => map.method === wanted.get("method")));
let width = 1, height = 1, ratio = 1, fitted = 1;
const view = { x: 0.5, y: 0.5, scale: 1 };
let hovered = -1, chosen = -1, lifted = -1, named = true, untouched = true;
let query = "", matching = null, list = [];
const points = at("points"), marks = at("marks");
const paint = points.getContext("2d", { alpha: false }), draw = marks.getContext("2d");
let frame = null;

// A fixed shuffle: no label lies on top of all others because of the order of the file.
const order = Uint32Array.from({ length: count }, (_, i) => i);
for (let i = count - 1, state = 12345; i > 0; i--) {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  const j = Math.floor(state / 4294967296 * (i + 1));
  [order[i], order[j]] = [order[j], order[i]];
}

const onScreen = (i) => [(x[i] - view.x) * view.scale + width / 2, (y[i] - view.y) * view.scale + height / 2];
const inData = (px, py) => [(px - width / 2) / view.scale + view.x, (py - height / 2) / view.scale + view.y];
const visible = (i) => groups[group[i]].on;

// ---- a grid of cells over the plane, for what is under the pointer
const side = Math.max(1, Math.min(256, Math.ceil(Math.sqrt(count / 2))));
const starts = new Uint32Array(side * side + 1), inCell = new Uint32Array(count);
const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
const cellOf = (value) => clamp(Math.floor(value * side), 0, side - 1);
function fillGrid() {
  starts.fill(0);
  for (let i = 0; i < count; i++) starts[cellOf(y[i]) * side + cellOf(x[i]) + 1]++;
  for (let c = 0; c < side * side; c++) starts[c + 1] += starts[c];
  const next = starts.slice();
  for (let i = 0; i < count; i++) inCell[next[cellOf(y[i]) * side + cellOf(x[i])]++] = i;
}
function nearest(px, py) {
  const [dx, dy] = inData(px, py), reach = (radius() + 7) / view.scale;
  let best = -1, least = reach * reach;
  for (let row = cellOf(dy - reach); row <= cellOf(dy + reach); row++) {
    for (let cell = row * side + cellOf(dx - reach); cell <= row * side + cellOf(dx + reach); cell++) {
      for (let k = starts[cell]; k < starts[cell + 1]; k++) {
        const i = inCell[k];
        if (!visible(i)) continue;
        let distance = (x[i] - dx) ** 2 + (y[i] - dy) ** 2;
        if (matching && !matching[i]) distance *= 4;
        if (distance < least) { least = distance; best = i; }
      }
    }
  }
  return best;
}

// ---- points are written into the pixels: as fast without a graphics card
const radius = () => clamp(13 * Math.pow(count, -0.18), 1.7, 6.5) * clamp(Math.pow(view.scale / fitted, 0.33), 0.8, 3);
const rgb = (hex) => [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16));
let discs = null, discsFor = 0;
function discsOf(r) {  // a disc for each of 4 x 4 places within a pixel
  if (discsFor === r) return discs;
  const half = Math.ceil(r + 1), size = 2 * half + 1;
  discs = Array.from({ length: 16 }, (_, k) => {
    const disc = new Uint8Array(size * size), sx = (k % 4) / 4, sy = (k >> 2) / 4;
    for (let row = 0; row < size; row++) {
      for (let column = 0; column < size; column++) {
        const distance = Math.hypot(column - half - sx, row - half - sy);
        disc[row * size + column] = 256 * clamp(r + 0.5 - distance, 0, 1) * 0.86;
      }
    }
    return disc;
  });
  discs.half = half; discs.size = size; discsFor = r;
  return discs;
}
function splat(pixels, W, H, i, color, set) {
  const px = ((x[i] - view.x) * view.scale + width / 2) * ratio, py = ((y[i] - view.y) * view.scale + height / 2) * ratio;
  const cx = Math.floor(px), cy = Math.floor(py), { half, size } = set;
  if (cx < -half || cy < -half || cx >= W + half || cy >= H + half) return;
  const disc = set[((py - cy) * 4 | 0) * 4 + ((px - cx) * 4 | 0)];
  const top = Math.max(0, cy - half), bottom = Math.min(H - 1, cy + half);
  const left = Math.max(0, cx - half), right = Math.min(W - 1, cx + half);
  const [red, green, blue] = color;
  for (let row = top; row <= bottom; row++) {
    let from = (row - cy + half) * size + left - cx + half;
    for (let p = row * W + left, end = row * W + right; p <= end; p++, from++) {
      const alpha = disc[from];
      if (!alpha) continue;
      const old = pixels[p], r = old & 255, g = old >> 8 & 255, b = old >> 16 & 255;
      pixels[p] = (0xff000000 | (b + ((blue - b) * alpha >> 8)) << 16 | (g + ((green - g) * alpha >> 8)) << 8 | r + ((red - r) * alpha >> 8)) >>> 0;
    }
  }
}
function drawPoints() {
  const W = points.width, H = points.height;
  if (!frame || frame.width !== W || frame.height !== H) frame = paint.createImageData(W, H);
  const pixels = new Uint32Array(frame.data.buffer), gray = GRAY[theme];
  const [pr, pg, pb] = rgb(gray[2]);
  pixels.fill((0xff000000 | pb << 16 | pg << 8 | pr) >>> 0);
  const set = discsOf(Math.round(radius() * ratio * 8) / 8);
  const faint = rgb(gray[1]), colors = groups.map((_, g) => rgb(colorOf(g)));
  const bright = (i) => (!matching || matching[i]) && (lifted < 0 || group[i] === lifted);
  const partial = matching || lifted >= 0;
  if (partial) for (const i of order) if (visible(i) && !bright(i)) splat(pixels, W, H, i, faint, set);
  for (const i of order) if ((visible(i) || group[i] === lifted) && (!partial || bright(i))) splat(pixels, W, H, i, colors[group[i]], set);
  paint.putImageData(frame, 0, 0);
}

// ---- names of groups where they are densest, and rings around points
let peaks = [];
function findPeaks() {
  const fine = 20;
  peaks = groups.map(() => null);
  if (groups.length < 2) return;
  const sums = groups.map(() => new Float32Array(fine * fine));
  const bin = (value) => clamp(Math.floor(value * fine), 0, fine - 1);
  for (let i = 0; i < count; i++) sums[group[i]][bin(y[i]) * fine + bin(x[i])]++;
  sums.forEach((cells, g) => {
    if (g === OTHER || g === BARE) return;
    let best = -1, where = 0;
    for (let row = 0; row < fine; row++) for (let column = 0; column < fine; column++) {
      let total = 0;
      for (let a = -1; a <= 1; a++) for (let b = -1; b <= 1; b++) {
        if (row + a >= 0 && row + a < fine && column + b >= 0 && column + b < fine) total += cells[(row + a) * fine + column + b];
      }
      if (total > best) { best = total; where = row * fine + column; }
    }
    let sx = 0, sy = 0, n = 0;
    const row = Math.floor(where / fine), column = where % fine;
    for (let i = 0; i < count; i++) {
      if (group[i] === g && Math.abs(bin(y[i]) - row) <= 1 && Math.abs(bin(x[i]) - column) <= 1) { sx += x[i]; sy += y[i]; n++; }
    }
    if (n) peaks[g] = [sx / n, sy / n];
  });
}
function drawMarks() {
  draw.setTransform(ratio, 0, 0, ratio, 0, 0);
  draw.clearRect(0, 0, width, height);
  const gray = GRAY[theme];
  if (named && !moving) {
    draw.font = '600 13px system-ui, "Noto Sans CJK SC", sans-serif';
    draw.textAlign = "center"; draw.textBaseline = "middle"; draw.lineJoin = "round";
    const taken = [];
    peaks.forEach((peak, g) => {
      if (!peak || !groups[g].on || (lifted >= 0 && g !== lifted)) return;
      const name = nameOf(g).length > 26 ? nameOf(g).slice(0, 25) + "…" : nameOf(g);
      const px = (peak[0] - view.x) * view.scale + width / 2, py = (peak[1] - view.y) * view.scale + height / 2;
      const half = draw.measureText(name).width / 2 + 4;
      if (taken.some(([ox, oy, oh]) => Math.abs(px - ox) < half + oh && Math.abs(py - oy) < 18)) return;
      taken.push([px, py, half]);
      draw.globalAlpha = 0.9; draw.strokeStyle = gray[2]; draw.lineWidth = 5; draw.strokeText(name, px, py);
      draw.globalAlpha = 1; draw.fillStyle = gray[3]; draw.fillText(name, px, py);
    });
  }
  for (const [i, wide] of [[hovered, 2], [chosen, 3]]) {
    if (i < 0 || !visible(i)) continue;
    const [px, py] = onScreen(i), r = radius() + 2;
    draw.beginPath(); draw.arc(px, py, r + wide / 2, 0, 7); draw.lineWidth = wide + 2; draw.strokeStyle = gray[2]; draw.stroke();
    draw.beginPath(); draw.arc(px, py, r + wide / 2, 0, 7); draw.lineWidth = wide; draw.strokeStyle = gray[3]; draw.stroke();
  }
}
let waiting = false, stale = true;
function refresh(all = true) {
  stale = stale || all;
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    if (stale) drawPoints();
    stale = false;
    drawMarks(); placeHint();
  });
}

// ---- texts go into the page as text only
function add(parent, tag, name, words) {
  const made = parent.appendChild(document.createElement(tag));
  if (name) made.className = name;
  if (words !== undefined) made.textContent = words;
  return made;
}
function write(element, i, short = false) {
  const text = data.texts[i];
  element.textContent = "";
  let spans = [];
  if (data.spans) spans = [data.spans[i]];
  else if (query) for (let k = lowered()[i].indexOf(query); k >= 0 && spans.length < 30; k = lowered()[i].indexOf(query, k + query.length)) spans.push([k, query.length]);
  if (lowered()[i].length !== text.length && !data.spans) spans = [];
  let done = 0;
  if (short && spans.length && spans[0][0] > 40) { done = spans[0][0] - 24; element.append("…"); }
  for (const [start, length] of spans) {
    element.append(text.slice(done, start));
    add(element, "mark", "", text.slice(start, start + length));
    done = start + length;
  }
  element.append(text.slice(done));
}
function dot(parent, g) {
  const made = add(parent, "span", "dot");
  made.style.borderColor = colorOf(g);
  made.style.background = groups[g].on ? colorOf(g) : "transparent";
}
let hinted = -1;
function placeHint() {
  const i = hovered >= 0 ? hovered : chosen, hint = at("hint");
  const [px, py] = i >= 0 ? onScreen(i) : [0, 0];
  if (i < 0 || !visible(i) || held || moving || px < 0 || py < 0 || px > width || py > height) { hint.hidden = true; hinted = -1; return; }
  if (hinted !== i) {
    const label = at("hint-label");
    label.textContent = "";
    label.hidden = !labeled;
    if (labeled) { dot(label, group[i]); add(label, "bdi", "", nameOf(group[i])); }
    write(at("hint-text"), i);
    at("hint-row").textContent = say().row(digits(data.rows[i]));
    hinted = i;
  }
  hint.hidden = false;
  const w = hint.offsetWidth, h = hint.offsetHeight;
  const left = px + 16 + w < width ? px + 16 : Math.max(6, px - 16 - w);
  hint.style.transform = `translate(${Math.round(left)}px, ${Math.round(clamp(py + 12, 6, Math.max(6, height - h - 6)))}px)`;
}

// ---- find
let low = null;
const lowered = () => low || (low = data.texts.map((text) => text.toLowerCase()));
function find(words) {
  query = words.trim().toLowerCase();
  matching = null; list = []; chosen = -1;
  if (query) {
    matching = Uint8Array.from(lowered(), (text) => text.includes(query) ? 1 : 0);
    list = Array.from(order.slice().sort()).filter((i) => matching[i]);
  }
  showFound(); refresh();
}
function showFound() {
  at("found").textContent = !query ? "" : list.length ? say().matches(digits(list.length), digits(count)) : say().nothing;
  at("previous").disabled = at("next").disabled = !list.length;
  showResults();
}
function showResults() {
  let shown = list.slice(0, 100);
  if (!query && chosen >= 0) {
    const distance = (i) => (x[i] - x[chosen]) ** 2 + (y[i] - y[chosen]) ** 2;
    const near = Array.from(order).filter((i) => i !== chosen && visible(i)).map((i) => [distance(i), i]);
    shown = near.sort((a, b) => a[0] - b[0] || a[1] - b[1]).slice(0, 12).map((one) => one[1]);
  }
  at("results-part").hidden = !shown.length;
  at("results-title").textContent = query ? say().results : say().neighbors;
  const items = at("results");
  items.textContent = "";
  for (const i of shown) {
    const button = add(add(items, "li"), "button");
    button.type = "button";
    dot(button, group[i]);
    write(add(button, "span"), i, true);
    button.addEventListener("click", () => choose(i, true, true));
    button.addEventListener("pointerenter", () => { hovered = i; refresh(false); });
    button.addEventListener("pointerleave", () => { hovered = -1; refresh(false); });
  }
}
function choose(i, centered, still = false) {
  chosen = i;
  if (i >= 0) {
    groups[group[i]].on || switchGroup(group[i], true);
    const [px, py] = onScreen(i);
    if (centered && (px < 40 || py < 40 || px > width - 40 || py > height - 40)) { view.x = x[i]; view.y = y[i]; }
    at("spoken").textContent = (labeled ? nameOf(group[i]) + ": " : "") + data.texts[i];
  }
  if (!query && !still) showResults();
  refresh();
}
function step(by) {
  const pool = query ? list.filter(visible) : Array.from(inCell).filter(visible);
  if (!pool.length) return;
  const where = pool.indexOf(chosen);
  choose(pool[where < 0 ? (by > 0 ? 0 : pool.length - 1) : (where + by + pool.length) % pool.length], true);
}

// ---- legend
function switchGroup(g, on) { groups[g].on = on; showLegend(); }
function showLegend() {
  at("legend-part").hidden = groups.length < 2;
  at("legend-title").textContent = data.legend || (data.words ? say().word : say().label);
  const kept = document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.group : undefined;
  const items = at("legend");
  items.textContent = "";
  groups.forEach((one, g) => {
    const item = add(items, "li", one.on ? "" : "off"), label = add(item, "label"), box = add(label, "input");
    box.type = "checkbox"; box.checked = one.on; box.dataset.group = g;
    box.addEventListener("change", () => { one.on = box.checked; changedGroups(); });
    dot(label, g);
    add(label, "bdi", "name", nameOf(g));
    const only = add(item, "button", "quiet only", say().only);
    only.type = "button"; only.dataset.group = "only" + g;
    only.setAttribute("aria-label", `${say().only}: ${nameOf(g)}`);
    only.addEventListener("click", () => { groups.forEach((other, k) => { other.on = k === g; }); changedGroups(); });
    add(item, "span", "count", digits(one.size));
    const lift = (to) => () => { lifted = to; refresh(); };
    item.addEventListener("pointerenter", lift(g)); item.addEventListener("pointerleave", lift(-1));
  });
  if (kept !== undefined) { const again = items.querySelector(`[data-group="${kept}"]`); if (again) again.focus(); }
}
function changedGroups() { hovered = -1; lifted = -1; showLegend(); showResults(); refresh(); }

// ---- methods
let moving = false;
function load(k) {
  const map = data.maps[k];
  return [Float32Array.from(map.x, (v) => v / map.steps), Float32Array.from(map.y, (v) => v / map.steps)];
}
function show(k, gently) {
  method = k;
  showMethods();
  const [tx, ty] = load(k), fx = x.slice(), fy = y.slice(), begun = performance.now(), time = gently && !calm.matches ? 700 : 0;
  moving = true;
  const move = (now) => {
    const part = time ? clamp((now - begun) / time, 0, 1) : 1, eased = part * part * (3 - 2 * part);
    for (let i = 0; i < count; i++) { x[i] = fx[i] + (tx[i] - fx[i]) * eased; y[i] = fy[i] + (ty[i] - fy[i]) * eased; }
    if (untouched) fit();
    if (part === 1) { moving = false; fillGrid(); findPeaks(); showResults(); }
    refresh();
    if (part < 1) requestAnimationFrame(move);
  };
  move(begun);
}
function showMethods() {
  const part = at("methods");
  const focused = part.contains(document.activeElement);
  part.textContent = "";
  part.hidden = data.maps.length < 2;
  part.setAttribute("aria-label", say().methods);
  data.maps.forEach((map, k) => {
    const button = add(part, "button", "", NAMES[map.method]);
    button.type = "button";
    button.setAttribute("role", "radio");
    button.setAttribute("aria-checked", String(k === method));
    button.tabIndex = k === method ? 0 : -1;
    button.addEventListener("click", () => show(k, true));
    if (focused && k === method) button.focus();
  });
  const map = data.maps[method], facts = data.facts, notes = [];
  const percent = (share) => (100 * share).toFixed(1), what = data.words ? say().occurrences : say().texts;
  notes.push(map.explained ? say().pca(percent(map.explained[0]), percent(map.explained[1])) : say()[map.method]);
  if (facts.total > count) notes.push(say().sampled(digits(count), digits(facts.total), what));
  if (data.others) notes.push(say().others(digits(data.others)));
  if (facts.beyond) notes.push(say().beyond(digits(facts.beyond)));
  if (facts.cut) notes.push(say().cut(digits(facts.cut)));
  at("notes").textContent = notes.join(" ");
  at("facts").textContent = say().facts(digits(count), what, facts.model);
}
at("methods").addEventListener("keydown", (event) => {
  const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  if (by) { event.preventDefault(); show((method + by + data.maps.length) % data.maps.length, true); }
});

// ---- view
function fit() {
  let left = Infinity, right = -Infinity, top = Infinity, bottom = -Infinity;
  for (let i = 0; i < count; i++) if (visible(i)) {
    left = Math.min(left, x[i]); right = Math.max(right, x[i]); top = Math.min(top, y[i]); bottom = Math.max(bottom, y[i]);
  }
  if (left > right) return;
  untouched = true;
  const room = (length) => Math.max(40, length - 70);
  view.x = (left + right) / 2; view.y = (top + bottom) / 2;
  view.scale = Math.min(room(width) / Math.max(right - left, 1e-4), room(height) / Math.max(bottom - top, 1e-4));
  refresh();
}
function zoom(factor, px = width / 2, py = height / 2) {
  const [dx, dy] = inData(px, py);
  untouched = false;
  view.scale = clamp(view.scale * factor, fitted / 3, fitted * 500);
  view.x = dx - (px - width / 2) / view.scale; view.y = dy - (py - height / 2) / view.scale;
  refresh();
}
function pan(dx, dy) { untouched = false; view.x -= dx / view.scale; view.y -= dy / view.scale; refresh(); }
function resize() {
  const box = at("stage").getBoundingClientRect();
  width = Math.max(1, box.width); height = Math.max(1, box.height); ratio = Math.min(2, devicePixelRatio || 1);
  for (const canvas of [points, marks]) { canvas.width = Math.round(width * ratio); canvas.height = Math.round(height * ratio); }
  const before = fitted;
  fitted = Math.min(width, height) - 70;
  if (untouched) fit(); else view.scale *= fitted / before;
  refresh();
}

// ---- pointer, wheel, keys
const fingers = new Map();
let held = false, travelled = 0;
const place = (event) => { const box = points.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
points.addEventListener("pointerdown", (event) => {
  points.setPointerCapture(event.pointerId);
  fingers.set(event.pointerId, place(event)); travelled = 0;
});
points.addEventListener("pointermove", (event) => {
  const here = place(event), before = fingers.get(event.pointerId);
  if (!before) {
    const under = nearest(...here);
    points.classList.toggle("over", under >= 0);
    if (under !== hovered) { hovered = under; refresh(false); }
    return;
  }
  const others = [...fingers].filter(([id]) => id !== event.pointerId).map(([, where]) => where);
  travelled += Math.hypot(here[0] - before[0], here[1] - before[1]);
  if (travelled > 4) { held = true; points.classList.add("held"); hovered = -1; }
  if (others.length) {
    const far = (a, b) => Math.hypot(a[0] - b[0], a[1] - b[1]) || 1;
    zoom(far(here, others[0]) / far(before, others[0]), (here[0] + others[0][0]) / 2, (here[1] + others[0][1]) / 2);
  }
  if (held) pan((here[0] - before[0]) / (1 + others.length), (here[1] - before[1]) / (1 + others.length));
  fingers.set(event.pointerId, here);
});
function release(event) {
  if (!fingers.delete(event.pointerId)) return;
  points.classList.remove("held");
  if (!held && event.type === "pointerup") { hovered = -1; choose(nearest(...place(event)), false); }
  if (!fingers.size) held = false;
  refresh(false);
}
points.addEventListener("pointerup", release);
points.addEventListener("pointercancel", release);
points.addEventListener("pointerleave", () => { if (!fingers.size) { hovered = -1; refresh(false); } });
points.addEventListener("wheel", (event) => {
  event.preventDefault();
  const lines = event.deltaMode === 1 ? 33 : 1;
  zoom(Math.exp(-event.deltaY * lines * (event.ctrlKey ? 0.01 : 0.0016)), ...place(event));
}, { passive: false });
points.addEventListener("dblclick", (event) => zoom(2, ...place(event)));
points.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const acts = {
    ArrowLeft: () => pan(70, 0), ArrowRight: () => pan(-70, 0), ArrowUp: () => pan(0, 70), ArrowDown: () => pan(0, -70),
    "+": () => zoom(1.4), "=": () => zoom(1.4), "-": () => zoom(1 / 1.4), "_": () => zoom(1 / 1.4), 0: fit,
    n: () => step(1), p: () => step(-1), l: showNames, L: showNames,
  };
  if (acts[event.key]) { event.preventDefault(); acts[event.key](); }
});
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement !== at("find")) { event.preventDefault(); at("find").focus(); at("find").select(); }
  if (event.key === "Escape") { if (query) { at("find").value = ""; find(""); } else choose(-1, false); }
});
function showNames() { named = !named; at("names").setAttribute("aria-pressed", String(named)); refresh(false); }

// ---- switches
function showWords() {
  document.documentElement.lang = lang === "zh" ? "zh-Hans" : "en";
  for (const element of document.querySelectorAll("[data-words]")) element.textContent = say()[element.dataset.words];
  for (const id of ["closer", "farther", "whole", "names", "theme", "language", "previous", "next"]) {
    at(id).setAttribute("aria-label", say()[id]); at(id).title = say()[id];
  }
  at("language").textContent = say().other_language;
  at("language").lang = lang === "zh" ? "en" : "zh";
  points.setAttribute("aria-label", say().map);
  hinted = -1;
  showMethods(); showLegend(); showFound(); refresh();
}
function showTheme() {
  document.documentElement.dataset.theme = theme;
  hinted = -1;
  showLegend(); showResults(); refresh();
}
at("language").addEventListener("click", () => { lang = lang === "zh" ? "en" : "zh"; showWords(); });
at("theme").addEventListener("click", () => { theme = theme === "dark" ? "light" : "dark"; themeChosen = true; showTheme(); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", (event) => {
  if (!themeChosen) { theme = event.matches ? "dark" : "light"; showTheme(); }
});
at("closer").addEventListener("click", () => zoom(1.5));
at("farther").addEventListener("click", () => zoom(1 / 1.5));
at("whole").addEventListener("click", fit);
at("names").addEventListener("click", showNames);
at("names").hidden = groups.length < 2;
at("all").addEventListener("click", () => { groups.forEach((one) => { one.on = true; }); changedGroups(); });
at("none").addEventListener("click", () => { groups.forEach((one) => { one.on = false; }); changedGroups(); });
let typing = 0;
at("find").addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(() => find(at("find").value), 80); });
at("find").addEventListener("keydown", (event) => { if (event.key === "Enter") { event.preventDefault(); step(event.shiftKey ? -1 : 1); } });
at("previous").addEventListener("click", () => step(-1));
at("next").addEventListener("click", () => step(1));

showTheme();
show(method, false);
showWords();
new ResizeObserver(resize).observe(at("stage"));
resize();
if (wanted.get("find")) { at("find").value = wanted.get("find"); find(wanted.get("find")); }
drawPoints(); drawMarks();  // before the first frame
})();
