"""For the tests of a team's plugin: an opt-in plugin of pytest with one fixture, `tailor`.

In a `conftest.py`::

    pytest_plugins = "kubetailor.registry.testing"

and in a test::

    def test_spot(tailor):
        outcome = tailor.prove(acme_platform.spot, POD, pool="spot")
        outcome.assert_changes({"spec.nodeSelector": {"example.com/pool": "spot"}})
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kubetailor.registry.chain import Chain
from kubetailor.registry.config import Config
from kubetailor.registry.context import Phase, TaskContext
from kubetailor.registry.explain import Change, readable
from kubetailor.registry.fieldpath import ABSENT, field_at, with_field
from kubetailor.registry.load import load_config
from kubetailor.registry.overrides.document import Override
from kubetailor.registry.parameters import read_parameters
from kubetailor.registry.result import Result
from kubetailor.registry.selectors import compile_selector
from kubetailor.registry.step import Step
from kubetailor.registry.tailor import Tailor
from kubetailor.registry.transformer import Options, Transformer, options_of
from kubetailor.workloads import Json, JsonMap, deep_copy, diff, same
from kubetailor.workloads.task_target import as_pod_task

__all__ = ["ABSENT", "ChainBench", "Outcome", "TailorBench", "tailor"]

_PROBE = "kubetailorProbe"


@dataclass(frozen=True)
class Outcome:
    """What a run made of an object.

    Attributes:
        result: the run's result, with all that hosts see of it.
    """

    result: Result

    @property
    def before(self) -> JsonMap:
        """The object that was given; of a Flyte task that became a pod task, as that."""
        return as_pod_task(self.result.before, self.result.after)

    @property
    def after(self) -> JsonMap:
        """The object that came out."""
        return self.result.after

    @property
    def patch(self) -> list[JsonMap]:
        """The RFC 6902 patch from the one to the other."""
        return self.result.patch()

    @property
    def changes(self) -> list[Change]:
        """Every changed field, and which step changed it."""
        return self.result.changes()

    @property
    def warnings(self) -> list[str]:
        """What steps had to say."""
        return [str(warning) for warning in self.result.warnings]

    @property
    def deferred(self) -> tuple[str, ...]:
        """The names of the steps that wait for a later phase."""
        return self.result.deferred

    @property
    def diff(self) -> list[str]:
        """One line for each changed field: ``+ spec.nodeSelector = {"pool": "a"}``."""
        return _lines(self.before, self.after)

    def __getitem__(self, path: str) -> Json:
        """What came out at a path such as ``spec.containers[main].env[0]``; None if nothing."""
        found = field_at(self.after, path)
        return None if found is ABSENT else found

    def assert_changes(self, fields: Mapping[str, Any]) -> None:
        """Fail unless these fields have these values and nothing else changed.

        Args:
            fields: path -> value, or `ABSENT`. List entries by name or index:
                ``spec.containers[main].resources.limits['nvidia.com/gpu']``.
        """
        expected = self.before
        for path, value in fields.items():
            expected = with_field(expected, path, value)
        others = _lines(expected, self.after)
        _must(not others, "what came out is not what was expected:", *others)

    def assert_unchanged(self) -> None:
        """Fail if anything changed."""
        self.assert_changes({})


def _lines(before: JsonMap, after: JsonMap) -> list[str]:
    lines = []
    for op, path, old, new in diff(before, after):
        field = readable(path, after, old if op == "remove" else new)
        if op == "replace":
            lines.append(f"~ {field}: {_json(old)} -> {_json(new)}")
        else:
            sign, value = ("+", new) if op == "add" else ("-", old)
            lines.append(f"{sign} {field} = {_json(value)}")
    return lines


def _json(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)


Run = Callable[[JsonMap], Result]


def _proven(run: Run, obj: JsonMap) -> Outcome:
    """Run over an object and fail unless the promises hold that every transformer gives."""
    given = _json(obj)
    result = run(obj)
    outcome = Outcome(result)
    _must(_json(obj) == given, "the object that was given is changed in place")

    again = run(result.after)
    more = _lines(result.after, again.after)
    _must(not more, "a second run changes more:", *more)

    applied = _patched(deep_copy(obj), outcome.patch)
    _must(same(applied, result.after), "the patch does not lead to what came out")

    before = outcome.before
    probed = run(_with_probes(before, before)).after
    lost = _lines(_with_probes(result.after, before), probed)
    _must(not lost, "fields that are not known are lost or moved:", *lost)

    other = run(deep_copy(obj)).after
    shared = _parts(result.after) & _parts(other)
    _must(not shared, "two results share a part that can be changed")
    return outcome


def _must(holds: bool, *lines: str) -> None:
    if not holds:
        raise AssertionError("\n".join(lines))


def _patched(root: Json, patch: list[JsonMap]) -> Json:
    """RFC 6902, written down apart from what made the patch."""
    holder = {"": root}
    for entry in patch:
        *parents, last = [
            key.replace("~1", "/").replace("~0", "~") for key in entry["path"].split("/")
        ]
        node: Any = holder
        for key in parents:
            node = node[int(key)] if isinstance(node, list) else node[key]
        place: Any = int(last) if isinstance(node, list) else last
        if entry["op"] == "remove":
            del node[place]
        elif entry["op"] == "add" and isinstance(node, list):
            node.insert(place, deep_copy(entry["value"]))
        else:
            node[place] = deep_copy(entry["value"])
    return holder[""]


def _with_probes(value: Json, given: Json, *, root: bool = True) -> Json:
    """A copy with a field that nobody knows in the object, its pod specs and its containers.

    Args:
        value: what came out, or what was given.
        given: what was given; what is not in it is new, and has no such field.
        root: whether it is the object itself.
    """
    if given is None or not isinstance(value, dict | list):
        return deep_copy(value)
    if isinstance(value, list):
        pairs = zip(value, _counterparts(value, given), strict=True)
        return [_with_probes(item, other, root=False) for item, other in pairs]
    old = given if isinstance(given, dict) else {}
    copied = {k: _with_probes(item, old.get(k), root=False) for k, item in value.items()}
    for field in ("containers", "initContainers"):
        found = copied.get(field)
        entries: list[Json] = found if isinstance(found, list) else []
        for entry, other in zip(entries, _counterparts(entries, old.get(field)), strict=True):
            if isinstance(entry, dict) and other is not None:
                entry[_PROBE] = {"kept": [1, None]}
    if root or isinstance(copied.get("containers"), list):
        copied[_PROBE] = {"kept": [1, None]}
    return copied


def _counterparts(entries: list[Json], given: Json) -> list[Json]:
    """The entry of the list that was given for each of another, by name or else by index."""
    others = given if isinstance(given, list) else []
    named = {entry["name"]: entry for entry in others if _named(entry)}
    return [
        named.get(entry["name"])
        if _named(entry)
        else others[index]
        if index < len(others)
        else None
        for index, entry in enumerate(entries)
    ]


def _named(entry: Json) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("name"), str)


def _parts(value: Json) -> set[int]:
    """The ids of every dict and list."""

    def walk(node: Json) -> Iterator[int]:
        if isinstance(node, dict | list):
            yield id(node)
            for item in node.values() if isinstance(node, dict) else node:
                yield from walk(item)

    return set(walk(value))


@dataclass(frozen=True)
class ChainBench:
    """A config under test.

    Attributes:
        config: the config.
        name: the chain that is forced, or None where `select` picks.
    """

    config: Config
    name: str | None = None

    def run(
        self,
        obj: JsonMap,
        /,
        phase: Phase = "admit",
        *,
        override: str | None = None,
        **task: Any,
    ) -> Outcome:
        """Run the chain over an object.

        Args:
            obj: the object.
            phase: the phase.
            override: the document of an execution's override.
            task: what is known of the task, as fields of `TaskContext`.
        """
        return Outcome(self._run(override, phase, task)(obj))

    def prove(
        self,
        obj: JsonMap,
        /,
        phase: Phase = "admit",
        *,
        override: str | None = None,
        **task: Any,
    ) -> Outcome:
        """As `run`, and fail unless the promises hold that `TailorBench.prove` lists."""
        return _proven(self._run(override, phase, task), obj)

    def _run(self, override: str | None, phase: Phase, task: Mapping[str, Any]) -> Run:
        compiled = None
        if override is not None:
            compiled = self.config.overrides.compile(Override.parse(override))
        tailor = Tailor(self.config, self.name)
        return lambda obj: tailor.tailor(obj, phase, override=compiled, **task).result


class TailorBench:
    """What the fixture `tailor` gives."""

    def __init__(self, directory: Path) -> None:
        """A bench.

        Args:
            directory: where texts of configs are written.
        """
        self._directory = directory
        self._count = 0

    @functools.cached_property
    def _installed(self) -> Config:
        return self._load("chains: {}\n")

    def _load(self, source: str | Path) -> Config:
        if isinstance(source, Path):
            return load_config(source)
        self._count += 1
        path = self._directory / f"kubetailor-{self._count}.yaml"
        path.write_text(source, encoding="utf-8")
        return load_config(path)

    def transform(
        self,
        use: str | Callable[..., Any],
        obj: JsonMap,
        /,
        *,
        when: Mapping[str, Any] | None = None,
        task: TaskContext | None = None,
        **parameters: Any,
    ) -> Outcome:
        """Run one transformer over an object.

        Args:
            use: the function, or a name as a config writes it.
            obj: the object; it is not changed.
            when: where it applies, as a config writes it.
            task: what is known of the task; by default nothing, in the phase `admit`.
            parameters: the step's `with`.
        """
        return Outcome(self._run(use, when, task, parameters)(obj))

    def prove(
        self,
        use: str | Callable[..., Any],
        obj: JsonMap,
        /,
        *,
        when: Mapping[str, Any] | None = None,
        task: TaskContext | None = None,
        **parameters: Any,
    ) -> Outcome:
        """As `transform`, and fail unless what every transformer promises holds.

        A second run changes nothing; the object that was given is as it was; fields that nobody
        knows are still there; the patch leads from the one to the other; and two results share
        nothing.
        """
        return _proven(self._run(use, when, task, parameters), obj)

    def chain(self, source: str | Path, name: str | None = None) -> ChainBench:
        """The chains of a config.

        Args:
            source: its text, or the path of the file.
            name: the chain to run; by default `select` picks.
        """
        return ChainBench(self._load(source), name)

    def _run(
        self,
        use: str | Callable[..., Any],
        when: Mapping[str, Any] | None,
        task: TaskContext | None,
        parameters: Mapping[str, Any],
    ) -> Run:
        config = self._installed
        if isinstance(use, str):
            transformer = config.plugins.transformers[use]
        else:
            transformer = Transformer.of(
                use, name=use.__name__, plugin="test", options=options_of(use) or Options()
            )
        step = Step(
            transformer.name,
            "steps",
            transformer,
            read_parameters(transformer, parameters, config.catalogue),
            compile_selector(when),
        )
        chain = Chain("test", (step,), phases=("admit",), catalogue=config.catalogue)
        known = task or TaskContext("admit")
        front = Tailor(config)

        def run(obj: JsonMap) -> Result:
            kind = front.kind_of(obj)
            assert kind is not None, f"the kind {obj.get('kind')!r} is not known"
            return chain.run(obj, kind, known)

        return run


@pytest.fixture
def tailor(tmp_path: Path) -> TailorBench:
    """Runs transformers and chains over objects, and proves what they promise."""
    return TailorBench(tmp_path)
