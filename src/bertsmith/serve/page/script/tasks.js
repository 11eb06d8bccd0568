// Tasks: the fields, settings, examples and request of each ability.
// `names` says which field of the page a field of the request comes from.

const lines = (text) => text.split("\n").map((line) => line.trim()).filter(Boolean);
const number = (label, value, min, max, step = 1) => ({ label, kind: "number", value, min, max, step });
const check = (label, value = false) => ({ label, kind: "check", value });

const TASKS = {
  fill: {
    title: "Fill the mask", route: "/fill",
    about: (model) => `Write ${model.mask_token || "[MASK]"} where the model should put a token.`,
    fields: () => ({ text: { label: "Text with a mask", rows: 3 } }),
    settings: { top: number("Guesses", 5, 1, 100) },
    examples: [
      { text: "Paris is the [MASK] of France." }, { text: "She put the [MASK] on the table and left the [MASK]." },
      { text: "今天天气很[MASK]。" }, { text: "北京是中国的[MASK]都。" },
    ],
    body: (values, settings) => ({ text: values.text, top: settings.top }),
    check: (values, model) => values.text.includes(model.mask_token || "[MASK]") ? null
      : { field: "text", message: `Put ${model.mask_token || "[MASK]"} into the text where a token is missing.` },
  },
  classify: {
    title: "Classify", route: "/predict",
    about: (model) => model.texts === 2 ? "The classes of a pair of texts." : "The classes of a text, with their probabilities.",
    fields: (model) => model.texts === 2
      ? { text: { label: "First text", rows: 3 }, second: { label: "Second text", rows: 3 } }
      : { text: { label: "Text", rows: 5 } },
    examples: [
      { text: "A wonderful film: I laughed, I cried, and I would see it again.", second: "The film was worth the ticket." },
      { text: "The soup was cold and nobody took our order.", second: "We had a lovely dinner." },
      { text: "房间很干净，服务也非常好，下次还会来。", second: "客人对酒店很满意。" },
      { text: "电池不到一天就没电了，很失望。", second: "电池非常耐用。" },
    ],
    names: { inputs: "text" },
    body: (values, settings, model) => ({ inputs: model.texts === 2 ? [values.text, values.second] : values.text }),
  },
  tag: {
    title: "Entities", route: "/tag",
    about: () => "Names and other pieces of the text that the model marks.",
    fields: () => ({ text: { label: "Text", rows: 5 } }),
    examples: [
      { text: "Ada Lovelace wrote to Charles Babbage from London in 1843." }, { text: "The river Rhine runs from Switzerland to the North Sea." },
      { text: "李明去年从上海搬到北京，在清华大学教书。" }, { text: "长江流经武汉和南京，最后到达上海。" },
    ],
    names: { inputs: "text" },
    body: (values) => ({ inputs: values.text }),
  },
  answer: {
    title: "Answer", route: "/answer",
    about: () => "The answer to a question, as a piece of the passage.",
    fields: () => ({ question: { label: "Question", rows: 1 }, context: { label: "Passage", rows: 7 } }),
    examples: [
      { question: "Who built the bridge?", context: "The old bridge over the river was built by Anna Weber in 1874. It was closed for repairs a hundred years later and has been open to walkers since." },
      { question: "When was the bridge closed?", context: "The old bridge over the river was built by Anna Weber in 1874. It was closed for repairs in 1974 and has been open to walkers since." },
      { question: "谁建造了这座桥？", context: "河上的老桥由王建国在1874年建造。一百年以后，它因为维修关闭，现在只有行人可以通过。" },
      { question: "图书馆几点关门？", context: "市图书馆每天上午九点开门，晚上八点关门。周一全天休息。" },
    ],
    body: (values) => ({ question: values.question, context: values.context }),
  },
  choose: {
    title: "Choose", route: "/choose",
    about: () => "Which of the lines fits the beginning or answers the question.",
    fields: () => ({ context: { label: "Beginning or question", rows: 3 }, lines: { label: "Choices, one per line", rows: 5 } }),
    examples: [
      { context: "She poured the coffee into her cup and", lines: "took a careful sip.\ndrove the cup to the station.\nplanted it in the garden." },
      { context: "What do people use to cut bread?", lines: "a knife\na pillow\na candle\na letter" },
      { context: "他打开雨伞，因为", lines: "外面下雨了。\n他想睡觉。\n书很有意思。" },
      { context: "人们用什么切面包？", lines: "刀\n枕头\n蜡烛\n信" },
    ],
    names: { choices: "lines" },
    body: (values) => ({ context: values.context, choices: lines(values.lines) }),
    check: (values, model) => {
      const count = lines(values.lines).length;
      if (count < 2) return { field: "lines", message: "Write at least two choices, one per line." };
      return count <= model.max_client_batch_size ? null
        : { field: "lines", message: `${count} lines; the service takes at most ${model.max_client_batch_size} per request.` };
    },
    texts: (values) => [values.context, ...lines(values.lines)],
  },
  generate: {
    title: "Write", route: "/generate", onDemand: true,
    about: () => "The model writes on, or writes what it was trained to make of the text.",
    fields: () => ({ text: { label: "Beginning or source", rows: 5 } }),
    settings: { max_new: number("Tokens at most", 40, 1, 1000), sample: check("sample"), temperature: number("Temperature", 0.8, 0.05, 5, 0.05) },
    examples: [{ text: "Once upon a time there was a small house by the river" }, { text: "The best way to learn a language is" }, { text: "从前有一座山，山上有一座庙，" }, { text: "学习语言最好的方法是" }],
    body: (values, settings) => ({
      text: values.text, max_new: settings.max_new,
      ...(settings.sample ? { sample: true, temperature: settings.temperature } : {}), stream: true,
    }),
  },
  correct: {
    title: "Correct", route: "/correct",
    about: () => "The spelling of Chinese text, corrected: one character for another.",
    fields: () => ({ text: { label: "Text", rows: 5 } }),
    examples: [{ text: "他每天坐公交车去上斑。" }, { text: "今天天汽很好，我们去公圆散步。" }],
    names: { inputs: "text" },
    body: (values) => ({ inputs: values.text }),
  },
  similarity: {
    title: "Nearest sentences", route: "/similarity",
    about: () => "The lines below, ordered by their similarity to the sentence.",
    fields: () => ({ text: { label: "Sentence", rows: 2 }, lines: { label: "Lines to compare, one sentence each", rows: 8 } }),
    examples: [
      { text: "How can I reset my password?", lines: "I forgot my login and cannot sign in\nWhat are your opening hours?\nChange the password of an account\nThe train to Hamburg is late" },
      { text: "A cat sleeps on the sofa.", lines: "A kitten is napping on the couch\nStocks fell sharply on Monday\nThe dog runs in the park\nSomebody is cooking soup" },
      { text: "怎样修改密码？", lines: "我忘记了登录密码\n你们几点开门？\n更改账户的密码\n去上海的火车晚点了" },
      { text: "一只猫在沙发上睡觉。", lines: "小猫在沙发上打盹\n股市周一大跌\n狗在公园里跑\n有人在煮汤" },
    ],
    names: { source_sentence: "text", sentences: "lines", inputs: "lines" },
    body: (values) => ({ inputs: { source_sentence: values.text, sentences: lines(values.lines) } }),
    check: (values, model) => lines(values.lines).length <= model.max_client_batch_size ? null
      : { field: "lines", message: `${lines(values.lines).length} lines; the service takes at most ${model.max_client_batch_size} per request.` },
    texts: (values) => [values.text, ...lines(values.lines)],
  },
  search: {
    title: "Search the index", route: "/search",
    about: () => "The nearest rows of the index that is served.",
    fields: () => ({ text: { label: "Query", rows: 2 } }),
    settings: { k: number("Results", 5, 1, 1000), hybrid: check("also by words (hybrid)") },
    examples: [{ text: "How do I open a file?" }, { text: "a small bird in a green tree" }, { text: "怎样打开文件？" }, { text: "今天天气怎么样" }],
    names: { query: "text" },
    body: (values, settings) => ({ query: values.text, k: settings.k, hybrid: settings.hybrid }),
  },
  tokenize: {
    title: "Tokens", route: "/tokenize",
    about: () => "The tokens of the text: the piece, its number in the vocabulary, and its place in the text.",
    fields: () => ({ text: { label: "Text", rows: 5 } }),
    examples: [{ text: "Unbelievably, tokenizers split rare words into pieces." }, { text: "Emails like ada@example.org have 5 parts 🙂" }, { text: "自然语言处理很有意思，BERT也是。" }, { text: "𠮷野家在东京🙂" }],
    names: { inputs: "text" },
    body: (values) => ({ inputs: values.text }),
  },
  attention: {
    title: "Attention", route: "/attention", across: true,
    about: () => "Where each token looks, by layer and head.",
    fields: () => ({ text: { label: "Text, at most 128 tokens", rows: 2 } }),
    settings: { special: check("show special tokens", true) },
    hidden: { layer: 0, head: 0 },
    examples: [{ text: "The cat sat on the mat because it was tired." }, { text: "Flying planes can be dangerous." }, { text: "小猫坐在垫子上，因为它累了。" }, { text: "他把书还给了图书馆。" }],
    body: (values, settings) => ({ text: values.text, layer: settings.layer }),
  },
};
