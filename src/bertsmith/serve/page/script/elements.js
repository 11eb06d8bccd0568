"use strict";
// Elements: every text becomes a text node, so that no text is ever read as markup.

const SVG = "http://www.w3.org/2000/svg";
const byId = (id) => document.getElementById(id);

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (typeof value === "function") element.addEventListener(name, value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children) element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  return element;
}

const make = (tag, attributes = {}, ...children) => filled(document.createElement(tag), attributes, children);
const draw = (tag, attributes = {}, ...children) => filled(document.createElementNS(SVG, tag), attributes, children);

// The browser chooses the shapes of Han characters by the language.
const languageOf = (text) => (/\p{Script=Han}/u.test(text) ? "zh-Hans" : null);
const textElement = (tag, text, attributes = {}) => make(tag, { lang: languageOf(text), ...attributes }, text);

// Offsets of the service count characters (code points), those of JavaScript do not.
class Characters {
  constructor(text) { this.points = Array.from(text); }
  get length() { return this.points.length; }
  slice(start, end) { return this.points.slice(start, end).join(""); }
}

const percent = (share) => `${(100 * share).toFixed(1)} %`;

// Rows of {name, share, shown, more, first}: a name, a bar from 0 to 1, a number.
function bars(rows, { long = false, label }) {
  const list = make("ul", { class: long ? "bars long" : "bars", "aria-label": label });
  for (const row of rows) {
    const amount = make("span", { class: "amount" });
    amount.style.width = `${100 * Math.max(0, Math.min(1, row.share))}%`;
    const item = make("li", {},
      textElement("span", row.name, { class: row.first ? "name first" : "name" }),
      make("span", { class: "track", "aria-hidden": "true" }, amount),
      make("span", { class: "number" }, row.shown));
    if (row.more) item.append(textElement("span", row.more, { class: "more" }));
    list.append(item);
  }
  return list;
}

// Buttons of which one is chosen: one stop for the Tab key, arrow keys move and choose.
function choices(group, items, { role, chosen, choose }) {
  const state = role === "tab" ? "aria-selected" : "aria-checked";
  const buttons = items.map((item, place) => {
    const button = make("button", { type: "button", role, ...item.attributes }, ...item.content);
    button.addEventListener("click", () => pick(place, false));
    button.addEventListener("keydown", (event) => {
      const steps = { ArrowRight: place + 1, ArrowDown: place + 1, ArrowLeft: place - 1, ArrowUp: place - 1, Home: 0, End: items.length - 1 };
      if (!(event.key in steps) || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      pick((steps[event.key] + items.length) % items.length, true);
    });
    return button;
  });
  function mark(place) {
    buttons.forEach((button, number) => {
      button.setAttribute(state, String(number === place));
      button.tabIndex = number === place ? 0 : -1;
    });
  }
  function pick(place, focus) {
    mark(place);
    choose(place);
    if (focus && buttons[place].isConnected) buttons[place].focus();
  }
  mark(chosen);
  group.replaceChildren(...buttons);
  return buttons;
}
