"""Loading a config of 200 lines, against reading it with libyaml's loader alone."""

from __future__ import annotations

import tempfile
from pathlib import Path

import yaml

from benchmarks.measure import Plan, batch, ratio
from benchmarks.objects import CONFIG
from benchmarks.rows import Row
from kubetailor.registry.load import load_config

__all__ = ["ROWS", "long_config"]

_LINES = 200


def long_config() -> str:
    """A config of 200 lines: the benchmarks' own chains, several times under other names."""
    head, _, rest = CONFIG.read_text().partition("chains:\n")
    chains, _, tail = rest.partition("select:")
    lines = [*head.splitlines(), "chains:"]
    number = 0
    while len(lines) < _LINES - 1:
        number += 1
        copy = chains.replace("matching:", f"matching-{number}:").replace(
            "changes:", f"changes-{number}:"
        )
        lines += copy.splitlines()
    return "\n".join([*_whole_steps(lines[: _LINES - 1]), f"select:{tail}"])


def _whole_steps(lines: list[str]) -> list[str]:
    """The lines with comments in place of a step that was cut off."""
    last = max(index for index, line in enumerate(lines) if line.startswith("      - use:"))
    return [*lines[:last], *("# the end" for _ in lines[last:])]


def _load(plan: Plan) -> float:
    text = long_config()
    assert len(text.splitlines()) == _LINES
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "kubetailor.yaml")
        path.write_text(text)
        ours = batch(lambda: load_config(path, entry_points=False), plan)
        theirs = batch(lambda: yaml.load(text, yaml.CSafeLoader), plan)
        return ratio(ours, theirs, plan.rounds)


ROWS = (
    Row(
        "config",
        "a 200-line config loaded and compiled, plugins imported before, against CSafeLoader alone",
        1.5,
        2.5,
        _load,
    ),
)
