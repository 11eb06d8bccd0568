// Attention: tokens on a line, arcs above to later tokens and below to earlier ones.

const ARC_HEIGHT = 115;
const TOKEN_HEIGHT = 30;
const STRONGEST = 4; // arcs per token, where no token is chosen
const isSpecial = (token) => /^(\[(CLS|SEP|PAD|BOS|EOS)\]|<\/?s>|<pad>|<\|.*\|>)$/i.test(token);

function widthOf(token) {
  let width = 12;
  for (const character of token) width += /[\u1100-\uffff]/.test(character) || character.length > 1 ? 14 : 8;
  return Math.max(22, width);
}

// Small pictures of all heads: row = the token that looks, column = where it looks.
function headPicture(square) {
  const canvas = make("canvas", { width: square.length, height: square.length, "aria-hidden": "true" });
  const context = canvas.getContext("2d");
  const color = getComputedStyle(document.documentElement).getPropertyValue("--bar").trim();
  context.fillStyle = color;
  square.forEach((row, y) => row.forEach((weight, x) => {
    context.globalAlpha = Math.min(1, Math.sqrt(weight));
    context.fillRect(x, y, 1, 1);
  }));
  return canvas;
}

function attentionView(answer, settings, change) {
  settings.head = Math.min(settings.head, answer.attention.length - 1);
  const layers = make("div", { class: "layers", role: "radiogroup", "aria-label": "Layer" });
  const heads = make("div", { class: "heads", role: "radiogroup", "aria-label": "Head" });
  const place = make("div", { class: "arcs" });
  const looks = make("div", { class: "looks" });
  choices(layers, Array.from({ length: answer.layers }, (_, layer) => ({ content: [String(layer + 1)], attributes: { "aria-label": `Layer ${layer + 1}` } })),
    { role: "radio", chosen: settings.layer, choose: (layer) => { settings.layer = layer; change(true); } });
  choices(heads, answer.attention.map((square, head) => ({ content: [headPicture(square), `Head ${head + 1}`], attributes: { "aria-label": `Head ${head + 1}` } })),
    { role: "radio", chosen: settings.head, choose: (head) => { settings.head = head; arcs(); change(false); } });
  const arcs = () => drawArcs(place, looks, answer.tokens, answer.attention[settings.head], settings.special);
  arcs();
  return [
    make("h3", {}, "Layer"), layers, make("h3", {}, "Head"), heads, place,
    make("p", { class: "legend" }, make("i"), "to later tokens (above)  ", make("i", { class: "back" }), "to earlier tokens (below)"),
    looks,
  ];
}

function drawArcs(place, looks, tokens, square, special) {
  const shown = tokens.map((_, number) => number).filter((number) => special || !isSpecial(tokens[number]));
  const centers = new Map();
  let width = 4;
  for (const number of shown) {
    centers.set(number, width + widthOf(tokens[number]) / 2);
    width += widthOf(tokens[number]) + 3;
  }
  const line = draw("g");
  const svg = draw("svg", { width: width + 4, height: 2 * ARC_HEIGHT + TOKEN_HEIGHT + 8, role: "group", "aria-label": "Tokens; arrow keys move, Escape shows all" }, line);
  const nodes = shown.map((number, rank) => {
    const wide = widthOf(tokens[number]);
    const node = draw("g", { class: "token", role: "button", tabindex: rank ? -1 : 0, "aria-label": `${tokens[number]}, token ${number + 1}` },
      draw("rect", { x: centers.get(number) - wide / 2, y: ARC_HEIGHT + 5, width: wide, height: TOKEN_HEIGHT - 2, rx: 7 }),
      draw("text", { x: centers.get(number), y: ARC_HEIGHT + 24, lang: languageOf(tokens[number]) }, tokens[number]));
    node.addEventListener("mouseenter", () => choose(number));
    node.addEventListener("mouseleave", () => { if (document.activeElement !== node) choose(null); });
    node.addEventListener("focus", () => choose(number));
    node.addEventListener("blur", () => choose(null));
    node.addEventListener("click", () => node.focus());
    node.addEventListener("keydown", (event) => {
      const steps = { ArrowRight: rank + 1, ArrowLeft: rank - 1, Home: 0, End: shown.length - 1 };
      if (event.key === "Escape") choose(null);
      if (!(event.key in steps)) return;
      event.preventDefault();
      const next = nodes[Math.max(0, Math.min(shown.length - 1, steps[event.key]))];
      node.setAttribute("tabindex", "-1");
      next.setAttribute("tabindex", "0");
      next.focus();
      next.scrollIntoView({ block: "nearest", inline: "nearest" });
    });
    return node;
  });
  svg.append(...nodes);

  function arc(from, to, most) {
    const weight = square[from][to];
    const start = centers.get(from);
    const back = to < from;
    const y = back ? ARC_HEIGHT + TOKEN_HEIGHT + 6 : ARC_HEIGHT + 2;
    const radius = Math.max(9, Math.abs(centers.get(to) - start) / 2);
    const high = Math.min(radius, ARC_HEIGHT - 8);
    const path = from === to
      ? `M ${start - 7} ${y} C ${start - 14} ${y - 26}, ${start + 14} ${y - 26}, ${start + 7} ${y}`
      : `M ${start} ${y} A ${radius} ${high} 0 0 1 ${centers.get(to)} ${y}`;
    return draw("path", { d: path, class: back ? "back" : "forth", "stroke-width": (0.75 + 5 * weight).toFixed(2), "stroke-opacity": (0.12 + 0.88 * weight / most).toFixed(3) });
  }

  function choose(chosen) {
    let pairs = shown.flatMap((from) => shown.map((to) => [from, to]));
    if (chosen === null) pairs = pairs.sort((one, other) => square[other[0]][other[1]] - square[one[0]][one[1]]).slice(0, STRONGEST * shown.length);
    else pairs = pairs.filter(([from]) => from === chosen);
    pairs = pairs.filter(([from, to]) => square[from][to] >= 0.01);
    const most = Math.max(...pairs.map(([from, to]) => square[from][to]));
    line.replaceChildren(...pairs.map(([from, to]) => arc(from, to, most)));
    nodes.forEach((node, rank) => node.classList.toggle("chosen", shown[rank] === chosen));
    if (chosen === null) {
      looks.replaceChildren(make("p", { class: "empty" }, "The strongest arcs. Point at a token, or go to it with the Tab key and move with the arrow keys, to see only where it looks."));
      return;
    }
    const rows = shown.map((to) => ({ name: tokens[to], share: square[chosen][to], shown: percent(square[chosen][to]) })).sort((one, other) => other.share - one.share).slice(0, 6);
    looks.replaceChildren(make("h3", {}, textElement("span", tokens[chosen]), " looks at"), bars(rows, { label: `${tokens[chosen]} looks at` }));
  }
  choose(null);
  place.replaceChildren(svg);
}
