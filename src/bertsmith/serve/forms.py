"""Forms of requests whose fields are those of settings classes, with the bounds of a service."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any, TypeVar

from pydantic import Field, create_model

from bertsmith.serve.routes import RequestForm
from bertsmith.setting import REQUIRED, SettingField, settings_of

F = TypeVar("F", bound=RequestForm)


def with_settings(
    settings: type, *, most: Mapping[str, float] | None = None, without: Collection[str] = ()
) -> Callable[[type[F]], type[F]]:
    """A class decorator: the form has the documented fields of a settings class, too.

    `most` are bounds below those of the settings, since one request must not take all of a service.
    """
    limits = most or {}
    shown = [one for one in settings_of(settings) if one.name not in without]

    def extended(form: type[F]) -> type[F]:
        fields: dict[str, Any] = {one.name: _field(one, limits.get(one.name)) for one in shown}
        return create_model(
            form.__name__,
            __base__=form,
            __module__=form.__module__,
            __doc__=form.__doc__,
            **fields,
        )

    return extended


def given_settings(form: RequestForm, settings: type) -> dict[str, Any]:
    """What a request gives of these settings."""
    names = {one.name for one in settings_of(settings)}
    return form.model_dump(include=names, exclude_none=True, exclude_unset=True)


def _field(one: SettingField, most: float | None) -> tuple[Any, Any]:
    """Type and default of a field, as pydantic makes one."""
    least, highest = one.min, one.max if most is None else most
    field = Field(ge=least, le=highest, description=one.setting.help)
    kind: Any = one.kind
    return Annotated[kind, field], ... if one.default is REQUIRED else one.default
