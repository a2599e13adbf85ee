"""Quantities, names and identities: Kubernetes' own rules."""

# ruff: noqa: RUF001 (tables are read line by line)
from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes.utils.quantity import parse_quantity as kubernetes_parse_quantity

from kubetailor.workloads import InvalidObjectError, nearest, parse_quantity, same_quantity
from kubetailor.workloads.identity import (
    env_position,
    env_references,
    find,
    mount_path,
    toleration_key,
)
from kubetailor.workloads.names import check_env_name, check_key, check_label_value, check_name
from kubetailor.workloads.quantity import is_extended_resource, is_whole, quantity_text

NUMBERS = st.decimals(min_value=-1000, max_value=1000, places=3) | st.integers(-1000, 1000)
SUFFIXES = st.sampled_from(
    [
        "",
        "n",
        "u",
        "m",
        "k",
        "M",
        "G",
        "T",
        "P",
        "E",
        "Ki",
        "Mi",
        "Gi",
        "Ti",
        "Pi",
        "Ei",
        "e3",
        "E3",
    ]
)


@given(NUMBERS, SUFFIXES)
def test_quantities_are_what_the_kubernetes_client_reads(number: Any, suffix: str) -> None:
    text = f"{number:f}{suffix}" if isinstance(number, Decimal) else f"{number}{suffix}"
    if suffix in ("e3", "E3"):  # the client knows no exponents
        assert parse_quantity(text) == parse_quantity(text[:-2]) * 1000
    else:
        assert parse_quantity(text) == kubernetes_parse_quantity(text)
    if 0 <= parse_quantity(text) < 2**63:
        assert quantity_text(text) == text
    else:
        with pytest.raises(InvalidObjectError, match="must be from 0 to less than"):
            quantity_text(text)


@pytest.mark.parametrize("value", ["-1", -1, "-1m", "1e99", "8Ei", 2**63, 10**400, "9" * 5000])
def test_a_quantity_that_nobody_can_ask_for_is_not_written(value: Any) -> None:
    """The API server refuses what is negative, and cuts what is too much without a word."""
    with pytest.raises(InvalidObjectError, match="must be from 0 to less than") as caught:
        quantity_text(value)
    assert len(str(caught.value)) < 200
    assert quantity_text("7Ei") == "7Ei"


@pytest.mark.parametrize(
    ("a", "b", "equal"),
    [
        ("0.5", "500m", True),
        (1, "1", True),
        (0.5, "500m", True),
        ("1Gi", "1024Mi", True),
        ("1G", "1Gi", False),
        ("1e3", "1k", True),
        ("1E", "1000P", True),
        (".5", "0.5", True),
        ("2.", "2", True),
        ("x", "y", False),
        ("1", None, False),
        (1, True, False),
    ],
)
def test_quantities_are_compared_by_value(a: Any, b: Any, equal: bool) -> None:
    assert same_quantity(a, b) is equal
    assert same_quantity(b, a) is equal


@pytest.mark.parametrize(
    ("given", "advice"),
    [
        ("1g", "write 1G or 1Gi"),
        ("100K", "write 100k or 100Ki"),
        ("1.5gb", "write 1.5G or 1.5Gi"),
        ("10GB", "write 10G or 10Gi"),
        ("1GIB", "write 1G or 1Gi"),
        ("lots", "one of the suffixes"),
        ("", "one of the suffixes"),
        ("1 Gi", "one of the suffixes"),
        ("1Gi\n", "one of the suffixes"),
        ("١Gi", "one of the suffixes"),
        ("1e", "write"),
        ("0x10", "one of the suffixes"),
        ("inf", "one of the suffixes"),
        (float("nan"), "one of the suffixes"),
        (True, "not a quantity"),
        (None, "not a quantity"),
        ([], "not a quantity"),
    ],
)
def test_what_is_no_quantity_is_refused_with_advice(given: Any, advice: str) -> None:
    with pytest.raises(InvalidObjectError, match=advice):
        parse_quantity(given)


@pytest.mark.parametrize(
    ("name", "extended"),
    [
        ("nvidia.com/gpu", True),
        ("nvidia.com/mig-1g.10gb", True),
        ("gpu", True),
        ("cpu", False),
        ("hugepages-2Mi", False),
        ("ephemeral-storage", False),
        ("kubernetes.io/x", False),
        ("scheduling.kubernetes.io/foo", False),
    ],
)
def test_extended_resources(name: str, extended: bool) -> None:
    assert is_extended_resource(name) is extended


@pytest.mark.parametrize(
    "key", ["a", "a/b", "example.com/A_b.c-d", "0", "a" * 63, f"{'b' * 253}/a"]
)
def test_keys_that_kubernetes_takes(key: str) -> None:
    assert check_key(key) == key


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("", "must consist of alphanumeric"),
        ("/a", "prefix must be a DNS subdomain"),
        ("a/", "must consist of alphanumeric"),
        ("-a", "must consist of alphanumeric"),
        ("a" * 64, "64 characters, at most 63"),
        ("Example.com/a", "prefix must be a DNS subdomain"),
        (f"{'b' * 254}/a", "prefix must be a DNS subdomain"),
        ("a/b/c", "prefix must be a DNS subdomain"),
        ("a b", "must consist of alphanumeric"),
        ("a\n", "must consist of alphanumeric"),
    ],
)
def test_keys_that_kubernetes_refuses(key: str, reason: str) -> None:
    with pytest.raises(InvalidObjectError, match=reason):
        check_key(key)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("a" * 64, "64 characters, at most 63"),
        ("ada@example.org", "must consist of alphanumeric"),
        ("-", "must consist of alphanumeric"),
        (True, "must be a string, found True"),
        (1, "must be a string, found 1"),
        (None, "must be a string, found None"),
    ],
)
def test_label_values_that_kubernetes_refuses(value: Any, reason: str) -> None:
    with pytest.raises(InvalidObjectError, match=reason):
        check_label_value("k", value)
    assert check_label_value("k", "") == ""


