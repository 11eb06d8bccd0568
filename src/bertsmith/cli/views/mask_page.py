"""The page that `bertsmith mask preview --html` writes: self-contained, no script."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from bertsmith.cli.commands.mask import measured, visible, words_of

if TYPE_CHECKING:
    from bertsmith.objectives.masking.preview import Piece, Preview
    from bertsmith.objectives.masking.settings import MaskSettings

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Masking preview</title>
<style>
body {{ font: 16px/1.9 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto }}
p {{ border-bottom: 1px solid #ddd; padding-bottom: .8rem }}
u {{ text-underline-offset: .3rem; text-decoration-thickness: 2px }}
bdi {{ padding: 0 .15rem; border-radius: .2rem }}
.mask {{ background: #ffe066 }} .random {{ background: #ffb3b3 }}
.keep {{ background: #b8e6b8 }} .similar {{ background: #b3d4ff }}
table {{ border-collapse: collapse }} td, th {{ padding: .1rem .8rem; text-align: left }}
</style>
</head>
<body>
<h1>Masking preview</h1>
<p>{scheme}</p>
<p><bdi class="mask">[MASK]</bdi> <bdi class="random">random token</bdi>
<bdi class="keep">unchanged</bdi> <bdi class="similar">similar word</bdi>
<u>masked together</u></p>
<table>
<tr><th>{summary}</th><th>requested</th><th>measured</th></tr>
{rows}
</table>
{samples}
</body>
</html>
"""


def page(found: Preview, requested: dict[str, float], settings: MaskSettings) -> str:
    """The whole page; everything that comes from texts or settings is escaped."""
    tally = found.tally
    rows = (
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
        for row in measured(tally, requested)
    )
    return PAGE.format(
        scheme=escape(visible(settings.model_dump_json(exclude_none=True))),
        summary=f"{tally.texts:,} texts, {tally.tokens:,} tokens, {tally.units:,} masked units",
        rows="\n".join(rows),
        samples="\n".join(f"<p>{_line(pieces)}</p>" for pieces in found.samples),
    )


def _line(pieces: list[Piece]) -> str:
    parts = []
    for piece in pieces:
        style = "" if piece.fate == "shown" else f' class="{piece.fate}"'
        text = f"<bdi{style}>{escape(words_of(piece))}</bdi>"
        parts.append(f"{'<u>' if piece.opens else ''}{text}{'</u>' if piece.closes else ''}")
    return " ".join(parts)
