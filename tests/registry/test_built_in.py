"""Where there is no config, an override runs alone, within what is allowed by default."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubetailor.registry.context import PHASES
from kubetailor.registry.errors import OverrideError
from kubetailor.registry.overrides.document import Override
from kubetailor.registry.tailor import Tailor
from kubetailor.workloads import Workload

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {"containers": [{"name": "main", "image": "i"}]},
}


@pytest.fixture(autouse=True)
def broken_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is not to be read."""
    (tmp_path / "kubetailor.yaml").write_text("chains: [")
    monkeypatch.chdir(tmp_path)


def test_no_chain_is_selected_and_every_phase_is_there() -> None:
    tailor = Tailor.built_in()
    kind = tailor.kind_of(POD)
    assert kind is not None
    task = tailor.task("admit")
    assert tailor.chain_of(task, Workload(POD, kind)) is None
    assert tailor.config.phases == PHASES
    assert tailor.digest == Tailor.built_in().digest
    assert tailor.tailor(POD, "admit").result.after is POD


def test_an_override_runs_by_the_built_ins_and_the_default_guard_rails() -> None:
    tailor = Tailor.built_in()
    allowed = tailor.config.overrides.compile(Override().step("labels", set={"team": "speech"}))
    result = tailor.tailor(POD, "admit", override=allowed).result
    assert result.after["metadata"]["labels"] == {"team": "speech"}
    with pytest.raises(OverrideError, match="image may not be overridden"):
        tailor.config.overrides.compile(Override().step("image", image="x"))
