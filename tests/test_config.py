"""Settings from TOML and overrides: strict, layered, and every fault named with its place."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as limits
from hypothesis import strategies as st
from pydantic import Field

from bertsmith import config
from bertsmith.config import Override, Settings, overridden, overrides_of
from bertsmith.errors import ConfigError
from bertsmith.files.digest import fingerprint


class Near(Settings):
    kind: Literal["near"] = "near"
    reach: int = 1


class Far(Settings):
    kind: Literal["far"] = "far"
    speed: float = 2.0


class Optimizer(Settings):
    lr: float = Field(default=1e-4, gt=0)
    betas: tuple[float, float] = (0.9, 0.999)
    name: Literal["adamw", "lamb"] = "adamw"


class Whole(Settings):
    optimizer: Optimizer = Optimizer()
    way: Annotated[Near | Far, Field(discriminator="kind")] = Near()
    stages: tuple[Near, ...] = ()
    steps: int | None = None
    words: Path | None = None
    note: str = ""


INTEGERS = st.integers(1 - 2**63, 2**63 - 1)


def read(text: str, *overrides: str) -> Whole:
    import tomllib

    return config.validated(Whole, config.overridden(tomllib.loads(text), overrides), "recipe.toml")


def test_toml_becomes_settings_and_defaults_fill_the_rest() -> None:
    found = read('note = "x"\nwords = "a.txt"\n[optimizer]\nlr = 1\nbetas = [0.8, 0.9]')
    assert found.optimizer == Optimizer(lr=1.0, betas=(0.8, 0.9))
    assert found.words == Path("a.txt")
    assert found.way == Near()


def test_overrides_use_toml_values_and_words_need_no_quotes() -> None:
    found = read("", "optimizer.lr=3e-4", "optimizer.name=lamb", "stages=[{reach=4}]", 'note="a b"')
    assert (found.optimizer.lr, found.optimizer.name) == (3e-4, "lamb")
    assert found.stages == (Near(reach=4),)
    assert found.note == "a b"
    assert read("", "words=~/my-words/a.txt").words == Path("~/my-words/a.txt")


@pytest.mark.parametrize(
    ("text", "overrides", "said"),
    [
        (
            "",
            ("optimizer.lrr=1",),
            "no setting is called 'optimizer.lrr'; did you mean 'optimizer.lr'?",
        ),
        ("optimiser = 1", (), "no setting is called 'optimiser'; did you mean 'optimizer'?"),
        ("", ("optimizer.lr=-1",), "optimizer.lr is -1; it should be greater than 0"),
        ("", ("optimizer.lr=fast",), 'optimizer.lr is "fast"; it should be a valid number'),
        ("steps = 1.5", (), "steps is 1.5; it should be a valid integer"),
        ("steps = true", (), "steps is true; it should be a valid integer"),
        ('steps = "5"', (), 'steps is "5"; it should be a valid integer'),
        ("", ("optimizer.name=adam",), "it should be 'adamw' or 'lamb'"),
        ("[way]\nkind = 'far'\nreach = 2", (), "no setting is called 'way.reach'"),
        ("[[stages]]\nreach = 'x'", (), 'stages.0.reach is "x"'),
        ("", ("optimizer.lr",), "write section.key=value"),
        ("", ("optimizer..lr=1",), "write section.key=value"),
        ("", ("note=a = b",), "is not a value"),
        ("", ("note=1\nsteps=3",), "is not a value"),
        ("note = 2020-01-01", (), "note is the date 2020-01-01"),
        ("optimizer = 3", (), "optimizer is 3"),
    ],
)
def test_a_fault_names_file_key_value_and_what_is_expected(text, overrides, said) -> None:
    with pytest.raises(ConfigError) as caught:
        read(text, *overrides)
    assert said in str(caught.value)


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        read("steps = 'a'\nnotes = 1\n[optimizer]\nlr = 0")
    lines = str(caught.value).splitlines()
    assert len(lines) == 3
    assert all(line.startswith("recipe.toml: ") for line in lines)


def test_a_changed_copy_is_checked_like_a_file() -> None:
    before = read("steps = 3\n[optimizer]\nlr = 0.5")
    after = config.changed(before, {"steps": 4, "optimizer.lr": 0.25})
    assert (after.steps, after.optimizer.lr) == (4, 0.25)
    assert (before.steps, before.optimizer.lr) == (3, 0.5)
    assert config.changed(before, {"optimizer": after.optimizer}).optimizer == after.optimizer
    with pytest.raises(ConfigError, match=r"Whole with optimizer\.lr: optimizer\.lr is -1\.0"):
        config.changed(before, {"optimizer.lr": -1.0})


def beside(name: str, folder: Path) -> config.Layer:
    return config.Layer.of_file(folder / f"{name}.toml")


def test_a_file_extends_another_and_tables_are_joined(tmp_path) -> None:
    (tmp_path / "a.toml").write_text('note = "a"\n[optimizer]\nlr = 1.0\nname = "lamb"\n')
    (tmp_path / "b.toml").write_text('extends = "a"\n[optimizer]\nlr = 2.0\n')
    tree = config.merge_layers(config.Layer.of_file(tmp_path / "b.toml"), beside)
    assert tree == {"note": "a", "optimizer": {"lr": 2.0, "name": "lamb"}}


def test_a_circle_of_files_is_refused(tmp_path) -> None:
    for name, other in (("a", "b"), ("b", "a")):
        (tmp_path / f"{name}.toml").write_text(f'extends = "{other}"\n')
    with pytest.raises(ConfigError, match="circle"):
        config.merge_layers(config.Layer.of_file(tmp_path / "a.toml"), beside)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"a = ", "is not TOML"),
        (b"a = '\xff'", "is not UTF-8"),
        (b"#" * 2_000_000, "bytes"),
        (None, "cannot read"),
    ],
)
def test_a_file_that_is_no_toml_is_named(tmp_path, content, said) -> None:
    path = tmp_path / "odd.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=said) as caught:
        config.read_toml(path)
    assert str(path) in str(caught.value)


@limits(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # says how busy it is
@given(
    st.builds(
        Whole,
        optimizer=st.builds(Optimizer, lr=st.floats(min_value=1e-300, allow_infinity=False)),
        way=st.one_of(
            st.builds(Near, reach=INTEGERS),
            st.builds(Far, speed=st.floats(allow_nan=False, allow_infinity=False)),
        ),
        stages=st.lists(st.builds(Near, reach=INTEGERS), max_size=3).map(tuple),
        steps=st.none() | INTEGERS,
        note=st.text(st.characters(exclude_categories=["Cs"])),
    )
)
def test_settings_survive_the_way_to_toml_and_back(settings: Whole) -> None:
    assert read(config.to_toml(settings)) == settings
    assert fingerprint(read(config.to_toml(settings))) == fingerprint(settings)


@pytest.mark.parametrize("value", ["inf", "-inf", "nan"])
def test_a_number_that_is_not_finite_is_refused(value: str) -> None:
    with pytest.raises(ConfigError, match=r"way\.speed"):
        read("", f"way={{kind='far', speed={value}}}")


def test_differences_name_each_changed_setting() -> None:
    changed = config.differences(Whole(), read("", "optimizer.lr=1", "way={kind='far'}"))
    assert changed == [
        "optimizer.lr: 0.0001 -> 1.0",
        'way.kind: "near" -> "far"',
        "way.reach: 1 -> unset",
        "way.speed: unset -> 2.0",
    ]


def test_another_kind_of_table_replaces_the_old_one_whole() -> None:
    below = {"way": {"kind": "near", "reach": 3}, "optimizer": {"lr": 2.0}}
    assert config.overlaid(below, {"way": {"kind": "far"}})["way"] == {"kind": "far"}
    assert config.overlaid(below, {"way": {"kind": "near"}})["way"] == below["way"]
    assert config.overlaid(below, {"optimizer": {"name": "lamb"}})["optimizer"] == {
        "lr": 2.0,
        "name": "lamb",
    }


def test_a_number_that_no_compiled_code_takes_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match=r"steps is 9{20}; that number is too large"):
        read("steps = 99999999999999999999")


def test_values_from_python_are_laid_over_as_they_are() -> None:
    settings = {
        "plan.epochs": 2.0,
        "optimizer": Near(reach=2),
        "file": Path("rows.tsv"),
        "dims": (64, 32),
        "name": "a=b, c",
        "head": None,
    }
    found = overridden({"plan": {"steps": 3}, "head": 7}, overrides_of(settings))
    assert found == {
        "plan": {"steps": 3, "epochs": 2.0},
        "optimizer": {"kind": "near", "reach": 2},
        "file": "rows.tsv",
        "dims": [64, 32],
        "name": "a=b, c",
        "head": None,
    }
    assert overrides_of(None) == []


def test_an_override_is_spelled_as_it_is_parsed() -> None:
    for text in ("plan.epochs=2.0", 'name="a word"', "dims=[64, 32]", "on=true", "x={a = 1}"):
        assert str(Override.parse(text)) == text
        assert Override.parse(str(Override.parse(text))) == Override.parse(text)
    assert str(Override("head", None)) == "head=null"


@pytest.mark.parametrize(
    ("one", "message"),
    [(Override("a b", 1), "is the name of no setting"), (Override("a", object()), "no setting is")],
)
def test_what_is_no_override_is_refused_by_name(one: Override, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        overridden({}, [one])
