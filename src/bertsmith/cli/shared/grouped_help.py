"""Help with options in groups; those that are rarely needed are shown by `--help-all` only."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand

from bertsmith.wording import counted

FIRST = "Options"
HELP_NAMES = ("--help", "-h", "--help-all")


class GroupedCommand(TyperCommand):
    """A command with one section of help per group; typer has groups only with rich."""

    _shows_all = False

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Note whether all options are asked for."""
        self._shows_all = HELP_NAMES[-1] in args
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help, without the rare options unless they are asked for."""
        rare: frozenset[str] = getattr(self.callback, "rare", frozenset())
        if rare and not self._shows_all:
            for param in self.params:
                if param.name in rare:
                    param.hidden = True  # type: ignore[attr-defined]
            self.epilog = f"{counted(len(rare), 'more option')}: {ctx.command_path} --help-all"
        super().format_help(ctx, formatter)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, then the options of each group, `--help` last."""
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
