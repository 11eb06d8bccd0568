"""The page as a file: one answer, its own style and script only, colors with enough contrast."""

from __future__ import annotations

import re
from importlib import resources

from bertsmith.serve.page import page

PAIRS = (
    *(("ink", one) for one in ("page", "card", "code", "cut", "answer", "wash")),
    *(("ink", f"c{number}") for number in range(8)),
    *(("soft", one) for one in ("page", "card", "code", "wash")),
    *(("accent", one) for one in ("page", "card", "wash")),
    ("on-accent", "accent"),
    ("error", "card"),
    ("error", "page"),
)


def luminance(color: str) -> float:
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [one / 12.92 if one <= 0.03928 else ((one + 0.055) / 1.055) ** 2.4 for one in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_text_has_a_contrast_of_at_least_4_5_in_both_schemes() -> None:
    style = resources.files("bertsmith.serve.page").joinpath("page.css").read_text("utf-8")
    light, dark = style.split("@media (prefers-color-scheme: dark)")[:2]
    for part in (light, dark):
        colors = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", part))
        for ink, ground in PAIRS:
            assert contrast(colors[ink], colors[ground]) >= 4.5, (ink, ground)
        assert contrast(colors["edge"], colors["card"]) >= 3
        assert contrast(colors["bar"], colors["wash"]) >= 3


def test_the_page_is_whole_and_strict() -> None:
    content, policy = page()
    html, rules = content.decode(), policy.decode()
    assert "unsafe" not in rules
    assert rules.startswith("default-src 'none'; ")
    assert "/*STYLE*/" not in html
    assert "/*SCRIPT*/" not in html
    assert re.findall(r"""(?:src|href)=["'](?!data:|#)""", html) == []
    # A handler or a style in an attribute would need a weaker policy.
    assert re.findall(r"<[^>]+\s(?:on\w+|style)=", html.partition("<script>")[0]) == []
    for way in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert way not in html
    for place in ("localStorage", "sessionStorage", "document.cookie"):
        assert place not in html
