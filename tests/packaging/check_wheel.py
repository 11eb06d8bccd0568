"""Builds sdist and wheel, installs the wheel alone into an empty environment, and works with it.

    python tests/packaging/check_wheel.py

Runs in the environment of `make setup`, whose build backends it uses; pip needs its index or its
cache. The new environment gets the wheel with its core dependencies and the extra `serve`, all of
the versions of constraints.txt, and works in a folder from which this repository is not seen.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXTRA = "serve"
MODELS = """
import sys
from pathlib import Path
from tiny_finetuning import tiny_folder, tiny_writer
tiny_folder(Path(sys.argv[1]) / "encoder")
tiny_writer(Path(sys.argv[1]) / "writer")
"""
ORIGIN = "import bertsmith; print(bertsmith.__file__)"
WORDS = ("red", "blue", "green", "the", "old", "bird", "tree", "stone")


def main() -> None:
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="bertsmith-wheel-") as place:
        folder = Path(place)
        wheel = built(folder)
        check_contents(wheel)
        say("installing the wheel into an empty environment", begun)
        binaries = installed(wheel, folder / "env")
        say("working with it", begun)
        work_with(binaries, material(folder / "work"))
    say("the wheel works", begun)


def built(folder: Path) -> Path:
    """The wheel, made from the sdist: what the sdist lacks, it cannot have."""
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", folder, cwd=ROOT)
    (sdist,) = folder.glob("*.tar.gz")
    options = ("--no-deps", "--no-build-isolation", "--wheel-dir", folder)
    run(sys.executable, "-m", "pip", "wheel", "-q", *options, sdist, cwd=folder)
    (wheel,) = folder.glob("*.whl")
    return wheel


def check_contents(wheel: Path) -> None:
    """Every file of the package is in the wheel, templates and C++ too; nothing else is."""
    with zipfile.ZipFile(wheel) as archive:
        found = {name for name in archive.namelist() if ".dist-info/" not in name}
    package = ROOT / "src" / "bertsmith"
    wanted = {
        path.relative_to(package.parent).as_posix()
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    expect(found == wanted, f"the wheel differs from src: {sorted(found ^ wanted)}")


def installed(wheel: Path, place: Path) -> Path:
    """The programs of a new environment: the wheel, its dependencies and an extra."""
    run(sys.executable, "-m", "venv", place)
    binaries = place / "bin"
    constraints = ("--constraint", ROOT / "constraints.txt")
    pip = (binaries / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check")
    run(*pip, *constraints, f"bertsmith[{EXTRA}] @ {wheel.as_uri()}")
    run(binaries / "python", "-m", "pip", "check", "-q")
    return binaries


def material(folder: Path) -> Path:
    """Two tiny models, texts and labeled rows, made by the tests' own helpers."""
    folder.mkdir()
    support = ROOT / "tests" / "support"
    path = os.pathsep.join(map(str, (ROOT / "src", support / "models", support)))
    run(sys.executable, "-c", MODELS, folder, cwd=folder, PYTHONPATH=path)
    rng = random.Random(0)
    texts = [" ".join(rng.choices(WORDS, k=rng.randint(3, 8))) for _ in range(120)]
    (folder / "texts.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    rows = [f"{text}\t{'yes' if 'bird' in text.split() else 'no'}" for text in texts]
    (folder / "rows.tsv").write_text("\n".join(["text\tlabel", *rows]) + "\n", encoding="utf-8")
    return folder


def work_with(binaries: Path, folder: Path) -> None:
    """Commands as a user gives them, in a folder of their own."""

    def bertsmith(*arguments: str) -> str:
        return run(binaries / "bertsmith", *arguments, cwd=folder)

    origin = run(binaries / "python", "-c", ORIGIN, cwd=folder)
    expect(str(ROOT) not in origin, f"the package comes from {origin}")
    bertsmith("embed", "encoder", "texts.txt", "--out", "vectors.npy")
    shape = "import numpy; print(numpy.load('vectors.npy').shape)"
    found = run(binaries / "python", "-c", shape, cwd=folder)
    expect(found.strip() == "(120, 32)", f"embed wrote {found}")
    bertsmith("finetune", "rows.tsv", "--model", "encoder", "--out", "birds", "--epochs", "4")
    answer = bertsmith("predict", "birds", "the old bird")
    expect(any(label in answer for label in ("yes", "no")), f"predict said {answer}")
    written = bertsmith("generate", "writer", "the bird", "--max-new", "4")
    expect(written.strip() != "", "generate wrote nothing")
    served = bertsmith("serve", "encoder", "birds", "--check")
    expect("birds" in served, f"serve --check said {served}")


def run(*command: str | Path, cwd: Path | None = None, **environment: str) -> str:
    """What a command printed; its messages are shown if it fails."""
    seen = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=seen | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    shown = " ".join(str(part) for part in command[:6])
    expect(done.returncode == 0, f"{shown}: code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def expect(truth: bool, message: str) -> None:
    if not truth:
        raise SystemExit(f"check_wheel: {message}")


def say(what: str, begun: float) -> None:
    print(f"check_wheel: {what} ({time.monotonic() - begun:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
