"""Plain help text with options in groups, as typer shows them on a terminal."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand

FIRST = "Options"


class GroupedCommand(TyperCommand):
    """A command whose plain help has one section per panel; typer has panels only with rich."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, then the options of each panel, `--help` last."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is None:
                continue
            panel = getattr(param, "rich_help_panel", None)
            kind = "Arguments" if param.param_type_name == "argument" else FIRST
            sections.setdefault(panel or kind, []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)
