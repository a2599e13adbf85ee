"""What a step wrote is no change, however the API server writes it since.

It has filled in fields, and left out what says nothing, before a webhook sees a pod that an
operator made. In `enforce` a change of such a pod is a denial.
"""

from __future__ import annotations

from typing import Any

import pytest

from kubetailor.registry.testing import TailorBench

from ..written_again import POD, STEPS, as_kept


@pytest.mark.parametrize(("use", "given", "kept"), STEPS.values(), ids=STEPS)
def test_what_was_written_is_not_written_again(
    tailor: TailorBench, use: str, given: Any, kept: Any
) -> None:
    outcome = tailor.prove(use, POD, **given)
    there = as_kept(outcome.after, kept)
    again = tailor.prove(use, there, **given)
    again.assert_unchanged()
    assert not again.warnings


@pytest.mark.parametrize(
    ("use", "given", "there"),
    [
        ("env", {"set": {"A": ""}}, {"env": [{"name": "A", "value": "x"}]}),
        (
            "env",
            {"set": {"A": {"valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}}},
            {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}}]},
        ),
        (
            "env",
            {"set": {"A": {"valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}}},
            {
                "env": [
                    {
                        "name": "A",
                        "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": True}},
                    }
                ]
            },
        ),
        (
            "security_context",
            {"container_fields": {"capabilities": {"add": []}}},
            {"securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}},
        ),
        ("resources", {"requests": {"cpu": "2m"}}, {"resources": {"requests": {"cpu": "1m"}}}),
        (
            "patch",
            {"pod": {"containers": [{"name": "main", "tty": False}]}},
            {"tty": True},
        ),
    ],
)
def test_what_says_something_else_is_written(
    tailor: TailorBench, use: str, given: Any, there: Any
) -> None:
    container = {**POD["spec"]["containers"][0], **there}
    pod = {**POD, "spec": {"containers": [container]}}
    assert tailor.prove(use, pod, **given).patch
