// Views: what is shown of each answer. Each function returns elements.

const COLORS = 8;
const kindOf = (label) => label.replace(/^[BIESMLU]-/, "");

function marked(text, spans, mark) {
  const characters = new Characters(text);
  const shown = make("p", { class: "text", lang: languageOf(text) });
  let end = 0;
  for (const span of [...spans].sort((one, other) => one.start - other.start)) {
    if (span.start < end || span.end <= span.start) continue;
    shown.append(characters.slice(end, span.start), mark(characters.slice(span.start, span.end), span));
    end = span.end;
  }
  shown.append(characters.slice(end, characters.length));
  return shown;
}

const VIEWS = {
  fill(answer, values, model) {
    const parts = values.text.split(model.mask_token || "[MASK]");
    const sentence = make("p", { class: "text", lang: languageOf(values.text) });
    parts.forEach((part, place) => {
      sentence.append(part);
      if (place < parts.length - 1) sentence.append(make("mark", { class: "filled" }, answer.guesses[place]?.[0]?.token ?? "?"));
    });
    const shown = [sentence];
    answer.guesses.forEach((guesses, place) => {
      if (answer.guesses.length > 1) shown.push(make("h3", {}, `Mask ${place + 1}`));
      shown.push(bars(guesses.map((guess, rank) => ({ name: guess.token, share: guess.score, shown: percent(guess.score), first: !rank })),
        { label: `Guesses for mask ${place + 1}` }));
    });
    return shown;
  },

  classify(answer, values, model) {
    if (!model.labels.length) return [make("p", { class: "big" }, answer[0].score.toFixed(3)), make("p", { class: "empty" }, "The score that the model predicts.")];
    return [
      textElement("p", answer[0].label, { class: "big" }),
      bars(answer.map((one, rank) => ({ name: one.label, share: one.score, shown: percent(one.score), first: !rank })), { label: "Classes" }),
    ];
  },

  tag(answer, values, model) {
    const kinds = [...new Set(model.labels.filter((label) => label !== "O").map(kindOf))];
    const color = (label) => `c${Math.max(0, kinds.indexOf(kindOf(label))) % COLORS}`;
    const spans = answer[0].spans;
    const shown = [marked(values.text, spans, (text, span) =>
      make("mark", { class: `entity ${color(span.label)}` }, text, make("span", { class: "kind" }, span.label)))];
    if (!spans.length) return [...shown, make("p", { class: "empty" }, "The model marks nothing in this text.")];
    const rows = spans.map((span) => make("li", {},
      make("span", {}, textElement("span", span.text), " ", make("mark", { class: `entity ${color(span.label)}` }, span.label)),
      make("span", { class: "number" }, span.confidence === undefined ? "" : percent(span.confidence))));
    return [...shown, make("h3", {}, "Entities"), make("ul", { class: "list" }, ...rows)];
  },

  answer(answer, values) {
    const best = answer.answer;
    const shown = best.text
      ? [textElement("p", best.text, { class: "big" }), marked(values.context, [best], (text) => make("mark", { class: "answer" }, text))]
      : [make("p", { class: "big" }, "No answer in this passage")];
    if (answer.others.length) {
      const rows = answer.others.slice(0, 5).map((one) => make("li", {}, textElement("span", one.text || "no answer"), make("span", { class: "number" }, one.score.toFixed(2))));
      shown.push(make("h3", {}, `Other answers (score of the first: ${best.score.toFixed(2)})`), make("ul", { class: "list" }, ...rows));
    }
    return shown;
  },

  choose(answer, values) {
    const texts = lines(values.lines);
    return [
      textElement("p", texts[answer.choice], { class: "big" }),
      bars(texts.map((text, place) => ({ name: text, share: answer.probabilities[place], shown: percent(answer.probabilities[place]), first: place === answer.choice })),
        { long: true, label: "Choices" }),
    ];
  },

  correct(answer) {
    const { corrected, edits } = answer[0];
    const shown = [marked(corrected, edits, (text) => make("mark", { class: "answer" }, text))];
    if (!edits.length) return [...shown, make("p", { class: "empty" }, "The model changes nothing in this text.")];
    const rows = edits.map((edit) => make("li", {},
      make("span", {}, textElement("del", edit.wrong), " → ", textElement("ins", edit.right)), make("span", { class: "number" }, percent(edit.score))));
    return [...shown, make("h3", {}, "Changes"), make("ul", { class: "list" }, ...rows)];
  },

  similarity(answer, values) {
    const rows = lines(values.lines).map((text, place) => ({ text, score: answer[place] })).sort((one, other) => other.score - one.score);
    return [bars(rows.map((row, rank) => ({ name: row.text, share: row.score, shown: row.score.toFixed(3), first: !rank })), { long: true, label: "Lines by similarity" })];
  },

  search(answer) {
    if (!answer.hits.length) return [make("p", { class: "empty" }, "No row of the index fits.")];
    return [bars(answer.hits.map((hit, rank) => ({
      name: hit.text, share: hit.similarity, shown: hit.similarity.toFixed(3), first: !rank,
      more: Object.entries(hit.meta).map(([name, value]) => `${name}: ${value}`).join(" · "),
    })), { long: true, label: "Rows of the index" })];
  },

  tokenize(answer, values, model) {
    const tokens = answer[0];
    const characters = new Characters(values.text);
    const limit = model.max_input_length ?? Infinity;
    const content = tokens.filter((token) => !token.special);
    const kept = content.length - Math.max(0, tokens.length - limit);
    const sentence = make("p", { class: "text pieces", lang: languageOf(values.text) });
    let end = 0;
    let place = 0;
    const list = make("ol", { class: "tokens", "aria-label": "Tokens" });
    for (const token of tokens) {
      if (!token.special) {
        if (token.start > end) sentence.append(characters.slice(end, token.start));
        if (token.stop > end) sentence.append(make("span", {}, characters.slice(Math.max(end, token.start), token.stop)));
        end = Math.max(end, token.stop);
        place += 1;
      }
      const lost = !token.special && place > kept;
      list.append(make("li", { class: token.special ? "special" : lost ? "lost" : null, title: lost ? "beyond what the model reads" : null },
        textElement("span", token.text, { class: "piece" }), make("small", {}, token.id),
        make("small", {}, token.special ? "special" : `${token.start}–${token.stop}`)));
    }
    sentence.append(characters.slice(end, characters.length));
    const fits = tokens.length > limit ? `; the model reads ${limit}` : "";
    return [sentence, make("p", { class: "legend" }, `${tokens.length} tokens for ${characters.length} characters${fits}`), list];
  },
};
