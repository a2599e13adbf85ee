"""Real reviews, damaged at random: what must hold of every answer, a million times over.

    python tests/plugins/webhook/fuzz.py --reviews 1000000 --seconds 180 --processes 2

Of each review: it is refused as malformed or gets an answer; a patch applies (jsonpatch is the
oracle) and leaves an object of the same kind and name; the patched object, reviewed once more (one
of three), is patched no more; and what is no business of the webhook's is not touched. The reviews
of a chunk depend on the seed and the chunk's number alone. What fails is written to a file, which
`--reproduce FILE` runs again.
"""

from __future__ import annotations

import argparse
import base64
import collections
import json
import multiprocessing
import random
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import jsonpatch
import orjson

from kubetailor.plugins.execution.marks import EXECUTION_KEYS
from kubetailor.plugins.flyte.stamp import STAMP
from kubetailor.plugins.webhook.decide import decide
from kubetailor.plugins.webhook.limits import Limits
from kubetailor.plugins.webhook.reviews import AdmissionReview, MalformedReviewError, dump, parse
from kubetailor.registry.overrides.document import OVERRIDE
from kubetailor.registry.tailor import Tailor

REVIEWS: Final = Path(__file__).parent / "reviews"
CHUNK: Final = 500
SECONDS: Final = 5.0
"""What one decision may take."""

TWICE: Final = 0.3
"""How many of the reviews are reviewed once more, as they came out: it costs as much again."""

STEPS: Final = """
      - use: tolerations
        with: {add: [{key: spot, operator: Exists}], remove: [{key: example.com/x}]}
      - {use: node_selector, with: {set: {pool: ml}}}
      - {use: node_affinity, with: {require: [{key: zone, operator: In, values: [a]}]}}
      - {use: labels, with: {set: {team: platform}}, when: {domain: development}}
      - {use: annotations, with: {set: {note: text}, remove: [pa]}}
      - {use: env, with: {set: {DEBUG: "1"}}, when: {role: [worker, primary, head]}}
      - {use: gpu, with: {type: a}, when: {requests: nvidia.com/gpu}}
      - {use: kueue, with: {queue: team}, when: {kind: [PyTorchJob, RayJob, Pod]}}
"""
CONFIGS: Final = {
    "whole": f"""
    defaults:
      - {{use: priority_class, with: {{name: batch-low}}}}
      - {{use: shared_memory, with: {{size_limit: 1Gi}}}}
    steps:{STEPS}
    enforce:
      - {{use: labels, with: {{set: {{cost-centre: speech}}}}}}
""",
    "enforced": f"""
    enforce:{STEPS}
""",
    "counted": """
    defaults:
      - {use: resources, with: {requests: {cpu: 1, memory: 1Gi}}}
    steps:
      - {use: gpu, with: {type: b, count: 2}, when: {requests: nvidia.com/gpu}}
      - {use: image, with: {image: "example.com/i:2"}}
      - {use: labels, with: {set: {big: "true"}}, when: {node: [big, n1]}}
    enforce:
      - {use: resources, with: {limits: {memory: 64Gi}}}
""",
}
REST: Final = """
accelerators:
  a: {resource: nvidia.com/gpu, node_selector: {example.com/gpu: a}, runtime_class: nvidia}
  b:
    resource: nvidia.com/gpu
    device: b
    node_selector: {example.com/gpu: b, size: "b-{count}"}
    tolerations: [{key: b, operator: Exists}]
"""


class Fault(Exception):
    """What must hold did not."""


class Task(NamedTuple):
    """A chunk to be done."""

    seed: int
    chunk: int
    reviews: int


class Done(NamedTuple):
    """What became of a chunk: outcome -> number, and what failed, if anything."""

    outcomes: collections.Counter[str]
    failure: dict[str, Any] | None


@lru_cache(maxsize=1)
def tailors() -> dict[str, Tailor]:
    """A config in use for each of `CONFIGS`."""
    found: dict[str, Tailor] = {}
    with tempfile.TemporaryDirectory() as directory:
        for name, chain in CONFIGS.items():
            path = Path(directory) / f"{name}.yaml"
            path.write_text(f"phases: [launch, admit]\nchains:\n  default:{chain}{REST}")
            tailor = Tailor.find(path, environ={})
            assert tailor is not None
            found[name] = tailor
    return found


@lru_cache(maxsize=1)
def limits() -> Limits:
    """The limits of a decision."""
    return Limits(SECONDS)


# what is sent ------------------------------------------------------------------------------------

