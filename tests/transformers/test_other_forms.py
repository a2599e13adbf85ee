"""What a built-in reads and is of another form is told by its field: there is no traceback."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from reference_examples import chain_of_all

from kubetailor.registry import KubetailorError
from kubetailor.registry.testing import ChainBench, TailorBench
from kubetailor.workloads import diff

from ..kind_examples import KINDS, each_alone, example

GONE: Final = object()
OTHERS: Final[list[Any]] = ["x", 5, [], [None], {"x": 1}, GONE]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of each part of an object."""
    for key, child in value.items() if isinstance(value, dict) else enumerate(value):
        yield (*path, key)
        if isinstance(child, dict | list):
            yield from places(child, (*path, key))


def spoilt(obj: Any, path: tuple[Any, ...], other: Any) -> Any:
    """An object with something else at a path."""
    found = node = copy.deepcopy(obj)
    for key in path[:-1]:
        node = node[key]
    if other is GONE:
        del node[path[-1]]
    else:
        node[path[-1]] = other
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_what_cannot_be_read_is_told(kind: str, tmp_path: Path) -> None:
    bench = TailorBench(tmp_path)
    refused = 0
    for use, outcome in each_alone(bench, example(kind)):
        chain = bench.chain(chain_of_all([use]))
        written = [op.path for op in diff(outcome.before, outcome.after)]
        for path in places(outcome.after):
            if not any(
                path == place[: len(path)] or place == path[: len(place)] for place in written
            ):
                continue
            for other in OTHERS:
                cause = cause_of(chain, spoilt(outcome.after, path, other))
                refused += cause is not None
                assert isinstance(cause, KubetailorError | None), (
                    f"{use}, {path}, {other}: {cause!r}"
                )
    assert refused > 10


def cause_of(chain: ChainBench, obj: Any) -> BaseException | None:
    """Why a chain refuses an object, if it does."""
    try:
        chain.run(obj)
    except KubetailorError as error:
        return error.__cause__ or error
    return None
