"""docs/settings.md from the settings themselves: every key, its type, its default, its comment."""

from __future__ import annotations

import inspect
import re
import tokenize
import types
import typing
from collections.abc import Iterator
from io import StringIO
from typing import Any

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from bertsmith.sentences.train.recipe import SentenceRecipe
from bertsmith.training.kinds.labeled.recipe import FinetuneRecipe
from bertsmith.training.kinds.spelling.recipe import CorrectRecipe
from bertsmith.training.kinds.write.recipe import WriteRecipe
from bertsmith.training.pretrain.recipe import PretrainRecipe

HEAD = """# Settings

Every setting of a recipe with its type and default, made from the source when this site is built.
`--set KEY=VALUE` sets one on the command line; a `.toml` file sets many ([recipes](recipes.md)).
"""

RECIPES = (
    ("Pre-training", PretrainRecipe),
    ("Fine-tuning", FinetuneRecipe),
    ("Sentence vectors", SentenceRecipe),
    ("Writing", WriteRecipe),
    ("Correction", CorrectRecipe),
)


def settings_page() -> str:
    """The whole page."""
    parts = [HEAD]
    for title, recipe in RECIPES:
        parts.append(f"## {title}\n")
        for name, field in recipe.model_fields.items():
            if name != "about":
                parts += _section(name, field)
    return "\n".join(parts)


def _section(name: str, field: Any) -> Iterator[str]:
    """A heading and one table for each class that the section can be."""
    yield f"### `{name}`\n"
    models = list(_models(field.annotation))
    if not models:
        yield f"`{name}`: {_type(field.annotation)}, default {_default(field)}\n"
    for model in models:
        choice = next(
            (f.default for n, f in model.model_fields.items() if n in ("kind", "name")), None
        )
        yield (
            (f"**`{choice}`**: " if isinstance(choice, str) else "") + _plain(model.__doc__) + "\n"
        )
        yield "| key | type | default | |\n|---|---|---|---|"
        comments = _comments(model)
        for key, one in model.model_fields.items():
            cells = (f"`{name}.{key}`", _type(one.annotation), _default(one), comments.get(key, ""))
            yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
        yield ""


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """The settings classes in an annotation, unions and containers looked through."""
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        yield annotation
        return
    for part in typing.get_args(annotation):
        yield from _models(part)


def _type(annotation: Any) -> str:
    """An annotation in a reader's words."""
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation is type(None):
        return "none"
    if origin is typing.Annotated:
        return _type(parts[0])
    if origin is typing.Literal:
        return ", ".join(f"`{part}`" for part in parts)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(_type(part) for part in parts))
    if origin is not None:
        return f"{origin.__name__} of {', '.join(_type(p) for p in parts if p is not ...)}"
    return annotation.__name__ if inspect.isclass(annotation) else str(annotation)


def _default(field: Any) -> str:
    if field.default is PydanticUndefined:
        return "required" if field.default_factory is None else "see above"
    if isinstance(field.default, BaseModel):
        return f"`{type(field.default).__name__}`"
    return f"`{field.default!r}`"


def _comments(model: type[BaseModel]) -> dict[str, str]:
    """The comment at the end of each field's line, fields of parents included."""
    found: dict[str, str] = {}
    for parent in reversed(model.__mro__):
        if issubclass(parent, BaseModel) and parent is not BaseModel:
            found |= _own_comments(inspect.getsource(parent))
    return found


def _own_comments(source: str) -> dict[str, str]:
    lines = source.splitlines()
    found = {}
    for token in tokenize.generate_tokens(StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            field = re.match(r"    (\w+):", lines[token.start[0] - 1])
            if field:
                found[field[1]] = token.string.removeprefix("#").strip()
    return found


def _plain(text: str | None) -> str:
    return " ".join((text or "").split())
