"""The benchmarks run, and measure what they say; how fast anything is, is not asked here."""

from __future__ import annotations

import importlib
import importlib.util
import math
import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


def _package() -> Any:
    """The folder as a package, without its neighbours (such as transformers/) beside it."""
    spec = importlib.util.spec_from_file_location("benchmarks", FOLDER / "__init__.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["benchmarks"] = module
    spec.loader.exec_module(module)
    return module


_package()
api_server = importlib.import_module("benchmarks.api_server")
command = importlib.import_module("benchmarks.__main__")
configs = importlib.import_module("benchmarks.configs")
measure = importlib.import_module("benchmarks.measure")
objects = importlib.import_module("benchmarks.objects")
rows = importlib.import_module("benchmarks.rows")

TINY = measure.Plan(rounds=1, seconds=0.001, tasks=2, processes=1)


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, marks=[pytest.mark.cluster] if row in api_server.ROWS else [])
        for row in command.ROWS
    ],
    ids=lambda row: row.name,
)
def test_every_benchmark_runs(row: Any) -> None:
    assert row.measure(TINY) > 0
    assert row.goal < row.fail or math.isinf(row.goal)


def test_what_cannot_be_measured_says_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    def measure(_: Any) -> float:
        raise rows.NotMeasuredError("no etcd")

    row = rows.Row("some", "some thing", 1.1, 1.5, measure)
    assert command.main(["--check"], rows=(row,)) == 0
    assert "| some thing |  | 1.10 x | 1.50 x | not measured: no etcd |" in capsys.readouterr().out


def test_the_import_benchmark_installs_the_entry_point_of_the_wheel() -> None:
    imports = importlib.import_module("benchmarks.imports")
    ((group, points),) = imports._ENTRY_POINTS.items()
    ((name, module),) = points.items()
    wheel = (FOLDER.parent / "pyproject.toml").read_text()
    assert f'[project.entry-points."{group}"]\n{name} = "{module}"' in wheel


def test_names_are_unique() -> None:
    names = [row.name for row in command.ROWS]
    assert len(set(names)) == len(names)


def test_the_ratio_is_the_median_of_pairs() -> None:
    ours, theirs = iter([1.0, 9.0, 2.0]), iter([2.0, 2.0, 2.0])
    assert measure.ratio(lambda: next(ours), lambda: next(theirs), 3) == 1.0


def test_all_ten_steps_match_and_change_the_pod() -> None:
    pod = objects.training_pod()
    chain = objects.chain("matching")
    result = chain.run(pod, objects.kind_of(pod), objects.TASK)
    assert len(chain.steps) == 10
    assert [step for _, step, _ in result.versions()] == list(chain.steps)
    assert not result.warnings


def test_none_of_the_other_ten_matches() -> None:
    pod = objects.training_pod()
    chain = objects.chain("none-matching")
    result = chain.run(pod, objects.kind_of(pod), objects.TASK)
    assert len(chain.steps) == 10
    assert result.after is pod
    assert result.done == 10


def test_each_of_many_steps_changes_something() -> None:
    pod = objects.training_pod()
    result = objects.many_steps(100).run(pod, objects.kind_of(pod), objects.TASK)
    assert len(list(result.versions())) == 100
    assert len(result.patch()) == 100


def test_the_long_config_has_200_lines_that_compile(tmp_path: Path) -> None:
    text = configs.long_config()
    file = tmp_path / "kubetailor.yaml"
    file.write_text(text)
    config = configs.load_config(file, entry_points=False)
    assert len(text.splitlines()) == 200
    assert sum(len(chain.steps) for chain in config.chains.values()) > 50


@pytest.mark.parametrize(
    ("ratio", "verdict"), [(1.0, "good"), (1.1, "over the goal"), (1.3, "FAIL")]
)
def test_the_verdict(ratio: float, verdict: str) -> None:
    assert _row(ratio).verdict(ratio) == verdict


def test_check_fails_where_a_limit_is_passed(capsys: pytest.CaptureFixture[str]) -> None:
    slow, quick = _row(1.3, "slow"), _row(0.9, "quick")
    assert command.main(["--check"], TINY, (slow, quick)) == 1
    assert command.main(["--check", "quick"], TINY, (slow, quick)) == 0
    assert command.main([], TINY, (slow, quick)) == 0
    assert "| slow | 1.30 x | 1.00 x | 1.20 x | FAIL |" in capsys.readouterr().out


def test_an_unknown_name_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        command.main(["quik"], TINY, (_row(0.9, "quick"),))
    assert exit_.value.code == 2
    assert "no benchmark quik; there are quick" in capsys.readouterr().err


def _row(ratio: float, name: str = "row") -> Any:
    return rows.Row(name, name, 1.0, 1.2, lambda plan: ratio)
