// The page: its state, what is typed, and what is shown. The key and the texts stay in memory.

const DELAY = 300; // milliseconds after the last key
const state = { models: {}, model: null, task: null, language: "curl", values: {}, settings: {}, number: 0, timer: 0, aborter: null };
const wanted = new URLSearchParams(location.hash.slice(1));

const currentModel = () => state.models[state.model];
const key = () => byId("key").value.trim();
const settingsOf = (task) => (state.settings[task] ??= {
  ...Object.fromEntries(Object.entries(TASKS[task].settings ?? {}).map(([name, one]) => [name, one.value])), ...TASKS[task].hidden,
});
const say = (message) => { byId("said").textContent = message; };

function showError(place, message) {
  const error = byId(`${place}-error`);
  const input = byId(place);
  if (!error) return showError("model", message);
  error.textContent = message;
  input.classList.toggle("wrong", Boolean(message));
  if (message) input.setAttribute("aria-invalid", "true");
  else input.removeAttribute("aria-invalid");
}

function clearErrors() {
  for (const error of document.querySelectorAll(".error")) if (error.textContent) showError(error.id.replace(/-error$/, ""), "");
}

// Next to the field that the message of the service begins with, else the first field.
function placeError(error) {
  if (error.status === 401) return showError("key", error.message);
  const task = TASKS[state.task];
  if (!task || /\bmodels? (that can|has|here)\b/.test(error.message)) return showError("model", error.message);
  const named = error.message.match(/^(?:inputs\.)?(\w+)/)?.[1] ?? "";
  const name = task.names?.[named] ?? named;
  const fields = Object.keys(task.fields(currentModel()));
  if (name in (task.settings ?? {})) return showError(`setting-${name}`, error.message);
  return showError(`field-${fields.includes(name) ? name : fields.at(-1)}`, error.message);
}

// ---- model, task, settings -------------------------------------------------

async function loadModels() {
  const mine = ++state.number;
  clearErrors();
  try {
    const response = await call("/models", { key: key() });
    const models = await response.json();
    if (mine !== state.number) return;
    state.models = models;
  } catch (error) {
    if (mine === state.number) { byId("panel").hidden = true; placeError(error); }
    return;
  }
  byId("panel").hidden = false;
  const names = Object.keys(state.models);
  byId("model").replaceChildren(...names.map((name) => make("option", { value: name }, name)));
  selectModel(names.includes(state.model) ? state.model : names.includes(wanted.get("model")) ? wanted.get("model") : names[0]);
}

function selectModel(name) {
  state.model = name;
  byId("model").value = name;
  const model = currentModel();
  const facts = [`${model.dimension} dimensions`, `${model.max_input_length ?? "any number of"} tokens per text`, model.engine];
  if (model.labels.length) facts.push(`labels: ${model.labels.slice(0, 8).join(", ")}${model.labels.length > 8 ? " …" : ""}`);
  byId("model-facts").textContent = facts.filter(Boolean).join(" · ");
  const able = Object.keys(TASKS).filter((task) => model.abilities.includes(task));
  const first = [state.task, wanted.get("task")].find((task) => able.includes(task)) ?? able[0];
  choices(byId("tasks"), able.map((task) => ({ content: [TASKS[task].title], attributes: { id: `task-${task}`, "aria-controls": "panel" } })),
    { role: "tab", chosen: able.indexOf(first), choose: (place) => selectTask(able[place]) });
  selectTask(first);
}

function selectTask(name) {
  state.task = name;
  const task = TASKS[name];
  const model = currentModel();
  const settings = settingsOf(name);
  for (const [setting, value] of Object.entries(settings)) {
    if (!wanted.has(setting)) continue;
    const given = wanted.get(setting);
    if (typeof value === "boolean") settings[setting] = given === "true";
    else if (Number.isFinite(Number(given))) settings[setting] = Math.max(task.settings?.[setting]?.min ?? 0, Math.min(task.settings?.[setting]?.max ?? 1000, Number(given)));
  }
  for (const setting of [...wanted.keys()]) wanted.delete(setting); // a link counts once
  state.values[name] ??= exampleValues(task.examples[0]);
  byId("panel").setAttribute("aria-labelledby", `task-${name}`);
  byId("panel").classList.toggle("across", Boolean(task.across));
  byId("about").textContent = task.about(model);
  byId("examples").replaceChildren(...task.examples.map(exampleButton));
  byId("fields").replaceChildren(...Object.entries(task.fields(model)).map(([field, one]) => fieldElement(field, one)));
  byId("settings").replaceChildren(...Object.entries(task.settings ?? {}).map(([setting, one]) => settingElement(setting, one)));
  byId("actions").replaceChildren(...(task.onDemand
    ? [make("button", { type: "button", id: "run", click: run }, "Write"), make("button", { type: "button", id: "stop", class: "quiet", disabled: true, click: stop }, "Stop"), make("span", { class: "hint" }, "or Ctrl + Enter")]
    : []));
  nothing();
  if (!task.onDemand) { run(); return; }
  stop();
  clearErrors();
  if (describe()) nothing("Press “Write”, or take an example.");
}

