"""What `kubetailor check` says of a config that is no error, and yet seldom meant."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from kubetailor.registry.accelerators import Catalogue
from kubetailor.registry.chain import Chain
from kubetailor.registry.overrides.allowed import Allowed
from kubetailor.registry.overrides.overridable import Rule
from kubetailor.registry.step import Step

__all__ = ["of_chain", "of_overridable"]

_WRITERS: Final[Mapping[str, frozenset[str]]] = {
    "labels": frozenset({"labels"}),
    "annotations": frozenset({"annotations"}),
    "requests": frozenset({"resources", "gpu"}),
}
"""What a `when` may read -> the built-ins that write it."""

_ADDERS: Final = frozenset({"sidecars", "init_containers"})
_OF_ALL: Final[Mapping[str, tuple[str, ...]]] = {
    "security_context": ("profile", "container_fields"),
    "resource_caps": ("max",),
}
"""What is about every container that is there -> the parameters by which it is."""


def of_chain(chain: Chain) -> Iterator[str]:
    """What there is to say of the order of a chain's steps.

    A `when` that reads what a later step may write is outside the promise of idempotence; what is
    about every container misses those that come after it.
    """
    names = [step.transformer.name for step in chain.steps]
    for index, step in enumerate(chain.steps):
        later = set(names[index + 1 :])
        for read, writers in _WRITERS.items():
            settled = read == "requests" and step.transformer.name in writers
            if read in step.when.fields and writers & later and not settled:
                yield (
                    f"{step.mark}: step {step.name!r} of chain {chain.name!r}: its `when` "
                    f"reads {read}, which a later step sets: a second run may differ"
                )
        if step.transformer.name in _ADDERS and step.arguments.get("add"):
            for name, missed in _missed(chain.steps, index).items():
                yield (
                    f"{step.mark}: step {step.name!r} of chain {chain.name!r}: the containers that "
                    f"it adds come after {name} ({missed.mark}), which does not hold for them: "
                    f"write it before that, or {name} into `enforce`"
                )


def _missed(steps: tuple[Step, ...], index: int) -> dict[str, Step]:
    """The steps about every container that run before one that adds some, and not after it too."""
    before = {step.transformer.name: step for step in steps[:index] if _is_of_all(step)}
    after = {step.transformer.name for step in steps[index + 1 :] if _is_of_all(step)}
    return {name: step for name, step in before.items() if name not in after}


def _is_of_all(step: Step) -> bool:
    return any(step.arguments.get(name) for name in _OF_ALL.get(step.transformer.name, ()))


def of_overridable(rules: Iterable[Rule], catalogue: Catalogue) -> Iterator[str]:
    """What there is to say of `overridable`: a limit of `gpu` that `resources` goes round.

    Args:
        rules: its entries.
        catalogue: the accelerators.
    """
    rules = tuple(rules)
    limits = [rule for rule in rules if rule.use == "gpu" and _is_limited(rule)]
    for rule in rules if limits else ():
        if rule.use == "resources" and any(
            _is_open(rule, gpu) for gpu in catalogue.marks.resources
        ):
            yield (
                f"{rule.mark}: `overridable` lets `resources` set any number of GPUs, which the "
                f"limit of `gpu` ({limits[0].mark}) is not about: allow `keys` without them, or "
                "give each a `max`"
            )


def _is_limited(rule: Rule) -> bool:
    count = (rule.allow or {}).get("count")
    return rule.allow is not None and (count is None or _limits(count, None))


def _is_open(rule: Rule, resource: str) -> bool:
    if rule.allow is None:
        return True
    parts = [rule.allow.get(part) for part in ("requests", "limits")]
    return any(
        part is not None
        and (part.keys is None or any(fnmatch.fnmatchcase(resource, glob) for glob in part.keys))
        and not _limits(part, resource)
        for part in parts
    )


def _limits(allowed: Allowed, key: str | None) -> bool:
    most: Any = allowed.most
    bound = most.get(key) if isinstance(most, Mapping) else most
    return bound is not None or bool({"in", "pattern"} & allowed.words)
