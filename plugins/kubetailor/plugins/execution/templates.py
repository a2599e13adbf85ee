"""The versions of one task template in an execution: one for all nodes that agree on it."""

from __future__ import annotations

import itertools
import json

from kubetailor.plugins.flyte.undo import TASK_PLACE
from kubetailor.workloads import Draft, JsonMap, same

__all__ = ["Templates", "free_key"]


class Templates:
    """The task templates of an execution, and the keys of their versions.

    The engine takes any text for a key, and reads the id of a task from the template.
    """

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        found = draft.root.get("tasks")
        self._there: JsonMap = found if isinstance(found, dict) else {}
        self._keys: dict[str, dict[str, str]] = {}  # key -> what a version says -> its own key

    def get(self, key: str) -> JsonMap | None:
        """The template of a key as it came in, or None."""
        found = self._there.get(key)
        return found if isinstance(found, dict) and isinstance(found.get("type"), str) else None

    def own_key(self, key: str, template: JsonMap) -> tuple[str, JsonMap]:
        """The key of a version of a template, and the version as it is written there.

        Args:
            key: the key of the template.
            template: the version.
        """
        before = self._there[key]
        after = before if _alike(before, template) else template
        keys = self._keys.setdefault(key, {})
        said = _said(after)
        own = keys.get(said)
        if own is None:
            own = keys[said] = free_key(key, len(keys), self._there)
            if after is not before or own != key:
                self._draft.put(("tasks", own), after)
        return own, after


def free_key(key: str, number: int, there: JsonMap) -> str:
    """A key for another version of what is under a key; the first keeps its own.

    Args:
        key: the key.
        number: how many versions there are already.
        there: what came in under which key.
    """
    if not number:
        return key
    names = (f"{key} copy:{count}" for count in itertools.count(number))
    return next(name for name in names if name not in there)


def _alike(one: JsonMap, other: JsonMap) -> bool:
    """Whether two versions of a template are the same but for the way back, which none needs now.

    Where a chain goes on it is still there; where one began anew it is not.
    """
    return same(one, other) or same(_without_way_back(one), _without_way_back(other))


def _said(template: JsonMap) -> str:
    """What a version of a template says but for the way back, as a text."""
    return json.dumps(_without_way_back(template), sort_keys=True, separators=(",", ":"))


def _without_way_back(template: JsonMap) -> JsonMap:
    draft = Draft(template)
    draft.drop(TASK_PLACE)
    if draft.get(TASK_PLACE[:1]) == {}:
        draft.drop(TASK_PLACE[:1])
    return draft.root
