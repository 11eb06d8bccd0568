"""What a knowledge graph or a channel of tags gave, and the comparison without it, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from bertsmith.report.elements.page import heading, paragraph
from bertsmith.report.elements.values import part


def enrichment_lines(record: Mapping[str, Any]) -> list[str]:
    """Coverage of each split, then the ablation; [] for a model without either."""
    section = part(dict(record), "enrichment")
    lines = [_coverage(name, part(section, "coverage", name)) for name in part(section, "coverage")]
    ablation = part(section, "ablation")
    if ablation:
        lines.append(
            f"the same training without the {section.get('key')} (ablation), on "
            f"{ablation.get('split')}:"
        )
        lines += [f"  {line}" for line in ablation.get("words") or ()]
    return lines


def enrichment_section(record: dict[str, Any]) -> list[Markup]:
    """The same as a section of the report."""
    lines = enrichment_lines(record)
    if not lines:
        return []
    title = f"What the {part(record, 'enrichment').get('key')} is worth"
    return [heading(title), *(paragraph(line) for line in lines)]


def _coverage(name: str, counts: Mapping[str, Any]) -> str:
    rows = max(1, counts.get("rows", 0))
    if "rows_with_branch" in counts:
        return (
            f"{name}: {100 * counts['rows_with_branch'] / rows:.1f} % of {counts['rows']:,} texts "
            f"got a branch ({counts['branches']:,} branches, {counts['branch_tokens']:,} tokens "
            f"next to {counts['tokens']:,}; {counts['no_room']:,} had no room); "
            f"{counts['subjects_met']:,} of {counts['subjects']:,} subjects were met"
        )
    return (
        f"{name}: {100 * counts.get('rows_with_tags', 0) / rows:.1f} % of {counts.get('rows'):,} "
        f"texts have a tag; {counts.get('tags_never_seen'):,} words have one that no training row "
        f"has; {counts.get('structures_left_out'):,} structures left out"
    )
