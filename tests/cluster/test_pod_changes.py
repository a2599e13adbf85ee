"""The table of changes of a pod is right about Kubernetes: the API server is asked."""

from __future__ import annotations

import pytest

from ..pod_changes import BARE, ROWS, PodChange
from .stack.client import ApiError, Client


@pytest.fixture(scope="module")
def place(client: Client) -> str:
    """A namespace."""
    return client.namespace("pod-changes")


def refusal(client: Client, row: PodChange, namespace: str) -> str:
    """What the API server says of a pod; "" if it takes it."""
    metadata = {**row.after["metadata"], "namespace": namespace}
    try:
        client.create({**row.after, "metadata": metadata}, dryRun="All", fieldValidation="Strict")
    except ApiError as error:
        return error.message
    return ""


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_the_api_server_agrees(client: Client, place: str, row: PodChange) -> None:
    found = refusal(client, row, place)
    assert (found == "") is row.is_valid, found


def test_it_takes_the_pod_itself(client: Client, place: str) -> None:
    assert refusal(client, PodChange("bare", BARE), place) == ""
