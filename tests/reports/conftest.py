"""Results to report on."""

from collections.abc import Callable
from io import BytesIO
from typing import Any

import numpy as np
import pytest
from PIL import Image

from keypatch.benchmarks.result import Replicates, Result
from keypatch.metrics import Curve
from keypatch.provenance import Provenance


@pytest.fixture
def make() -> Callable[..., Result]:
    """A result of ubc: make("sift", 0.1, spread=0.02, data_hash="aa", rule="hynet", date="2026-01-02T03:04:05")."""

    def result(
        descriptor: str,
        fpr95: float,
        spread: float = 0.001,
        data_hash: str = "aa",
        date: str = "2026-01-02T03:04:05+00:00",
        pictures: dict[str, bytes] | None = None,
        benchmark: str = "ubc",
        scores: dict[str, float] | None = None,
        **settings: Any,
    ) -> Result:
        x = np.linspace(0, 1, 50)
        draws = fpr95 + spread * np.random.default_rng(len(descriptor)).normal(size=1000)
        density = np.exp(-((np.linspace(-1, 1, 40) - 0.5) ** 2) / 0.02)
        return Result(
            benchmark=benchmark,
            descriptor=descriptor,
            settings={"data": "some-set", "rule": "rank", "pairs": {"easy": 800}, **settings},
            scores=scores or {"fpr95.easy": fpr95, "rank1": 1 - fpr95, "spread.m1": 0.01},
            curves={
                "roc.easy": Curve(x, x**fpr95),
                "similarity.matching.easy": Curve(np.linspace(-1, 1, 40), density),
                "similarity.nonmatching.easy": Curve(np.linspace(-1, 1, 40), density[::-1]),
            },
            provenance=Provenance("0.1.0", "keypatch evaluate", "Linux", "3.11", "2.5", date, {"data": data_hash}),
            replicates={} if scores else {"fpr95.easy": Replicates(draws, "pairs", 800)},
            pictures=pictures or {},
        )

    return result


@pytest.fixture(scope="session")
def png() -> bytes:
    file = BytesIO()
    Image.new("L", (40, 30), 90).save(file, "PNG")
    return file.getvalue()
