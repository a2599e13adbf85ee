"""What a run of a chain did."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from kubetailor.registry.context import Phase
from kubetailor.registry.explain import Change, changes
from kubetailor.registry.step import Step
from kubetailor.workloads import JsonMap, json_patch, same

__all__ = ["Result", "Warned"]


class Warned(NamedTuple):
    """A warning: what, of which step, at which field; without a step, of the object itself."""

    text: str
    step: str
    field: str

    def __str__(self) -> str:
        place = f" ({self.field})" if self.field and self.field not in self.text else ""
        step = f"step {self.step!r}: " if self.step else ""
        return f"{step}{self.text}{place}"


@dataclass
class Result:
    """What a run did.

    Attributes:
        before: the object that was given.
        after: the object that came out; `before` itself if nothing changed.
        warnings: what steps had to say.
        done: how many steps of the chain have run, counted from its start.
        deferred: the names of the steps that wait for `until`; none if `unselected`.
        until: the phase that is waited for, or None.
        unknown: the field that could not be known, or None.
        undecided: how many conditions could not be decided even in the last phase.
        inapplicable: how many steps are about task templates alone, which this object is not.
        roots: each step that changed something, and the version after it.
        matched: the names of the steps of an override that applied.
    """

    before: JsonMap
    after: JsonMap
    warnings: list[Warned] = field(default_factory=list)
    done: int = 0
    deferred: tuple[str, ...] = ()
    until: Phase | None = None
    unknown: str | None = None
    undecided: int = 0
    inapplicable: int = 0
    roots: list[tuple[Step, JsonMap]] = field(default_factory=list)
    matched: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether the object came out different."""
        return not same(self.before, self.after)

    @property
    def unselected(self) -> bool:
        """Whether not even the chain could be selected, so that all of it waits for `until`."""
        return self.until is not None and not self.deferred

    @property
    def notice(self) -> str | None:
        """What waits for which phase, and why; None if nothing does."""
        if self.until is None:
            return None
        what = "the whole chain" if self.unselected else ", ".join(self.deferred)
        waits = "wait" if len(self.deferred) > 1 else "waits"
        unknown = f"{self.unknown} {'are' if ', ' in (self.unknown or '') else 'is'} not known yet"
        return f"{what} {waits} for the phase {self.until}: {unknown}"

    def patch(self) -> list[JsonMap]:
        """The RFC 6902 patch from `before` to `after`."""
        return json_patch(self.before, self.after)

    def versions(self) -> Iterator[tuple[JsonMap, Step, JsonMap]]:
        """(before, step, after) of each step that changed something."""
        before = self.before
        for step, after in self.roots:
            yield before, step, after
            before = after

    def changes(self) -> list[Change]:
        """Every changed field, and who changed it."""
        return list(changes(self.versions()))
