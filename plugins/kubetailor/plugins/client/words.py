"""What a word of an editable task is: how it is read from a task, and written as an override.

The words are in two tables, `task_words` and `pod_words`; `editable` makes documents of them, and
`edited` reads what somebody made of such a document.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, ParamSpec, TypeAlias

from kubetailor.registry import OverrideError
from kubetailor.registry.source import read_core
from kubetailor.registry.source import text as text_of
from kubetailor.workloads import Json, JsonMap, same

__all__ = [
    "Place",
    "Used",
    "Word",
    "Write",
    "as_map",
    "changed",
    "changed_maps",
    "entries",
    "parameters",
    "strings",
    "value",
]

P = ParamSpec("P")

Used: TypeAlias = tuple[str, Mapping[str, Any]]
"""A transformer's name and its parameters."""


@dataclass(frozen=True)
class Place:
    """What a change is for.

    Attributes:
        where: the node, for messages.
        when: what picks it in an override.
        node: its node, as `when` names it.
    """

    where: str
    when: JsonMap
    node: str

    def fault(self, message: str) -> OverrideError:
        """The error for a change that cannot be."""
        return OverrideError(f"node {self.where}: {message}")


Write: TypeAlias = Callable[[Place, str, Json, Json], Iterator[Used]]
"""The steps that make one thing that a word says the other: place, word, before, after."""


@dataclass(frozen=True)
class Word(Generic[P]):
    """A word of a document.

    Attributes:
        read: what it says of a task or of a pod; None if there is nothing to say.
        write: the steps that say something else.
        typed: what is said in a document that was edited, of which plain scalars are not read yet.
        always: it is said with null too.
    """

    read: Callable[P, Json]
    write: Write
    typed: Callable[[Any], Any] = read_core
    always: bool = False


def strings(value: Any) -> Any:
    """A map of strings: a plain scalar is the text that was written, `no` and `0755` too."""
    if not isinstance(value, dict):
        return read_core(value)
    return {
        text_of(key): text_of(item) if isinstance(item, str) else read_core(item)
        for key, item in value.items()
    }


def changed(old: JsonMap, new: JsonMap) -> list[str]:
    """The keys that say something else."""
    return [key for key in {**old, **new} if not same(old.get(key), new.get(key))]


def as_map(place: Place, word: str, value: Json) -> JsonMap:
    """What a word says that is a map; null is an empty one."""
    if value is not None and not isinstance(value, dict):
        raise place.fault(f"`{word}`: expected a map, found {value!r}")
    return value or {}


def changed_maps(
    place: Place, word: str, old: Json, new: Json
) -> tuple[JsonMap, JsonMap, list[str]]:
    """A word that is a map, before and after, and the keys that say something else."""
    before, after = as_map(place, word, old), as_map(place, word, new)
    return before, after, changed(before, after)


# how words are written ---------------------------------------------------------------------------


def value(parameter: str, *, may_go: bool = False) -> Write:
    """A word that is one parameter of the transformer of its name."""

    def write(place: Place, word: str, _: Json, new: Json) -> Iterator[Used]:
        if new is None and not may_go:
            raise place.fault(f"`{word}` cannot be taken away")
        yield word, {parameter: new}

    return write


def parameters(place: Place, word: str, old: Json, new: Json) -> Iterator[Used]:
    """A word that is all parameters of its transformer; what is left out is null."""
    _, after, keys = changed_maps(place, word, old, new)
    yield word, {key: after.get(key) for key in keys}


def entries(place: Place, word: str, old: Json, new: Json) -> Iterator[Used]:
    """A map, of which a transformer sets and removes entries."""
    _, after, keys = changed_maps(place, word, old, new)
    said = {
        "set": {key: after[key] for key in keys if key in after},
        "remove": [key for key in keys if key not in after],
    }
    yield word, {name: entry for name, entry in said.items() if entry}