function exampleValues(example) {
  const mask = currentModel().mask_token || "[MASK]";
  return Object.fromEntries(Object.entries(example).map(([field, text]) => [field, text.replaceAll("[MASK]", mask)]));
}

function exampleButton(example) {
  const values = exampleValues(example);
  const text = values.question ?? values.context ?? values.text;
  const chinese = Boolean(languageOf(text));
  return make("button", { type: "button", click: () => useExample(values) },
    make("b", { lang: chinese ? "zh-Hans" : null }, chinese ? "中文" : "EN"), textElement("span", text));
}

function useExample(values) {
  state.values[state.task] = { ...values };
  for (const field of Object.keys(TASKS[state.task].fields(currentModel()))) {
    byId(`field-${field}`).value = values[field] ?? "";
    setLanguage(byId(`field-${field}`));
  }
  run();
}

function setLanguage(input) {
  const language = languageOf(input.value);
  if (language) input.lang = language;
  else input.removeAttribute("lang");
}

function fieldElement(name, field) {
  const id = `field-${name}`;
  const input = make("textarea", { id, rows: field.rows, spellcheck: "false", autocomplete: "off", "aria-describedby": `${id}-error` });
  input.value = state.values[state.task][name] ?? "";
  setLanguage(input);
  input.addEventListener("input", () => {
    state.values[state.task][name] = input.value;
    setLanguage(input);
    soon();
  });
  return make("div", { class: "field" }, make("label", { for: id }, field.label), input, make("p", { class: "error", id: `${id}-error`, role: "alert" }));
}

function settingElement(name, setting) {
  const id = `setting-${name}`;
  const settings = settingsOf(state.task);
  const isCheck = setting.kind === "check";
  const input = make("input", isCheck ? { id, type: "checkbox" } : { id, type: "number", min: setting.min, max: setting.max, step: setting.step, "aria-describedby": `${id}-error` });
  if (isCheck) input.checked = settings[name];
  else input.value = settings[name];
  input.addEventListener("input", () => {
    if (!isCheck && (input.value === "" || !input.checkValidity())) {
      showError(id, `From ${setting.min} to ${setting.max}.`);
      return;
    }
    showError(id, "");
    settings[name] = isCheck ? input.checked : Number(input.value);
    soon();
  });
  return make("div", { class: "field" }, ...(isCheck ? [input, make("label", { for: id }, setting.label)] : [make("label", { for: id }, setting.label), input]),
    make("p", { class: "error", id: `${id}-error`, role: "alert" }));
}

// ---- requests -------------------------------------------------------------

function soon() {
  clearTimeout(state.timer);
  if (TASKS[state.task].onDemand) { describe(); return; }
  state.timer = setTimeout(run, DELAY);
}

function stop() {
  clearTimeout(state.timer);
  state.number += 1; // what is still on its way is dropped
  state.aborter?.abort();
  busy(false);
}

function busy(is) {
  byId("result").setAttribute("aria-busy", String(is));
  if (byId("stop")) byId("stop").disabled = !is;
}

function nothing(message = "") {
  byId("result").replaceChildren(...(message ? [make("p", { class: "empty" }, message)] : []));
  byId("cut").replaceChildren();
  byId("times").replaceChildren();
}

// The request of what is typed now, and as code; null where something is missing.
function describe() {
  const task = TASKS[state.task];
  const values = state.values[state.task];
  const settings = settingsOf(state.task);
  writeHash();
  const body = task.body(values, settings, currentModel());
  const route = modelPath(state.model, task.route);
  byId("code").textContent = CODE[state.language](location.origin + route, body, Boolean(key()));
  const empty = Object.entries(task.fields(currentModel())).find(([field]) => !(values[field] ?? "").trim());
  if (empty) { nothing(`Type or paste something into “${empty[1].label}”, or take an example.`); return null; }
  const fault = task.check?.(values, currentModel());
  if (fault) { nothing(); showError(`field-${fault.field}`, fault.message); return null; }
  return { task, name: state.task, values: { ...values }, settings, model: currentModel(), body, route };
}

async function run() {
  stop();
  clearErrors();
  const request = describe();
  if (!request) return;
  const mine = ++state.number;
  state.aborter = new AbortController();
  busy(true);
  const start = performance.now();
  try {
    const response = await call(request.route, { body: request.body, key: key(), signal: state.aborter.signal });
    let first = null;
    if (request.body.stream) first = await showStream(response, request, mine);
    else {
      const answer = await response.json();
      if (mine !== state.number) return;
      showAnswer(answer, request);
    }
    if (mine !== state.number) return;
    showTimes(response, performance.now() - start, first === null ? null : first - start);
    const cut = Number(response.headers.get("x-cut-tokens") ?? 0);
    await showCut(cut, request, mine);
  } catch (error) {
    if (mine !== state.number || error.name === "AbortError") return;
    if (!(error instanceof ServiceError)) throw error;
    nothing();
    placeError(error);
  } finally {
    if (mine === state.number) busy(false);
  }
}

