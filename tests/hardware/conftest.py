from collections.abc import Callable
from pathlib import Path

import pytest

from bertsmith.hardware.probes import Probe

HERE = Path(__file__).resolve().parent


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test has a cache of its own, and its children find the planted modules."""
    monkeypatch.setenv("BERTSMITH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(HERE))
    for name in ("BERTSMITH_THREADS", "BERTSMITH_OFFLINE", "HF_HUB_OFFLINE", "CXX"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def planted() -> Callable[..., dict[str, Probe]]:
    """A table of one probe named "planted" that behaves as asked."""

    def make(option: str, *, limit: float = 30.0, compiles: bool = False) -> dict[str, Probe]:
        probe = Probe(
            module="planted_probe",
            about="planted",
            tolerance=1e-2,
            option=option,
            limit=limit,
            compiles=compiles,
        )
        return {"planted": probe}

    return make
