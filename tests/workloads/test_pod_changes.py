"""The pass after a chain refuses what the table says, and says where."""

from __future__ import annotations

import pytest

from kubetailor.workloads import BUILTIN_KINDS, InvalidObjectError, KindTable, Workload, validate

from ..pod_changes import BARE, ROWS, PodChange

TABLE = KindTable(BUILTIN_KINDS)


@pytest.mark.parametrize("row", [row for row in ROWS if row.refused], ids=lambda row: row.name)
def test_what_a_chain_may_not_write(row: PodChange) -> None:
    with pytest.raises(InvalidObjectError) as caught:
        validate(BARE, row.after)
    assert str(caught.value).startswith(row.refused)


@pytest.mark.parametrize("row", [row for row in ROWS if not row.refused], ids=lambda row: row.name)
def test_what_it_may(row: PodChange) -> None:
    validate(BARE, row.after)


@pytest.mark.parametrize("row", [r for r in ROWS if not r.authored], ids=lambda row: row.name)
def test_what_the_author_wrote_is_not_judged(row: PodChange) -> None:
    """Though the chain changes the same containers and lists."""
    kind = TABLE.of(row.after)
    assert kind is not None
    workload = Workload(row.after, kind)
    (pod,) = workload.pods()
    for container in pod.every_container:
        container.set_env("ADDED", "x")
        container.set_resources(requests={"memory": "1Mi"})
        container.merge({"securityContext": {"readOnlyRootFilesystem": True}})
        container.add_mount({"name": "added", "mountPath": "/added"})
    pod.add_volume("added", {"emptyDir": {}})
    pod.tolerate("added")
    pod.require_node("added", "Exists")
    pod.select_node("added", "x")
    pod.label("added", "x")
    if pod.get("nodeName") is None:  # or the fault would be ours
        pod.merge({"schedulingGates": [{"name": "added"}]})
    validate(row.after, workload.commit())


def test_the_table_is_of_both() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS)
    assert {row.is_valid for row in ROWS} == {True, False}