function showAnswer(answer, request) {
  const focused = document.activeElement?.closest("#result [role=radiogroup]")?.getAttribute("aria-label");
  const shown = request.name === "attention"
    ? attentionView(answer, request.settings, (again) => (again ? run() : describe()))
    : VIEWS[request.name](answer, request.values, request.model);
  byId("result").replaceChildren(...shown);
  byId("cut").replaceChildren();
  // Another layer is another answer: the keyboard stays where it was.
  if (focused) byId("result").querySelector(`[role=radiogroup][aria-label="${focused}"] [tabindex="0"]`)?.focus();
}

// Returns the moment of the first piece.
async function showStream(response, request, mine) {
  let first = null;
  const written = make("span");
  byId("cut").replaceChildren();
  byId("result").replaceChildren(make("p", { class: "written", lang: languageOf(request.values.text) },
    make("span", { class: "prompt" }, request.values.text), languageOf(request.values.text) ? "" : " ", written));
  for await (const event of eventsOf(response)) {
    if (mine !== state.number) return first;
    first ??= performance.now();
    if (event.error) throw new ServiceError(response.status, event.error);
    written.append(event.text);
  }
  if (!written.textContent) written.replaceChildren(make("span", { class: "empty" }, "(nothing more)"));
  return first;
}

function showTimes(response, roundTrip, firstPiece) {
  const header = (name) => response.headers.get(name);
  const streamed = (header("content-type") ?? "").startsWith("text/event-stream");
  const rows = streamed ? [["first piece", firstPiece === null ? null : Math.round(firstPiece), "ms"]] : [["queue", header("x-queue-time"), "ms"], ["compute", header("x-inference-time"), "ms"], ["service", header("x-total-time"), "ms"]];
  rows.push(["round trip", Math.round(roundTrip), "ms"]);
  if (!streamed) rows.push(["tokens", header("x-compute-tokens"), ""], ["cut", header("x-cut-tokens"), ""]);
  byId("times").replaceChildren(...rows.filter(([, value]) => value !== null).map(([name, value, unit]) =>
    make("li", {}, `${name} `, make("b", {}, `${value}${unit ? ` ${unit}` : ""}`))));
}

// What the model did not read: counted by the service, marked where the tokens account for it.
async function showCut(cut, request, mine) {
  if (!cut) return;
  const box = byId("cut");
  box.replaceChildren(make("p", {}, `${cut} tokens were cut: the model reads ${request.model.max_input_length} per text.`));
  const texts = request.task.texts?.(request.values) ?? Object.keys(request.task.fields(request.model)).map((field) => request.values[field]);
  if (texts.length > request.model.max_client_batch_size) return;
  const response = await call(modelPath(state.model, "/tokenize"), { body: { inputs: texts }, key: key(), signal: state.aborter.signal });
  const rows = await response.json();
  if (mine !== state.number) return;
  const beyond = rows.map((row) => Math.max(0, row.length - request.model.max_input_length));
  if (beyond.reduce((sum, one) => sum + one, 0) !== cut) return;
  rows.forEach((row, place) => {
    if (!beyond[place]) return;
    const content = row.filter((token) => !token.special);
    const characters = new Characters(texts[place]);
    const end = content[content.length - beyond[place]].start;
    box.append(make("p", { lang: languageOf(texts[place]) }, characters.slice(0, end), make("del", {}, characters.slice(end, characters.length))));
  });
}

// ---- link, code, start ------------------------------------------------------

function writeHash() {
  const settings = Object.entries(settingsOf(state.task)).map(([name, value]) => [name, String(value)]);
  const hash = new URLSearchParams([["model", state.model], ["task", state.task], ["code", state.language], ...settings]);
  history.replaceState(null, "", `#${hash}`);
}

async function copied(button, text, element) {
  const before = button.textContent;
  const done = await copyText(text, element);
  button.textContent = done ? "Copied" : "Press Ctrl + C";
  say(done ? "Copied" : "Selected; press Ctrl and C");
  setTimeout(() => { button.textContent = before; }, 1500);
}

function start() {
  if (Object.hasOwn(CODE, wanted.get("code") ?? "")) state.language = wanted.get("code");
  const languages = Object.keys(CODE);
  choices(byId("languages"), languages.map((name) => ({ content: [name] })), {
    role: "radio", chosen: languages.indexOf(state.language), choose: (place) => { state.language = languages[place]; describe(); },
  });
  byId("model").addEventListener("change", (event) => selectModel(event.target.value));
  byId("copy").addEventListener("click", () => copied(byId("copy"), byId("code").textContent, byId("code")));
  byId("share").addEventListener("click", () => copied(byId("share"), location.href));
  byId("key").addEventListener("input", () => { clearTimeout(state.timer); state.timer = setTimeout(loadModels, DELAY); });
  addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && state.task) run(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { if (state.task === "attention") run(); });
  addEventListener("hashchange", () => {
    const link = new URLSearchParams(location.hash.slice(1));
    if (!Object.hasOwn(state.models, link.get("model") ?? "")) return;
    for (const [name, value] of link) wanted.set(name, value);
    state.task = null;
    selectModel(link.get("model"));
  });
  loadModels();
}

start();
