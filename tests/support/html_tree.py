"""A page as the tree a browser would see: tags with their attributes' names, and the text."""

from __future__ import annotations

from html.parser import HTMLParser

PAYLOADS = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)',
    "' onfocus='alert(1)' autofocus='",
    "]]><svg onload=alert(1)>",
    "<!-- --><b>",
    "javascript:alert(1)",
    "a\u2028b\u2029c",
    "\u202eevil\u202c",
    "zero\u200bwidth\x00\x1b[31m",
    "</style><style>*{display:none}",
    "</title></head><body onload=alert(1)>&lt;b&gt;&#60;",
    "\ud800 lone",
]


class Tree(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, tuple[str, ...]]] = []
        self.texts: list[str] = []
        self.values: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attributes) -> None:
        self.tags.append((tag, tuple(name for name, _ in attributes)))
        self.values += [value or "" for _, value in attributes]
        self.attributes += [(name, value or "") for name, value in attributes]

    def handle_comment(self, data) -> None:
        self.tags.append(("comment", (data,)))

    def handle_data(self, data) -> None:
        self.texts.append(data)
