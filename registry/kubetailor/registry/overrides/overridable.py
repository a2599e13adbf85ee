"""`overridable`: what one execution may override, and who says so."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kubetailor.registry.errors import Mark
from kubetailor.registry.overrides.allowed import Allowed, plain, shown
from kubetailor.registry.overrides.never import DEFAULT_USES, NEVER
from kubetailor.registry.selectors import ALWAYS, Seen, SeenPod, Selector, View
from kubetailor.registry.step import Step

__all__ = ["Overridable", "Refusal", "Rule", "when_text"]


class Refusal(NamedTuple):
    """Why a step of an override may not be.

    Attributes:
        reason: what was given, and what is allowed.
        rule: the place of the rule in the config; None if it is the default.
    """

    reason: str
    rule: Mark | None

    def __str__(self) -> str:
        return f"{self.reason} ({self.rule or 'the default of `overridable`'})"


_ANY = Allowed()


@dataclass(frozen=True)
class Rule:
    """One entry of `overridable`, compiled.

    Attributes:
        use: the transformer.
        when: where it applies.
        allow: parameter -> what its value may be; None if all may be given.
        mark: its place in the config; None if it is the default.
    """

    use: str
    when: Selector
    allow: Mapping[str, Allowed] | None
    mark: Mark | None

    def holds(self, step: Step, seen: View, now: Seen) -> bool:
        """Whether this rule is about a task; if it is by roles, about every pod that the step is.

        Args:
            step: the step.
            seen: the task and its workload.
            now: the workload as the step finds it.
        """
        if "role" not in self.when.fields:
            return self.when.of_workload(seen.task, seen.workload) is True
        pods, found = _each_role(seen.workload), _each_role(now)
        touched = [
            pod
            for pod, other in zip(pods, found, strict=False)
            if step.when.test(View(seen.task, now, other)) is not False
        ]
        if len(pods) != len(found) or not touched:
            return False
        return all(self.when.test(View(seen.task, seen.workload, pod)) for pod in touched)

    def reasons(self, step: Step) -> Iterator[str]:
        """What of a step this rule does not allow."""
        for name, argument in step.arguments.items():
            if argument is None and step.transformer.signature.parameters[name].default is None:
                continue  # as if it were not there
            allowed = _ANY if self.allow is None else self.allow.get(name)
            if allowed is None:
                yield f"the parameter {name!r}; allowed: {', '.join(self.allow or ()) or 'none'}"
                continue
            value = plain(argument)
            yield from (f"{name}: {reason}" for reason in allowed.reasons(value))
            for never in NEVER.get((self.use, name), ()):
                if never.lifted_by & allowed.words:
                    continue
                for found, glob in never.found(value):
                    glob = f": {glob}" if glob not in ("", found) else ""
                    yield f"{name}: {never.what} {found or 'every key'}; never by default{glob}"


@dataclass(frozen=True)
class Overridable:
    """All that may be overridden.

    Attributes:
        rules: the entries; None for the default.
        mark: the place of `overridable` in the config, or None.
    """

    rules: tuple[Rule, ...] | None = None
    mark: Mark | None = None

    def refusals(
        self, step: Step, seen: View | None = None, now: Seen | None = None
    ) -> list[Refusal]:
        """Why a step of an override may not be; nothing if it may.

        Args:
            step: the step.
            seen: the task and its workload; None to ask whether it may be for any task at all.
            now: the workload as the step finds it, if other steps changed it.
        """
        use = step.transformer.name
        if self.rules is None:
            rules = [Rule(use, ALWAYS, None, None)] if use in DEFAULT_USES else []
        else:
            rules = [rule for rule in self.rules if rule.use == use]
        if not rules:
            uses = DEFAULT_USES if self.rules is None else {rule.use for rule in self.rules}
            known = ", ".join(sorted(uses)) or "nothing"
            return [Refusal(f"{use} may not be overridden; allowed: {known}", self.mark)]
        if seen is not None and self.rules is not None:
            holding = [r for r in rules if r.holds(step, seen, now or seen.workload)]
            if not holding:
                return [
                    Refusal(
                        f"{use} may not be overridden here, only where {when_text(r.when)}", r.mark
                    )
                    for r in rules
                ]
            rules = holding
        refused = [[Refusal(reason, rule.mark) for reason in rule.reasons(step)] for rule in rules]
        return [] if not all(refused) else [one for some in refused for one in some]

    def conditions(self, step: Step) -> list[Selector]:
        """Where a step may be: the `when` of each entry that allows it; none if it may anywhere."""
        rules = [rule for rule in self.rules or () if rule.use == step.transformer.name]
        found = [rule.when for rule in rules if not any(rule.reasons(step))]
        return [] if any(not when.written for when in found) else found


def _each_role(workload: Seen) -> list[SeenPod]:
    """Each pod as each of its roles sees it."""
    return [
        pod.serving(role) if len(pod.roles) > 1 else pod
        for pod in workload.pods()
        for role in pod.roles
    ]


def when_text(when: Selector) -> str:
    """A `when` in a message."""
    return shown(json.dumps(when.written, ensure_ascii=False))