@pytest.mark.parametrize("name", ["", "A", "a.b", "a_b", "-a", "a" * 64, None, 5])
def test_names_of_containers_that_kubernetes_refuses(name: Any) -> None:
    with pytest.raises(InvalidObjectError, match="lower-case alphanumeric"):
        check_name(name, "container")


@pytest.mark.parametrize("name", ["", "A=B", None, 1, "a\n"])
def test_env_names_that_kubernetes_refuses(name: Any) -> None:
    with pytest.raises(InvalidObjectError, match="env name"):
        check_env_name(name)
    assert check_env_name("my.var-x y") == "my.var-x y"


def test_identity_of_tolerations_is_their_whole_match() -> None:
    assert toleration_key({"key": "a", "value": "b"}) == toleration_key(
        {"key": "a", "operator": "Equal", "value": "b", "effect": "", "tolerationSeconds": 5}
    )
    assert toleration_key({"key": "a", "operator": "Exists"}) != toleration_key({"key": "a"})
    assert toleration_key({"key": "a", "effect": "NoExecute"}) != toleration_key({"key": "a"})


@pytest.mark.parametrize(
    ("field", "entry", "index"),
    [
        ("volumeMounts", {"mountPath": "/dev/shm/"}, 0),
        ("volumeMounts", {"mountPath": "/dev//shm"}, 0),
        ("volumeMounts", {"mountPath": "/dev"}, None),
        ("ports", {"containerPort": 80, "protocol": "TCP"}, 0),
        ("ports", {"containerPort": 80, "protocol": "UDP"}, None),
        ("ports", {"containerPort": True}, None),
        (
            "topologySpreadConstraints",
            {"topologyKey": "z", "whenUnsatisfiable": "ScheduleAnyway"},
            0,
        ),
        (
            "topologySpreadConstraints",
            {"topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"},
            None,
        ),
        ("envFrom", {"secretRef": {"name": "s"}}, 0),
        ("envFrom", {"configMapRef": {"name": "s"}}, None),
    ],
)
def test_entries_are_found_by_identity(field: str, entry: Any, index: int | None) -> None:
    entries: Any = [
        {
            "mountPath": "/dev/shm",
            "containerPort": 80,
            "topologyKey": "z",
            "whenUnsatisfiable": "ScheduleAnyway",
            "secretRef": {"name": "s"},
        },
        None,
    ]
    assert find(field, entries, entry) == index


def test_env_references() -> None:
    assert env_references("$(A)-$(B_C) $$(D) $E $(") == {"A", "B_C"}
    assert env_references("$$$(A)") == {"A"}
    assert env_references(None) == set()
    env = [{"name": "X", "value": "$$(N)"}, {"name": "U", "value": "$(N)"}, None]
    assert env_position(env, {"name": "N"}) == 1
    assert env_position(env, {"name": "M"}) == 3


def test_mount_paths_in_normal_form() -> None:
    assert [mount_path(path) for path in ("/a/", "/a//b/./c", "")] == ["/a", "/a/b/c", ""]


def test_the_nearest_names_come_first() -> None:
    assert nearest("tolaration", ["tolerations", "env"]) == (
        "did you mean tolerations? (known: env, tolerations)"
    )
    assert nearest("zzz", ["a"], what="things") == "things: a"
    assert nearest("x", []) == "known: none"


def test_a_name_that_is_part_of_others_means_these_the_shortest_first() -> None:
    names = ["nvidia-h100-80gb-aks", "nvidia-h100-80gb", "nvidia-v100"]
    assert nearest("nvidia-h100", names).startswith(
        "did you mean nvidia-h100-80gb, nvidia-h100-80gb-aks? ("
    )
    assert nearest("H100", names) == nearest("nvidia-h100", names)
    assert nearest("v10", names).startswith("known: "), "three letters are in too much"


def test_of_many_names_only_the_closest_or_the_first_are_said() -> None:
    names = [f"accelerator-{number}" for number in range(100, 150)]
    assert nearest("acelerator-100", names, listing="it") == (
        "did you mean accelerator-100, accelerator-140, accelerator-130? (`it` lists all 50)"
    )
    first = ", ".join(names[:10])
    assert nearest("x", names, what="things") == f"things: {first} and 40 more"
    assert nearest("x", names, what="things", listing="it") == (
        f"things: {first} and 40 more (`it` lists all 50)"
    )


@pytest.mark.parametrize("number", ["9" * 30, "9" * 5000, "1e99", f"{'9' * 40}Ei", "2.000", 3.0])
def test_a_whole_number_may_have_any_size(number: Any) -> None:
    assert is_whole(number)


@pytest.mark.parametrize("number", ["1m", "0.5", "1e-99", 0.5])
def test_a_fraction_is_no_whole_number(number: Any) -> None:
    assert not is_whole(number)
