"""The authors' helper: what it reports, and that it finds what it is there to find."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kubernetes.client import V1PodSpec, V1Toleration

from kubetailor.registry import OverrideError, Pod, StepError, TaskContext, Workload, transformer
from kubetailor.registry.testing import ABSENT, TailorBench

pytest_plugins = ["pytester"]

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {"containers": [{"name": "main", "image": "img"}], "unknown": [1, None]},
}


@transformer
def spot(pod: Pod, *, pool: str = "spot") -> None:
    """Spot nodes."""
    pod.select_node("example.com/pool", pool)
    pod.tolerate("example.com/spot", effect="NoSchedule")


def test_it_runs_a_function_and_says_what_changed(tailor: TailorBench) -> None:
    outcome = tailor.prove(spot, POD, pool="a")
    assert outcome.diff == [
        '+ spec.nodeSelector = {"example.com/pool": "a"}',
        '+ spec.tolerations = [{"key": "example.com/spot", "operator": "Exists", '
        '"effect": "NoSchedule"}]',
    ]
    assert outcome["spec.nodeSelector['example.com/pool']"] == "a"
    assert outcome["spec.containers[main].image"] == "img"
    assert outcome["spec.containers[other].image"] is None
    assert [op["path"] for op in outcome.patch] == ["/spec/nodeSelector", "/spec/tolerations"]
    assert [change.transformer for change in outcome.changes] == ["spot", "spot"]
    outcome.assert_changes(
        {
            "spec.nodeSelector['example.com/pool']": "a",
            "spec.tolerations[0]": {
                "key": "example.com/spot",
                "operator": "Exists",
                "effect": "NoSchedule",
            },
        }
    )


def test_it_runs_a_transformer_by_name_and_a_whole_chain(
    tailor: TailorBench, tmp_path: Path
) -> None:
    tailor.prove("env", POD, set={"A": "1"}).assert_changes(
        {"spec.containers[main].env": [{"name": "A", "value": "1"}]}
    )
    text = (
        "chains: {default: {steps: [{use: priority_class, with: {name: high}, when: {domain: d}}]}}"
    )
    (tmp_path / "own.yaml").write_text(text)
    for source in (text, tmp_path / "own.yaml"):
        chain = tailor.chain(source)
        chain.prove(POD, domain="d").assert_changes({"spec.priorityClassName": "high"})
        chain.run(POD, domain="e").assert_unchanged()


def test_it_runs_the_override_of_an_execution(tailor: TailorBench) -> None:
    chain = tailor.chain(
        "chains:\n  default:\n"
        "    steps: [{use: node_selector, with: {set: {pool: a, zone: z}}}]\n"
        "    enforce: [{use: labels, with: {set: {team: speech}}}]\n"
    )
    override = "steps: [{use: node_selector, with: {set: {pool: b}}}]"
    outcome = chain.prove(POD, override=override)
    assert outcome["spec.nodeSelector"] == {"pool": "b", "zone": "z"}
    assert outcome["metadata.labels.team"] == "speech"
    assert chain.run(POD)["spec.nodeSelector"] == {"pool": "a", "zone": "z"}
    with pytest.raises(OverrideError, match="image"):
        chain.run(POD, override="steps: [{use: image, with: {image: evil}}]")


def test_it_knows_the_task_and_picks_pods(tailor: TailorBench) -> None:
    @transformer
    def owner(workload: Workload, task: TaskContext) -> None:
        workload.label("project", "x") if task.project is None else workload.label(
            "of", task.project
        )

    task = TaskContext("admit", project="speech")
    tailor.prove(owner, POD, task=task).assert_changes({"metadata.labels": {"of": "speech"}})
    tailor.transform(spot, POD, when={"role": "primary"}).assert_changes(
        {
            "spec.nodeSelector": {"example.com/pool": "spot"},
            "spec.tolerations": [
                {"key": "example.com/spot", "operator": "Exists", "effect": "NoSchedule"}
            ],
        }
    )


def test_a_difference_from_what_was_expected_is_shown(tailor: TailorBench) -> None:
    outcome = tailor.transform(spot, POD)
    with pytest.raises(AssertionError, match=r'~ spec.nodeSelector.*"other" -> "spot"'):
        outcome.assert_changes(
            {
                "spec.nodeSelector['example.com/pool']": "other",
                "spec.tolerations": outcome["spec.tolerations"],
            }
        )
    with pytest.raises(AssertionError, match=r"spec.tolerations"):
        outcome.assert_changes({"spec.nodeSelector['example.com/pool']": "spot"})
    with pytest.raises(AssertionError):
        outcome.assert_unchanged()


def test_absent_is_not_null(tailor: TailorBench) -> None:
    outcome = tailor.transform(
        "patch", {**POD, "spec": {**POD["spec"], "hostname": "h"}}, pod={"hostname": None}
    )
    outcome.assert_changes({"spec.hostname": ABSENT})
    with pytest.raises(AssertionError):
        outcome.assert_changes({"spec.hostname": None})


def test_it_finds_a_transformer_that_is_not_idempotent(tailor: TailorBench) -> None:
    def grows(pod: Pod) -> None:
        pod.edit("tolerations", empty=list).append({"key": "a", "operator": "Exists"})

    with pytest.raises(
        AssertionError, match=r"a second run changes more:\n\+ spec.tolerations\[1\]"
    ):
        tailor.prove(grows, POD)


def test_it_finds_a_transformer_that_loses_what_it_does_not_know(tailor: TailorBench) -> None:
    def rebuilds(obj: dict[str, Any]) -> dict[str, Any]:
        known = ("name", "image")
        containers = [{k: c[k] for k in known} for c in obj["spec"]["containers"]]
        return {**obj, "spec": {**obj["spec"], "containers": containers}}

    with pytest.raises(AssertionError, match=r"lost.*\n- spec.containers\[main\].kubetailorProbe"):
        tailor.prove(rebuilds, POD)


def test_what_is_new_need_not_hold_what_nobody_knows(tailor: TailorBench) -> None:
    def adds(pod: Pod) -> None:
        for init in (False, True):
            pod.add_container({"name": f"side-{init}".lower(), "image": "i"}, init=init)

    two = {**POD, "spec": {"containers": [{"name": "a"}, *POD["spec"]["containers"]]}}
    tailor.prove(adds, two)

    def adds_and_loses(pod: Pod) -> None:
        adds(pod)
        pod.merge({"containers": [{"name": "a", "kubetailorProbe": None}]})

    with pytest.raises(AssertionError, match=r"lost.*\n- spec.containers\[a\].kubetailorProbe"):
        tailor.prove(adds_and_loses, two)


def test_it_finds_parts_that_two_results_share(tailor: TailorBench) -> None:
    shared = [{"key": "a", "operator": "Exists"}]

    def leaks(pod: Pod) -> None:
        pod.edit()["tolerations"] = shared

    with pytest.raises(AssertionError, match="share"):
        tailor.prove(leaks, POD)


def test_models_of_the_kubernetes_client_pass_every_proof(tailor: TailorBench) -> None:
    def legacy(spec: V1PodSpec) -> V1PodSpec:
        spec.tolerations = [V1Toleration(key="legacy", operator="Exists")]
        return spec

    tailor.prove(legacy, POD).assert_changes(
        {"spec.tolerations": [{"key": "legacy", "operator": "Exists"}]}
    )


def test_a_fault_is_raised_as_hosts_show_it(tailor: TailorBench) -> None:
    def fails(pod: Pod) -> None:
        raise KeyError("no such thing")

    with pytest.raises(StepError, match=r"step 'fails' \(plugin test\) on Pod p: KeyError"):
        tailor.transform(fails, POD)


@pytest.mark.parametrize("path", ["spec.containers[", "spec..x", "]"])
def test_a_path_that_is_none_is_refused(tailor: TailorBench, path: str) -> None:
    with pytest.raises(ValueError, match="not a path"):
        tailor.transform(spot, POD)[path]


def test_a_team_opts_in_with_one_line(pytester: pytest.Pytester) -> None:
    pytester.makeconftest('pytest_plugins = "kubetailor.registry.testing"')
    pytester.makepyfile(
        """
        from kubetailor.registry import Pod, transformer

        @transformer
        def spot(pod: Pod, *, pool: str = "spot") -> None:
            pod.select_node("pool", pool)

        def test_spot(tailor):
            pod = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "a"}]}}
            tailor.prove(spot, pod).assert_changes({"spec.nodeSelector": {"pool": "spot"}})
        """
    )
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=1)
