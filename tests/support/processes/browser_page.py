"""A page in Debian's Chromium that may reach one server only, and all that goes wrong in it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, sync_playwright

CHROMIUM = shutil.which("chromium")
LOOKS: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light", "viewport": {"width": 1280, "height": 900}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 1280, "height": 900}},
    "narrow": {"color_scheme": "light", "viewport": {"width": 390, "height": 844}},
}
VIOLATIONS = """addEventListener("securitypolicyviolation", (event) =>
    console.error("policy violation: " + event.violatedDirective));"""
SETTLED = """() => { const result = document.getElementById("result");
    return result.getAttribute("aria-busy") === "false" && (result.children.length > 0
    || [...document.querySelectorAll(".error")].some((one) => one.textContent)); }"""


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser of the system; nothing is downloaded."""
    if CHROMIUM is None:
        pytest.skip("Chromium is missing: install Debian's packages chromium and fonts-noto-cjk")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


class TriedPage:
    """The page of a service; `faults` are console errors, page errors and foreign requests."""

    def __init__(self, browser: Browser, address: str, **look: Any) -> None:
        self.address = address
        self.faults: list[str] = []
        self.context = browser.new_context(reduced_motion="reduce", **look)
        self.context.set_default_timeout(20_000)
        self.context.add_init_script(VIOLATIONS)
        self.context.route("**/*", self._only_the_service)
        self.page: Page = self.context.new_page()
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))

    def open(self, fragment: str = "") -> Page:
        self.page.goto("about:blank")
        self.page.goto(self.address + "/" + fragment)
        self.settle()
        return self.page

    def settle(self) -> None:
        """Wait until an answer or an error is shown."""
        self.page.wait_for_function(SETTLED)

    def choose(self, model: str, task: str) -> None:
        if self.page.locator("#model").input_value() != model:
            self.page.select_option("#model", model)
        self.page.click(f"#task-{task}")
        if task != "generate":
            self.settle()

    def enter(self, text: str, field: str = "text") -> None:
        """Type a text and run it at once."""
        self.page.fill(f"#field-{field}", text)
        self.page.press(f"#field-{field}", "Control+Enter")
        self.settle()

    def result(self) -> str:
        return self.page.inner_text("#result")

    def close(self) -> None:
        self.context.close()

    def _console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.faults.append(f"{message.text} ({message.location.get('url')})")

    def _only_the_service(self, route: Route) -> None:
        if route.request.url.startswith((self.address + "/", "data:")):
            route.continue_()
        else:
            self.faults.append(f"a request to {route.request.url}")
            route.abort()
