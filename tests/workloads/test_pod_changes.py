"""The pass after a chain refuses what the table says, and says where."""

from __future__ import annotations

from typing import Any

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


def job(pod: dict[str, Any]) -> dict[str, Any]:
    template = {"metadata": pod["metadata"], "spec": pod["spec"]}
    return {"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": template}}


def task(pod: dict[str, Any]) -> dict[str, Any]:
    return {"type": "t", "k8sPod": {"metadata": pod["metadata"], "podSpec": pod["spec"]}}


def in_job(text: str) -> str:
    return f"spec.template.{text}"


def in_task(text: str) -> str:
    return "k8sPod." + text.replace("spec.", "podSpec.", 1).replace("spec:", "podSpec:", 1)


@pytest.mark.parametrize(("wrap", "place"), [(job, in_job), (task, in_task)])
def test_a_template_is_judged_as_the_pod(wrap: Any, place: Any) -> None:
    for row in ROWS:
        if not row.refused:
            validate(wrap(BARE), wrap(row.after))
        elif wrap is job or "there is no volume" not in row.refused:
            with pytest.raises(InvalidObjectError) as caught:
                validate(wrap(BARE), wrap(row.after))
            assert str(caught.value).startswith(place(row.refused))


def test_a_volume_may_be_from_elsewhere() -> None:
    """A task's, from the PodTemplate of the cluster; a StatefulSet's, from its claims."""
    mounted = next(row for row in ROWS if "there is no volume" in row.refused).after
    validate(task(BARE), task(mounted))
    claims = {"volumeClaimTemplates": [{"metadata": {"name": "v"}}]}
    stateful = {"apiVersion": "apps/v1", "kind": "StatefulSet"}
    template = {"spec": mounted["spec"]}
    validate({**stateful, "spec": claims}, {**stateful, "spec": {**claims, "template": template}})
    with pytest.raises(InvalidObjectError, match="there is no volume 'v' to mount; found none"):
        validate(stateful, {**stateful, "spec": {"template": template}})


def test_a_volume_that_is_taken_off_is_missed() -> None:
    """Where a mount of it stays, though the mount is as it was."""
    spec = {**BARE["spec"], "volumes": [{"name": "v", "emptyDir": {}}]}
    (main,) = BARE["spec"]["containers"]
    spec["containers"] = [{**main, "volumeMounts": [{"name": "v", "mountPath": "/d"}]}]
    with pytest.raises(InvalidObjectError, match="there is no volume 'v' to mount; found w"):
        validate({**BARE, "spec": spec}, {**BARE, "spec": {**spec, "volumes": [{"name": "w"}]}})
