"""The page to try models: HTML, style and script as one answer with a strict policy."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib import resources

STYLE, SCRIPT = "/*STYLE*/", "/*SCRIPT*/"
SCRIPTS = ("elements", "tasks", "views", "attention", "requests", "page")  # in this order


@cache
def page() -> tuple[bytes, bytes]:
    """The page and its Content-Security-Policy: only its own style and script may run."""
    files = resources.files(__package__)
    style = files.joinpath("page.css").read_text("utf-8")
    script = "".join(files.joinpath("script", f"{one}.js").read_text("utf-8") for one in SCRIPTS)
    html = files.joinpath("page.html").read_text("utf-8")
    content = html.replace(STYLE, style).replace(SCRIPT, script)
    policy = (
        "default-src 'none'; "
        f"style-src '{_hash(style)}'; script-src '{_hash(script)}'; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return content.encode(), policy.encode()


def _hash(content: str) -> str:
    digest = hashlib.sha256(content.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