_JUNK: Final[tuple[str, ...]] = (
    *("null", "true", "false", "0", "1", "-1", "3", "0.5", "1e300", "9007199254740993"),
    *("-0", "123456789012345678901234567890", '""', '"x"', '"1"', '"a/b"', '"spec"', '"\\u0000"'),
    *(
        '"\\ud83d\\ude00"',
        '"' + "x" * 300 + '"',
        "[]",
        "{}",
        "[null]",
        "[{}]",
        "[[]]",
        '{"": null}',
    ),
    *('{"name": "x"}', '{"labels": null, "annotations": {}}', '["a", "a"]', "[1, 2]"),
    *('{"requests": {"nvidia.com/gpu": "2"}, "limits": {"nvidia.com/gpu": "2"}}', '"-1Gi"'),
    *('{"gpuAccelerator": {"device": "b"}}', '[{"key": "spot", "operator": "Exists"}]'),
    *('{"pod_spec": {"containers": [{"name": "a"}]}, "primary_container_name": "a"}',),
    "[" * 130 + "]" * 130,
)
_FIELDS: Final = (
    *("metadata", "spec", "containers", "env", "labels", "annotations", "resources", "limits"),
    *("tolerations", "affinity", "task", "podTemplate", "extendedResources", "k8sPod", "custom"),
    *("ownerReferences", "template", "nodes", "array", "config", "type", "id", "name"),
)
_MARKS: Final = (
    *("", "{", "null", "[]", '{"chain": "default", "digest": "x", "done": 1}'),
    *('{"chain": "default", "digest": "sha256:0", "done": 1, "task": "zoo.train"}',),
    *('{"labels": ["team"], "annotations": ["note"]}', '{"labels": "team"}', '{"labels": [1]}'),
)
_ASKED: Final = (
    "{use: labels, with: {set: {team: own, a: b}}}",
    "{use: gpu, with: {type: b}, when: {requests: nvidia.com/gpu}, optional: true}",
    "{use: gpu, with: {type: a, count: 2}, when: {node: [big, n0]}, optional: true}",
    "{use: retries, with: {retries: 2}}",
    "{use: resources, with: {requests: {cpu: 3}, limits: {cpu: 4}}, optional: true}",
    "{use: tolerations, with: {add: [{key: own, operator: Exists}]}, optional: true}",
    "{use: env, with: {set: {DEBUG: '2'}}, when: {role: worker}, optional: true}",
    "{use: kueue, with: {queue: own}, when: {kind: PyTorchJob}, optional: true}",
    "{use: cache, with: {cache: false}, when: {inputs: {x: 3}}, optional: true}",
    "{use: image, with: {image: 'own:1'}}",
)
"""Steps of overrides, some of which may not be."""
_REQUESTS: Final[tuple[dict[str, Any], ...]] = (
    {"operation": "UPDATE"},
    {"operation": "DELETE", "object": None},
    {"subResource": "binding"},
    {"name": ""},
    {"namespace": ""},
    {"dryRun": True},
    {"operation": "CREATE", "subResource": ""},
    {"object": {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}}},
    {"object": {"apiVersion": "x/v1", "kind": "Y", "spec": {"containers": [{}]}}},
    {"object": {}},
    {"object": None},
    {"kind": None},
    {"uid": ""},
)


_OVERRIDES: Final = """{
  "resources": {"requests": {"nvidia.com/gpu": "4", "cpu": "2"}, "limits": {"nvidia.com/gpu": "4"}},
  "extendedResources": {
    "gpuAccelerator": {"device": "b", "unpartitioned": true},
    "sharedMemory": {"sizeLimit": "1Gi"}
  },
  "containerImage": "own:1",
  "retry": {"minAttempts": 3},
  "executionDeadline": "1h0m0s",
  "activeDeadline": "2h0m0s",
  "podTemplate": {
    "metadata": {"labels": {"a": "b"}, "annotations": {"kubetailor.dev/undo": "{}"}},
    "pod_spec": {
      "containers": [{"name": "main", "resources": {"limits": {"gpu": "1"}}}, {"name": "side"}],
      "tolerations": [{"key": "own", "operator": "Exists"}]
    },
    "primary_container_name": "main"
  }
}"""
"""What a node may state; none of the recorded ones states all."""


class Base(NamedTuple):
    """A real review: its name, text, and the place of each value of its object."""

    name: str
    text: bytes
    places: list[tuple[str | int, ...]]


