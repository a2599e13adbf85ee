"""The nested id of a node, by the names that FlytePropeller gives."""

from __future__ import annotations

import pytest

from kubetailor.plugins.execution.lineage import map_node_of, node_of

EXECUTION = "adm74pqlsdkn7dpj6mlj"


@pytest.mark.parametrize(
    ("name", "label", "node"),
    [
        ("n0-0", "n0", "n0"),
        ("n0-12", "n0", "n0"),
        ("n1-0-n0-0", "n0", "n1.n0"),
        ("n1-2-n0-0-n3-1", "n3", "n1.n0.n3"),
        ("n2-0-dn0-0", "dn0", "n2.dn0"),
        # What a branch runs is in the graph of the branch.
        ("n1-0-n1-n0-0", "n1-n0", "n1-n0"),
        ("n0-0-n1-0-n1-n0-0", "n1-n0", "n0.n1-n0"),
        ("n0-0-n0-n1-0-n2-0", "n2", "n0-n1.n2"),
        # Names by authors: what could be two things is neither.
        ("step-1-train-0", "step-1-train", "step-1-train"),
        ("prepare-0-n0-0", "n0", "prepare.n0"),
        ("n1-0-step-1-train-0", "step-1-train", "n1.step-1-train"),
        ("step-1-sub-0-n0-0", "n0", None),
        # Made by an operator, for what FlytePropeller made.
        ("n8-0-bzrvk", "n8", "n8"),
        ("n8-0-raycluster-bzrvk", "n8", "n8"),
        ("n1-0-n8-0-bzrvk", "n8", "n1.n8"),
        ("n3-0-driver", "n3", "n3"),
        ("worker-0-worker-0-x", "worker", None),
        # Another label than the name says, and hashes.
        ("n1-0", "n0", None),
        ("n10-0", "n0", None),
        ("fabcdefg-0", "n0", None),
        ("fabcdefg-0-n0-0", "n0", None),
    ],
)
def test_a_name_says_the_path_of_ids(name: str, label: str, node: str | None) -> None:
    assert node_of(f"{EXECUTION}-{name}", EXECUTION, label) == node


@pytest.mark.parametrize(
    ("name", "execution", "label"),
    [
        # Of the tests of flyteplugins, encoding/encoder_test.go: 24 letters are too long.
        (f"{EXECUTION}-fuaa3aji-0", EXECUTION, "x" * 24),
        # A whole name of more than 50 letters.
        ("ffsmjd2i", "a" * 40, "b" * 20),
    ],
)
def test_a_hash_of_a_node_of_the_workflow_itself_is_known_again(
    name: str, execution: str, label: str
) -> None:
    assert node_of(name, execution, label) == label
    assert node_of(name, execution, label[:-1]) is None


def test_the_attempt_is_no_part_of_it() -> None:
    name = f"{EXECUTION}-step-1-train-12"
    assert node_of(name, EXECUTION, "step-1-train", 12) == "step-1-train"
    assert node_of(f"{EXECUTION}-n1-3-n0-12", EXECUTION, "n0", 12) == "n1.n0"


def test_another_executions_name_says_nothing() -> None:
    assert node_of("other-n0-0", EXECUTION, "n0") is None
    assert map_node_of("other-n0-0-n1-0", EXECUTION) is None
    assert node_of("", EXECUTION, "n0") is None


@pytest.mark.parametrize(
    ("name", "node"),
    [
        ("n1-0-n0-0", "n1"),
        ("n2-0-n1-0-n17-3", "n2.n1"),
        ("n2-0-dn1-0-n0-0", "n2.dn1"),
        ("shards-0-n0-0", "shards"),
        ("step-1-shards-0-n0-0", None),
        ("fabcdefg-0-n0-0", None),
        ("n1-0", None),
    ],
)
def test_of_a_map_task_the_name_says_the_node_of_the_map(name: str, node: str | None) -> None:
    assert map_node_of(f"{EXECUTION}-{name}", EXECUTION) == node
