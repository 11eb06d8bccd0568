// Requests: calling the service, and the same call as curl and as Python.

class ServiceError extends Error {
  constructor(status, message) { super(message); this.status = status; }
}

function requestHeaders(key) {
  return { "content-type": "application/json", ...(key ? { authorization: `Bearer ${key}` } : {}) };
}

// A failed answer in words; the service names the fault, the page only what it cannot know.
async function failure(response) {
  let message = "";
  try {
    const { error } = await response.json();
    message = typeof error === "string" ? error : error?.message ?? "";
  } catch { /* not JSON: the status has to do */ }
  message = message.replace(/^row 0: /, "");
  if (response.status === 401) message = byId("key").value ? "The service does not accept this key." : "This service needs an API key.";
  return new ServiceError(response.status, message || `The service answered with status ${response.status}.`);
}

async function call(path, { body, key, signal } = {}) {
  let response;
  try {
    response = await fetch(path, {
      method: body === undefined ? "GET" : "POST", headers: requestHeaders(key), signal, cache: "no-store", credentials: "omit",
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServiceError(0, error instanceof TypeError && key && /[^\x20-\x7e]/.test(key)
      ? "A key has only letters, digits and signs of ASCII." : "The service does not answer. Is it still running?");
  }
  if (!response.ok) throw await failure(response);
  return response;
}

// The events of a stream as they come in.
async function* eventsOf(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const events = (rest + value).split("\n\n");
      rest = events.pop();
      for (const event of events) if (event.startsWith("data: ")) yield JSON.parse(event.slice(6));
    }
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServiceError(0, "The service ended the stream before its end.");
  } finally {
    reader.cancel().catch(() => {});
  }
}

const modelPath = (name, route) => `/models/${encodeURIComponent(name)}${route}`;

function pythonValue(value, indent = "    ") {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value !== "object") return JSON.stringify(value);
  const deeper = `${indent}    `;
  const rows = Array.isArray(value) ? value.map((one) => pythonValue(one, deeper))
    : Object.entries(value).map(([name, one]) => `${JSON.stringify(name)}: ${pythonValue(one, deeper)}`);
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  return `${open}\n${rows.map((row) => `${deeper}${row},\n`).join("")}${indent}${close}`;
}

const CODE = {
  curl(url, body, keyed) {
    const quoted = `'${JSON.stringify(body).replaceAll("'", "'\\''")}'`;
    const parts = [`curl ${body.stream ? "-N " : ""}${url}`, "-H 'content-type: application/json'"];
    if (keyed) parts.push('-H "authorization: Bearer $BERTSMITH_KEY"');
    return [...parts, `-d ${quoted}`].join(" \\\n  ");
  },
  Python(url, body, keyed) {
    const headers = ['"content-type": "application/json"'];
    if (keyed) headers.push('"authorization": "Bearer " + os.environ["BERTSMITH_KEY"]');
    return [
      "import json", ...(keyed ? ["import os"] : []), "import urllib.request", "",
      "request = urllib.request.Request(", `    ${JSON.stringify(url)},`,
      `    data=json.dumps(${pythonValue(body)}).encode(),`, `    headers={${headers.join(", ")}},`, ")",
      "with urllib.request.urlopen(request, timeout=60) as response:",
      ...(body.stream
        ? ["    for line in response:", '        if line.startswith(b"data: "):', '            print(json.loads(line[6:])["text"], end="", flush=True)']
        : ["    print(json.load(response))"]),
    ].join("\n");
  },
};

async function copyText(text, element) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch { // no clipboard without HTTPS: the text is selected instead
    if (element) getSelection().selectAllChildren(element);
    return false;
  }
}
