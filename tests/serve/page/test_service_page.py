"""The page of the service in a real browser: every task, both languages, light, dark, narrow."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from browser_page import LOOKS, TriedPage, chromium
from page_models import POSITIONS, TaskFolders
from playwright.sync_api import Browser, Request
from running_service import KEY, RunningService

from bertsmith.serve.http.keys import Keys
from bertsmith.serve.limits import Limits

TASKS = {
    "fill": "masked",
    "classify": "classifier",
    "tag": "tagger",
    "answer": "answerer",
    "choose": "chooser",
    "correct": "corrector",
    "similarity": "masked",
    "search": "masked",
    "generate": "writer",
    "tokenize": "masked",
    "attention": "masked",
}
LANGUAGES = dict.fromkeys(TASKS, ("EN", "中文")) | {"correct": ("中文",)}
HOSTILE = (
    "<script>window.harmed = 1</script>",
    "<img src=x onerror='window.harmed = 1'>",
    "<svg onload='window.harmed = 1'></svg>",
    '"><iframe src="javascript:window.harmed = 1"></iframe>',
    "</textarea></style></script><b>bold</b>",
    "<!-- <style>* { display: none }</style> -->",
    "&lt;script&gt;window.harmed = 1&lt;/script&gt;",
    "javascript:window.harmed = 1 //",
    "${window.harmed = 1} {{ window.harmed = 1 }} `${1}`",
    "a\u202egnirts desrever\u202c\u200b\ufeff\u2028 end",
    "<math><mtext></p><a href='https://example.org/'>x</a>",
    "'; $(touch harmed) `touch harmed` \\' \" 😀 𠮷 ﷽",
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as one:
        yield one


@pytest.fixture(scope="module")
def running(browser: Browser, task_folders: TaskFolders) -> Iterator[RunningService]:
    one = RunningService(task_folders.models, index=task_folders.index, limits=Limits(), keys=())
    yield one
    one.close()


@pytest.fixture(scope="module")
def looks(browser: Browser, running: RunningService) -> Iterator[dict[str, TriedPage]]:
    pages = {name: TriedPage(browser, running.address, **look) for name, look in LOOKS.items()}
    for one in pages.values():
        one.open()
    yield pages
    for one in pages.values():
        one.close()


@pytest.fixture
def tried(browser: Browser, running: RunningService) -> Iterator[TriedPage]:
    one = TriedPage(browser, running.address, **LOOKS["light"])
    one.open()
    yield one
    one.close()


def answer_of(running: RunningService, model: str, route: str, body: dict[str, Any]) -> Any:
    answer = httpx.post(f"{running.address}/models/{model}{route}", json=body, timeout=30)
    assert answer.status_code == 200, answer.text
    return answer.json()


def shown_right(running: RunningService, tried: TriedPage, task: str) -> None:
    """The page shows what the service answers for the texts in its fields."""
    page, model = tried.page, TASKS[task]
    fields = {
        one.get_attribute("id").removeprefix("field-"): one.input_value()
        for one in page.locator("#fields textarea").all()
    }
    text, result = fields.get("text", ""), tried.result()
    if task == "fill":
        guesses = answer_of(running, model, "/fill", {"text": text})["guesses"][0]
        assert page.locator("#result .bars .name").all_inner_texts()[:5] == [
            one["token"] for one in guesses
        ]
        assert f"{100 * guesses[0]['score']:.1f} %" in result
    elif task == "classify":
        best = answer_of(running, model, "/predict", {"inputs": text})[0]
        assert page.inner_text("#result .big") == best["label"]
        assert f"{100 * best['score']:.1f} %" in result
    elif task == "tag":
        spans = answer_of(running, model, "/tag", {"inputs": text})[0]["spans"]
        marks = page.locator("#result .text mark").all_inner_texts()
        assert marks == [one["text"] + one["label"] for one in spans]
    elif task == "answer":
        answer = answer_of(running, model, "/answer", fields)["answer"]
        if answer["text"]:
            assert page.inner_text("#result .answer") == answer["text"]
        else:
            assert "No answer" in result
    elif task == "choose":
        choices = fields["lines"].split("\n")
        body = {"context": fields["context"], "choices": choices}
        chosen = answer_of(running, model, "/choose", body)
        assert page.inner_text("#result .big") == choices[chosen["choice"]]
        assert page.locator("#result .name").all_inner_texts() == choices
        best = chosen["probabilities"][str(chosen["choice"])]
        assert f"{100 * best:.1f} %" in page.inner_text("#result .bars li:has(.first)")
    elif task == "correct":
        found = answer_of(running, model, "/correct", {"inputs": text})[0]
        assert page.text_content("#result .text") == found["corrected"]
        assert page.locator("#result mark").all_inner_texts() == [
            one["right"] for one in found["edits"]
        ]
    elif task == "similarity":
        sentences = fields["lines"].split("\n")
        body = {"inputs": {"source_sentence": text, "sentences": sentences}}
        scores = answer_of(running, model, "/similarity", body)
        order = sorted(range(len(scores)), key=lambda place: -scores[place])
        wanted = [sentences[place] for place in order]
        assert page.locator("#result .name").all_inner_texts() == wanted
    elif task == "search":
        hits = answer_of(running, model, "/search", {"query": text, "k": 5})["hits"]
        assert page.locator("#result .name").all_inner_texts() == [one["text"] for one in hits]
    elif task == "generate":
        written = answer_of(running, model, "/generate", {"text": text, "max_new": 40})["text"]
        assert page.text_content("#result .written span:last-child") == written
    elif task == "tokenize":
        tokens = answer_of(running, model, "/tokenize", {"inputs": text})[0]
        shown = page.locator("#result .tokens li").all_inner_texts()
        assert [one.split("\n")[0] for one in shown] == [one["text"] for one in tokens]
        places = [(one["start"], one["stop"]) for one in tokens if not one["special"]]
        assert [one.split("\n")[-1] for one in shown[1:-1]] == [f"{a}–{b}" for a, b in places]
    else:
        body = {"text": text, "layer": 0}
        answer = answer_of(running, model, "/attention", body)
        assert page.locator("#result .token text").all_text_contents() == answer["tokens"]
        assert page.locator("#result [aria-label=Head] button").count() == len(answer["attention"])
        assert page.locator("#result .arcs path").count() > len(answer["tokens"])


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("task", TASKS)
def test_every_task_in_both_languages(
    running: RunningService, looks: dict[str, TriedPage], task: str, look: str
) -> None:
    tried = looks[look]
    tried.faults.clear()
    page = tried.page
    tried.choose(TASKS[task], task)
    examples = page.locator("#examples button")
    labels = [one.split("\n")[0] for one in examples.all_inner_texts()]
    for language in LANGUAGES[task]:
        examples.nth(labels.index(language)).click()
        tried.settle()
        shown_right(running, tried, task)
        assert page.locator(".error:visible").count() == 0
    times = page.inner_text("#times")
    assert page.locator("#task-fill").count() == (TASKS[task] in ("masked", "corrector"))
    assert "round trip" in times
    if task != "generate":
        assert re.search(r"queue \d+ ms.*compute \d+ ms.*cut 0", times, re.DOTALL)
    width = LOOKS[look]["viewport"]["width"]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert tried.faults == []


def test_the_tagger_marks_birds_in_both_languages(tried: TriedPage) -> None:
    tried.choose("tagger", "tag")
    for text, bird in (("😀 red bird house", "bird"), ("𠮷红鸟屋", "鸟")):
        tried.enter(text)
        # An offset that counts UTF-16 units would be one off behind the first character.
        assert f"{bird}bird" in tried.page.locator("#result .text mark").all_inner_texts()


def test_hostile_texts_add_no_element(tried: TriedPage) -> None:
    page = tried.page
    count = """() => [document.querySelectorAll(
        "script,style,img,iframe,object,embed,link,base,form,math,meta,template,a").length,
        document.querySelectorAll("b:not(#examples b, #times b)").length,
        document.querySelectorAll("svg").length]"""
    for task in ("tokenize", "similarity", "fill", "tag", "answer", "choose", "correct"):
        tried.choose(TASKS[task], task)
        before = page.evaluate(count)
        for text in HOSTILE:
            if task in ("similarity", "choose"):
                page.fill("#field-lines", text if task == "similarity" else f"{text}\nbird")
            if task == "answer":
                page.fill("#field-question", text)
            field = "context" if task in ("answer", "choose") else "text"
            tried.enter(f"{text} [MASK]" if task == "fill" else text, field)
            after = page.evaluate(count)
            assert after == before, (task, text)
            if task in ("similarity", "choose"):
                assert page.text_content("#result .name") == text.replace("\n", " ").strip()
    assert page.evaluate("window.harmed") is None
    assert tried.faults == []


def test_one_request_after_typing_and_older_answers_are_dropped(tried: TriedPage) -> None:
    page = tried.page
    tried.choose("masked", "tokenize")
    asked: list[Request] = []
    page.on("request", lambda request: asked.append(request))
    page.fill("#field-text", "")
    page.locator("#field-text").press_sequentially("red bird", delay=15)
    page.wait_for_function("() => document.querySelectorAll('#result .tokens li').length === 4")
    assert len(asked) == 1
    # The answer to the older text comes after that to the newer one.
    page.evaluate("""() => { const real = window.fetch; let first = true;
        window.fetch = async (path, options) => {
            const late = first; first = false;
            const response = await real(path, {...options, signal: undefined});
            if (late) { await new Promise((done) => setTimeout(done, 400)); window.came = true; }
            return response; }; }""")
    page.fill("#field-text", "red")
    page.press("#field-text", "Control+Enter")
    page.fill("#field-text", "green tree house")
    page.press("#field-text", "Control+Enter")
    page.wait_for_function("() => window.came === true")
    assert page.locator("#result .tokens .piece").all_inner_texts()[1:-1] == [
        "green",
        "tree",
        "house",
    ]


def test_errors_stand_next_to_their_field(tried: TriedPage) -> None:
    page = tried.page
    tried.enter("no mask here")
    assert "[MASK]" in page.inner_text("#field-text-error")
    tried.enter("the [MASK] bird")
    assert page.locator(".error:visible").count() == 0
    page.fill("#setting-top", "1000")
    assert "From 1 to 100" in page.inner_text("#setting-top-error")
    tried.choose("masked", "attention")
    tried.enter("bird " * 150)
    assert "152 tokens" in page.inner_text("#field-text-error")
    assert page.get_attribute("#field-text", "aria-invalid") == "true"
    tried.choose("masked", "similarity")
    tried.enter("bird\n" * 33, "lines")
    assert "at most 32" in page.inner_text("#field-lines-error")
    tried.enter("", "lines")
    assert "Type or paste" in tried.result()
    tried.choose("chooser", "choose")
    tried.enter("only one", "lines")
    assert "at least two" in page.inner_text("#field-lines-error")
    tried.choose("masked", "similarity")
    page.evaluate("() => { window.fetch = () => Promise.reject(new TypeError('gone')); }")
    tried.enter("bird", "lines")
    assert "does not answer" in page.inner_text("#field-lines-error")


def test_a_key_is_asked_for_and_stays_in_memory(
    tried: TriedPage, running: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running.service, "keys", Keys((KEY,)))
    page = tried.page
    page.reload()
    tried.settle()
    assert "needs an API key" in page.inner_text("#key-error")
    page.fill("#key", "wrong")
    page.wait_for_function(
        "() => document.getElementById('key-error').textContent.includes('accept')"
    )
    page.fill("#key", KEY)
    page.wait_for_function("() => document.querySelectorAll('#result .bars li').length > 0")
    assert page.inner_text("#key-error") == ""
    kept = page.evaluate(
        "JSON.stringify([localStorage, sessionStorage, document.cookie, location.href])"
    )
    assert KEY not in kept + page.inner_text("#code")
    assert "$BERTSMITH_KEY" in page.inner_text("#code")
    assert tried.context.cookies() == []
    assert all("401" in fault for fault in tried.faults)


def test_a_link_has_the_settings_and_never_the_text(tried: TriedPage) -> None:
    page = tried.page
    tried.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.fill("#setting-top", "3")
    tried.enter("a secret [MASK]")
    page.click("#languages button:has-text('Python')")
    page.click("#share")
    page.wait_for_function("() => document.getElementById('share').textContent === 'Copied'")
    link = page.evaluate("navigator.clipboard.readText()")
    assert "secret" not in link
    tried.open(link.partition("/#")[2].join(("#", "")))
    assert page.locator("#result .bars li").count() == 3
    assert "urllib" in page.inner_text("#code")
    tried.open("#model=tagger&task=tokenize&top=x&layer=__proto__&code=constructor&model=%3Cb%3E")
    assert page.locator("#model").input_value() == "tagger"
    assert page.get_attribute("#task-tokenize", "aria-selected") == "true"
    assert page.inner_text("#code").startswith("curl ")
    page.evaluate("() => { location.hash = '#model=masked&task=fill&top=2'; }")
    page.wait_for_function("() => document.querySelectorAll('#result .bars li').length === 2")
    assert tried.faults == []


def test_the_shown_request_runs_as_curl_and_as_python(
    tried: TriedPage, running: RunningService, tmp_path: Path
) -> None:
    page = tried.page
    text = HOSTILE[-1] + "\nred bird 红鸟"
    tried.choose("masked", "tokenize")
    tried.enter(text)
    wanted = answer_of(running, "masked", "/tokenize", {"inputs": text})
    shell = subprocess.run(
        ["sh", "-c", page.text_content("#code") or ""], capture_output=True, cwd=tmp_path
    )
    assert json.loads(shell.stdout) == wanted
    page.click("#languages button:has-text('Python')")
    python = [sys.executable, "-c", page.text_content("#code") or ""]
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(python, capture_output=True, cwd=tmp_path, env=environment)
    assert done.stdout.decode().strip() == str(wanted)
    tried.choose("writer", "generate")
    page.click("#run")
    tried.settle()
    done = subprocess.run(
        [sys.executable, "-c", page.text_content("#code") or ""],
        capture_output=True,
        env=environment,
    )
    assert done.stdout.decode() == page.text_content("#result .written span:last-child")
    assert list(tmp_path.iterdir()) == []


def test_what_was_cut_is_marked_in_the_text(tried: TriedPage) -> None:
    tried.choose("masked", "similarity")
    words = ["bird"] * (POSITIONS - 2)
    tried.enter(" ".join([*words, "green", "tree"]))
    tried.page.wait_for_selector("#cut del")
    assert "2 tokens were cut" in tried.page.inner_text("#cut")
    assert tried.page.inner_text("#cut del") == "green tree"


def test_the_keyboard_reaches_everything(tried: TriedPage) -> None:
    page = tried.page
    page.focus("#task-fill")
    page.keyboard.press("End")
    tried.settle()
    assert page.evaluate("document.activeElement.id") == "task-attention"
    assert page.locator("[role=tab][tabindex='0']").count() == 1
    head = page.locator("#result [aria-label=Head] button")
    head.first.focus()
    page.keyboard.press("ArrowRight")
    assert head.nth(1).get_attribute("aria-checked") == "true"
    assert "head=1" in page.url
    page.locator("#result [aria-label=Layer] button").first.focus()
    page.keyboard.press("ArrowDown")
    page.wait_for_function("() => document.activeElement.getAttribute('aria-label') === 'Layer 2'")
    tried.settle()
    assert "layer=1" in page.url
    page.locator("#result .token").first.focus()
    page.keyboard.press("ArrowRight")
    second = page.locator("#result .token text").nth(1).text_content()
    assert f"{second} looks at" in page.inner_text("#result .looks")
    page.locator("#result .token").nth(3).hover()
    fourth = page.locator("#result .token text").nth(3).text_content()
    assert f"{fourth} looks at" in page.inner_text("#result .looks")
    unnamed = """() => [...document.querySelectorAll("input,select,textarea")].filter(
        (one) => !one.labels.length).length"""
    assert page.evaluate(unnamed) == 0


def test_a_stream_that_fails_says_why(tried: TriedPage) -> None:
    tried.choose("writer", "generate")
    tried.enter("bird " * 200)
    assert tried.page.inner_text("#field-text-error")


def test_every_task_fits_360_pixels(browser: Browser, running: RunningService) -> None:
    tried = TriedPage(browser, running.address, viewport={"width": 360, "height": 740})
    page = tried.open()
    for task, model in TASKS.items():
        tried.choose(model, task)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, task
    tried.close()