@lru_cache(maxsize=1)
def bases() -> tuple[list[Base], list[int]]:
    """The real reviews, and how often each is taken: large ones seldom, for the time they take."""
    reviews = {path.stem: json.loads(path.read_bytes()) for path in sorted(REVIEWS.glob("*.json"))}
    child = json.loads(dump(reviews["flyteworkflow-child"]))
    child["request"]["object"]["spec"]["nodes"]["n0"].update(json.loads(_OVERRIDES))
    reviews["flyteworkflow-overrides"] = child
    found, weights = [], []
    for name, review in reviews.items():
        review["request"]["object"]["metadata"].pop("managedFields", None)
        text = dump(review)
        found.append(Base(name, text, list(_places(review["request"]["object"], ()))))
        weights.append(max(1, 100_000 // len(text)))
    return found, weights


def _places(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for key, child in items:
        yield (*path, key)
        yield from _places(child, (*path, key))


def _holder(obj: Any, path: tuple[Any, ...]) -> Any:
    """What holds a place; None if it is not there any more."""
    node = obj
    for key in path[:-1]:
        if isinstance(node, dict):
            node = node.get(key)
        elif isinstance(node, list) and isinstance(key, int) and key < len(node):
            node = node[key]
        else:
            return None
    if isinstance(node, dict):
        return node if path[-1] in node else None
    if isinstance(node, list) and isinstance(path[-1], int):
        return node if path[-1] < len(node) else None
    return None


def damaged(chance: random.Random) -> bytes:
    """The text of a real review after a few accidents."""
    found, weights = bases()
    (base,) = chance.choices(found, weights)
    review = orjson.loads(base.text)
    request = review["request"]
    for _ in range(chance.randrange(6)):
        _accident(chance, request["object"], base)
    if chance.random() < 0.3 and isinstance(request["object"].get("metadata"), dict):
        marks = request["object"]["metadata"].setdefault("annotations", {})
        if isinstance(marks, dict):
            marks[STAMP] = chance.choice(_MARKS)
            marks[EXECUTION_KEYS] = chance.choice(_MARKS)
            if chance.random() < 0.5:
                steps = ", ".join(chance.choices(_ASKED, k=chance.randrange(1, 3)))
                marks[OVERRIDE] = f"{{steps: [{steps}]}}"
    if chance.random() < 0.05:
        request.update(chance.choice(_REQUESTS))
    try:
        text = orjson.dumps(review)
    except TypeError:  # an integer of more than 64 bits, or nested deep
        text = json.dumps(review, separators=(",", ":")).encode()
    if chance.random() < 0.02:
        broken = bytearray(text)
        for _ in range(chance.randrange(1, 8)):
            broken[chance.randrange(len(broken))] = chance.randrange(256)
        text = bytes(broken)
    return text


def _accident(chance: random.Random, obj: Any, base: Base) -> None:
    path = chance.choice(base.places)
    holder = _holder(obj, path)
    if holder is None:
        return
    key: Any
    key, kind = path[-1], chance.randrange(6)
    if kind == 0:
        del holder[key]
    elif kind <= 2:
        holder[key] = json.loads(chance.choice(_JUNK))
    elif kind == 3 and isinstance(holder, list):
        holder.append(json.loads(json.dumps(holder[key])))
    elif kind == 4:
        other = chance.choice(base.places)
        there = _holder(obj, other)
        if there is not None:
            holder[key] = json.loads(json.dumps(there[other[-1]]))
    elif isinstance(holder, dict):
        holder[chance.choice(_FIELDS)] = json.loads(json.dumps(holder[key]))


# what must hold ----------------------------------------------------------------------------------

_KEPT: Final = ("name", "generateName", "namespace", "uid", "ownerReferences")


def check(text: bytes, tailor: Tailor, *, twice: bool = True) -> str:
    """Decide a review, and say what became of it.

    Args:
        text: the review.
        tailor: the config in use.
        twice: whether to review what came out once more.

    Raises:
        Fault: something that must hold of every answer does not.
    """
    try:
        review = parse(text)
    except MalformedReviewError:
        return "malformed"
    before = dump(review)
    decision = limits().run(decide, review, tailor)
    response: dict[str, Any] = {**decision.response}
    request = review["request"]
    if response["uid"] != request["uid"]:
        raise Fault("the answer is to another request")
    if dump(review) != before:
        raise Fault("the review itself was changed")
    json.loads(dump(response))
    if response["allowed"] != (decision.outcome != "denied"):
        raise Fault(f"{decision.outcome}, and allowed is {response['allowed']}")
    patch = json.loads(base64.b64decode(response.get("patch", "W10=")))
    if bool(patch) != (decision.outcome == "patched"):
        raise Fault(f"{decision.outcome}, and the patch is {patch}")
    if decision.outcome == "denied":
        status = response["status"]
        if status["code"] not in (400, 422) or not status["message"]:
            raise Fault(f"a denial of {status}")
    if patch:
        after = _patched(review, patch)
        if twice:
            _check_again(review, after, tailor)
    return decision.outcome


def _patched(review: AdmissionReview, patch: list[dict[str, Any]]) -> Any:
    request = review["request"]
    if request["operation"] != "CREATE" or request.get("subResource"):
        raise Fault("what is not created was patched")
    before = request.get("object") or {}
    result: Any = jsonpatch.JsonPatch(patch).apply(orjson.loads(dump(before)), in_place=True)
    if not isinstance(result, dict):
        raise Fault("it is no object any more")
    for field in ("apiVersion", "kind"):
        if result.get(field) != before.get(field):
            raise Fault(f"{field} was changed")
    was, now = before.get("metadata"), result.get("metadata")
    if isinstance(was, dict) and isinstance(now, dict):
        for field in _KEPT:
            if now.get(field) != was.get(field):
                raise Fault(f"metadata.{field} was changed")
    if "status" in before and result.get("status") != before["status"]:
        raise Fault("status was changed")
    return result


def _check_again(review: AdmissionReview, after: Any, tailor: Tailor) -> None:
    second: Any = {**review, "request": {**review["request"], "object": after}}
    again = limits().run(decide, second, tailor)
    if again.outcome != "unchanged":
        left = base64.b64decode(again.response.get("patch", "")).decode()
        raise Fault(f"the second time it was {again.outcome}: {again.reason}{left}")


def _run(task: Task) -> Done:
    """A chunk of reviews; it ends at the first that fails."""
    chance = random.Random(task.seed * 1_000_003 + task.chunk)
    outcomes: collections.Counter[str] = collections.Counter()
    names = list(CONFIGS)
    for _ in range(task.reviews):
        name = chance.choice(names)
        text = damaged(chance)
        try:
            twice = chance.random() < TWICE
            outcomes[check(text, tailors()[name], twice=twice)] += 1
        except Exception as error:
            told = base64.b64encode(text).decode()
            reason = f"{type(error).__name__}: {error}"
            failure = {"seed": task.seed, "chunk": task.chunk, "config": name, "reason": reason}
            failure["traceback"] = traceback.format_exc()
            return Done(outcomes, {**failure, "review": told})
    return Done(outcomes, None)


# the command -------------------------------------------------------------------------------------


def _tasks(seed: int, reviews: int, seconds: float) -> Iterator[Task]:
    end = time.monotonic() + seconds
    for chunk, start in enumerate(range(0, reviews, CHUNK)):
        if time.monotonic() > end:
            return
        yield Task(seed, chunk, min(CHUNK, reviews - start))


def run(
    reviews: int, seconds: float, seed: int, processes: int, reproducer: Path
) -> collections.Counter[str] | None:
    """Fuzz until the reviews or the seconds are used up.

    Returns:
        outcome -> number; None if one failed, which is in the file `reproducer` then.
    """
    start = told = time.monotonic()
    outcomes: collections.Counter[str] = collections.Counter()
    pool = multiprocessing.get_context("fork").Pool(processes) if processes > 1 else None
    try:
        tasks = _tasks(seed, reviews, seconds)
        # Not `imap`: it would take all tasks at once, whatever the time.
        for done in map(_run, tasks) if pool is None else _in_turn(pool, tasks, processes):
            outcomes += done.outcomes
            if done.failure is not None:
                reproducer.write_text(json.dumps(done.failure, indent=1))
                print(f"{done.failure['reason']}\nwritten to {reproducer}", flush=True)
                return None
            if time.monotonic() > told + 2:
                told = time.monotonic()
                _tell(outcomes, told - start)
    finally:
        if pool is not None:
            pool.terminate()
            pool.join()
    _tell(outcomes, time.monotonic() - start)
    return outcomes


def _in_turn(pool: Any, tasks: Iterator[Task], processes: int) -> Iterator[Done]:
    waiting: collections.deque[Any] = collections.deque()
    for task in tasks:
        waiting.append(pool.apply_async(_run, (task,)))
        if len(waiting) >= 2 * processes:
            yield waiting.popleft().get()
    while waiting:
        yield waiting.popleft().get()


def _tell(outcomes: collections.Counter[str], seconds: float) -> None:
    counts = ", ".join(f"{number} {name}" for name, number in outcomes.most_common())
    total = outcomes.total()
    print(f"{total} reviews, {total / seconds:.0f} a second: {counts}", flush=True)


def reproduce(path: Path) -> bool:
    """Run what a file says again; whether it still fails."""
    said = json.loads(path.read_text())
    try:
        outcome = check(base64.b64decode(said["review"]), tailors()[said["config"]])
    except Exception:
        traceback.print_exc()
        return True
    print(f"{outcome}: it does not fail any more")
    return False


def main(arguments: list[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--reviews", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--seed", type=int, default=None, help="by default another each time")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--reproducer", type=Path, default=Path("fuzz-failure.json"))
    parser.add_argument("--reproduce", type=Path, help="run what a reproducer file says")
    given = parser.parse_args(arguments)
    if given.reproduce:
        return 1 if reproduce(given.reproduce) else 0
    seed = random.SystemRandom().randrange(2**32) if given.seed is None else given.seed
    print(f"seed {seed}", flush=True)
    done = run(given.reviews, given.seconds, seed, given.processes, given.reproducer)
    return 1 if done is None else 0


if __name__ == "__main__":
    sys.exit(main())
