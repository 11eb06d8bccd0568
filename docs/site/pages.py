"""The hooks of the site: generated pages, charts, the check that no other host is needed."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parent))
from chart import figure
from options_page import options_page
from settings_page import settings_page

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
TOP = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "CHANGELOG.md": "CHANGELOG.md",
}
HOME = "---\nhide:\n  - navigation\n---\n\n"  # it is alone in its part of the navigation
PICTURE = re.compile(
    r"^!\[.*\]\(images/encoding-speed\.svg\)$", re.MULTILINE
)  # here it follows the scheme
CHART = re.compile(r"^<!-- chart: ([\w-]+) -->$", re.MULTILINE)
INLINE_CODE = re.compile(r"(?<!</span>)<code>[^<]*</code>")
OPTION = re.compile(r"(?<![\w&<-])--?[A-Za-z][\w-]*")
OUTSIDE = re.compile(
    r"<(?:script|img|iframe|source|object|embed)\b[^>]*\b(?:src|data)=[\"']?(?:https?:)?//[^\"' >]*"
    r"|<link\b(?=[^>]*\brel=[\"']?(?:stylesheet|preconnect|preload|icon|modulepreload))"
    r"[^>]*\bhref=[\"']?(?:https?:)?//[^\"' >]*"
    r"|(?:url\(|@import )[\"']?(?:https?:)?//[^\"')]*"
)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the repository's root, the license, the settings and the options."""
    from mkdocs.structure.files import File

    for source, page in TOP.items():
        text = from_root((ROOT / source).read_text(encoding="utf-8"))
        if page == "index.md":
            text = HOME + PICTURE.sub("<!-- chart: encode-mixed -->", text)
        files.append(File.generated(config, page, content=text))
    license_text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    files.append(File.generated(config, "LICENSE.txt", content=license_text))
    files.append(File.generated(config, "settings.md", content=settings_page()))
    files.append(File.generated(config, "options.md", content=options_page()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Draw the charts that a page asks for."""
    return CHART.sub(lambda found: figure(found[1]), markdown)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Keep options in inline code whole: browsers end lines after a hyphen."""
    return INLINE_CODE.sub(
        lambda code: OPTION.sub(r'<span class="option">\g<0></span>', code[0]), html
    )


def on_post_build(config: MkDocsConfig) -> None:
    """Fail when a page or a style sheet would load something from another host."""
    from mkdocs.exceptions import PluginError

    for path in sorted(Path(config.site_dir).rglob("*")):
        if path.suffix in (".html", ".css", ".svg"):
            found = OUTSIDE.search(path.read_text(encoding="utf-8"))
            if found:
                raise PluginError(f"{path.name} loads from another host: {found[0]}")


def from_root(text: str) -> str:
    """A page of the repository's root with its links seen from docs/."""
    return (
        text.replace("](docs/", "](")
        .replace("](README.md", "](index.md")
        .replace("](LICENSE)", "](LICENSE.txt)")
    )
