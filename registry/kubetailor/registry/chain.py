"""A chain: steps in the order of the config, run over one workload."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

from kubetailor.registry.accelerators import Catalogue
from kubetailor.registry.context import PHASES, Phase, TaskContext
from kubetailor.registry.errors import DeferError, Mark, StepError
from kubetailor.registry.explain import Change, changes
from kubetailor.registry.fill import additions
from kubetailor.registry.selection import Selection
from kubetailor.registry.selectors import Selector, View
from kubetailor.registry.transformer import Transformer
from kubetailor.workloads import (
    CannotChangeError,
    JsonMap,
    Kind,
    KubetailorError,
    Note,
    Pod,
    Workload,
    json_patch,
    validate,
)

__all__ = ["LAYERS", "Chain", "Layer", "Result", "Step", "Warned"]

Layer: TypeAlias = Literal["defaults", "steps", "enforce"]
LAYERS: tuple[Layer, ...] = ("defaults", "steps", "enforce")
"""The three lists of a chain, in the order in which they run."""


@dataclass(frozen=True)
class Step:
    """One use of a transformer.

    Attributes:
        name: the name in the config, else the transformer's.
        layer: the list that it is in.
        transformer: what it uses.
        arguments: the keyword arguments, from `with`.
        when: where it applies.
        optional: it may find nothing to change.
        mark: its place in the config, or None.
    """

    name: str
    layer: Layer
    transformer: Transformer
    arguments: Mapping[str, Any]
    when: Selector
    optional: bool = False
    mark: Mark | None = None


class Warned(NamedTuple):
    """A warning: what, of which step, at which field."""

    text: str
    step: str
    field: str

    def __str__(self) -> str:
        place = f" ({self.field})" if self.field and self.field not in self.text else ""
        return f"step {self.step!r}: {self.text}{place}"


@dataclass
class Result:
    """What a run did.

    Attributes:
        before: the object that was given.
        after: the object that came out; `before` itself if nothing changed.
        warnings: what steps had to say.
        done: how many steps of the chain have run, counted from its start.
        deferred: the names of the steps that wait for `until`.
        until: the phase that they wait for, or None.
        unknown: the field that could not be known, or None.
        undecided: how many conditions could not be decided even in the last phase.
    """

    before: JsonMap
    after: JsonMap
    warnings: list[Warned] = field(default_factory=list)
    done: int = 0
    deferred: tuple[str, ...] = ()
    until: Phase | None = None
    unknown: str | None = None
    undecided: int = 0
    _roots: list[tuple[Step, JsonMap]] = field(default_factory=list)

    @property
    def changed(self) -> bool:
        """Whether the object came out different."""
        return self.after is not self.before and bool(self.patch())

    def patch(self) -> list[JsonMap]:
        """The RFC 6902 patch from `before` to `after`."""
        return json_patch(self.before, self.after)

    def versions(self) -> Iterator[tuple[JsonMap, Step, JsonMap]]:
        """(before, step, after) of each step that changed something."""
        before = self.before
        for step, after in self._roots:
            yield before, step, after
            before = after

    def changes(self) -> list[Change]:
        """Every changed field, and who changed it."""
        return list(changes(self))


ValidateCall: TypeAlias = tuple[str, Callable[..., Any], tuple[str, ...]]


@dataclass(frozen=True)
class Chain:
    """Steps over the three layers, flat, so that resuming is a slice.

    Attributes:
        name: the name in the config.
        steps: in the order in which they run.
        strict: warnings of steps are errors.
        phases: the phases that are installed here.
        catalogue: the accelerators.
        validators: implementations of the hook `validate`.
        digest: what stands for what the chain does, ``sha256:…``.
    """

    name: str
    steps: tuple[Step, ...]
    strict: bool = False
    phases: tuple[Phase, ...] = ("serialize",)
    catalogue: Catalogue = field(default_factory=Catalogue)
    validators: tuple[ValidateCall, ...] = ()
    digest: str = ""

    def run(
        self,
        obj: JsonMap,
        kind: Kind,
        task: TaskContext,
        *,
        start: int = 0,
        is_child: bool = False,
    ) -> Result:
        """Run the chain over an object, which is not changed itself.

        Args:
            obj: the object, JSON data.
            kind: its row in the kinds table.
            task: what is known of the task.
            start: the first step to run; those before it have run in an earlier phase.
            is_child: whether the object's controller is a workload too.

        Returns:
            The object that came out, and what happened on the way.

        Raises:
            StepError: a step failed, or the result is one that Kubernetes would refuse.
        """
        run = _Run(self, Workload(obj, kind, is_child=is_child), task)
        return run.all(start)

    def next_phase(self, phase: Phase) -> Phase | None:
        """The next phase that is installed here, or None."""
        later = PHASES[PHASES.index(phase) + 1 :]
        return next((other for other in later if other in self.phases), None)


class _Run:
    """One run of a chain over one workload."""

    def __init__(self, chain: Chain, workload: Workload, task: TaskContext) -> None:
        self.chain = chain
        self.workload = workload
        self.task = task.about(workload)
        self.result = Result(workload.draft.root, workload.draft.root)
        self.last = task.phase == PHASES[-1]

    def all(self, start: int) -> Result:
        result, workload = self.result, self.workload
        steps = self.chain.steps
        before = workload.draft.root
        for index in range(start, len(steps)):
            step = steps[index]
            try:
                after = self._step(step, before)
            except DeferError as unknown:
                self._defer(index, step, unknown.field)
                break
            if after is not before:
                result._roots.append((step, after))
                before = after
            result.done = index + 1
        else:
            result.done = len(steps)
        result.after = before
        self._check()
        return result

    # one step ----------------------------------------------------------------------------------

    def _step(self, step: Step, before: JsonMap) -> JsonMap:
        """Run a step; returns the version after it."""
        workload = self.workload
        if not step.when.per_pod:
            holds = self._decided(step, step.when.test(View(self.task, workload)))
            if not holds:
                return before
        workload.writer = (step.layer, step.name)
        try:
            if step.transformer.receiver in ("pod", "pod_spec"):
                after = self._each_pod(step, before)
            else:
                after = self._whole(step, before)
        except DeferError:
            workload.reset(before)
            raise
        if step.layer == "defaults" and after is not before:
            kept = additions(before, after, atomic=step.transformer.options.atomic)
            if kept is not after:
                workload.reset(kept)
            after = kept
        if workload.notes:
            self._take_notes(step)
        return after

    def _decided(self, step: Step, holds: bool | None) -> bool:
        if holds is None:
            if not self.last:
                raise DeferError(", ".join(sorted(step.when.fields)))
            self.result.undecided += 1
            return False
        return holds

    def _picked(self, step: Step) -> list[Pod]:
        """The pods that a step is about; all must be known before any is changed."""
        workload, task = self.workload, self.task
        test = step.when.test
        per_pod = step.when.per_pod
        return [
            pod
            for pod in workload.pods()
            if (step.transformer.options.replicas or not pod.is_replica)
            and (not per_pod or self._decided(step, test(View(task, workload, pod))))
        ]

    def _each_pod(self, step: Step, before: JsonMap) -> JsonMap:
        pods = self._picked(step)
        if not pods and step.when.per_pod:
            self._nothing_matched(step)
        arguments = self._arguments(step, ())
        after = before
        for pod in pods:
            try:
                if step.transformer.receiver == "pod":
                    returned = step.transformer.function(pod, **arguments)
                    if returned is not None and returned is not pod:
                        raise TypeError(_returned(returned, "the Pod or None"))
                else:
                    self._pod_spec(step, pod, arguments)
                after = self.workload.commit()
            except Exception as error:
                self._failed(step, error, before if step.transformer.options.atomic else after)
                if step.transformer.options.atomic:
                    return before
        return after

    def _pod_spec(self, step: Step, pod: Pod, arguments: Mapping[str, Any]) -> None:
        from kubetailor.workloads.models import through_model

        def change(model: Any) -> Any:
            returned = step.transformer.function(model, **arguments)
            if returned is not None and type(returned) is not type(model):
                raise TypeError(_returned(returned, "a V1PodSpec or None"))
            return returned

        pod.replace(through_model(pod.peek(), change))

    def _whole(self, step: Step, before: JsonMap) -> JsonMap:
        workload = self.workload
        needs_pods = step.when.per_pod or Selection in step.transformer.injected.values()
        pods = tuple(self._picked(step)) if needs_pods else ()
        if step.when.per_pod and not pods:
            self._nothing_matched(step)
            return before
        arguments = self._arguments(step, pods)
        try:
            if step.transformer.receiver == "workload":
                returned = step.transformer.function(workload, **arguments)
                if returned is not None and returned is not workload:
                    raise TypeError(_returned(returned, "the Workload or None"))
            else:
                given = workload.get()
                returned = step.transformer.function(given, **arguments)
                if returned is not None and not isinstance(returned, dict):
                    raise TypeError(_returned(returned, "a dict or None"))
                workload.replace(given if returned is None else returned)
            return workload.commit()
        except Exception as error:
            self._failed(step, error, before)
            return before

    def _arguments(self, step: Step, pods: tuple[Pod, ...]) -> Mapping[str, Any]:
        if not step.transformer.injected:
            return step.arguments
        given: dict[type, Any] = {
            TaskContext: self.task,
            Catalogue: self.chain.catalogue,
            Selection: Selection(pods, "role" in step.when.fields),
        }
        injected = {name: given[kind] for name, kind in step.transformer.injected.items()}
        return {**step.arguments, **injected}

    # what can go wrong -------------------------------------------------------------------------

    def _failed(self, step: Step, error: Exception, back_to: JsonMap) -> None:
        """Take a failed step back: a warning where a platform writes for every kind, else an error."""
        self.workload.reset(back_to)
        if isinstance(error, DeferError):
            if not self.last:
                raise error
            self.result.undecided += 1
            return
        lenient = step.layer != "enforce" and not self.chain.strict
        if isinstance(error, CannotChangeError) and (step.optional or lenient):
            if not step.optional:
                self.workload.notes.append(Note(str(error), error.field))
            return
        raise self._error(step, error) from error

    def _error(self, step: Step, error: Exception) -> StepError:
        if isinstance(error, KubetailorError):
            message, where = str(error), error.field
        else:
            message, where = f"{type(error).__name__}: {error}", ""
            message += f" ({_raised_at(error, step)})"
        return StepError(
            message,
            step=step.name,
            plugin=step.transformer.plugin,
            obj=f"{self.workload.kind_name} {self.workload.name}".strip(),
            mark=step.mark,
            field=where,
        )

    def _nothing_matched(self, step: Step) -> None:
        """A role that is not there: in `enforce` and under `strict` that is an error."""
        if "role" not in step.when.fields or step.optional:
            return
        roles = sorted({role for pod in self.workload.pods() for role in pod.roles})
        if step.layer == "enforce" or self.chain.strict:
            if self._role_missing(step):
                error = CannotChangeError(
                    f"no pod has the role that `when` names; roles present: {', '.join(roles)}"
                )
                raise self._error(step, error)
        elif self._role_missing(step):
            self.workload.warn(
                f"no pod has the role that `when` names; roles present: {', '.join(roles)}"
            )

    def _role_missing(self, step: Step) -> bool:
        """Whether it is the role that did not match, and not another condition beside it."""
        written = step.when.written
        return isinstance(written, Mapping) and set(written) == {"role"}

    def _take_notes(self, step: Step) -> None:
        notes, self.workload.notes = self.workload.notes, []
        for note in notes:
            if self.chain.strict and not step.optional:
                raise self._error(step, KubetailorError(note.text, field=note.field))
            self.result.warnings.append(Warned(note.text, step.name, note.field))

    def _defer(self, index: int, step: Step, unknown: str) -> None:
        result, chain = self.result, self.chain
        until = chain.next_phase(self.task.phase)
        if until is None:
            raise self._error(
                step,
                KubetailorError(
                    f"it needs {unknown}, which the phase {self.task.phase!r} cannot know, and no "
                    "later phase is installed; give it with KUBETAILOR_TASK or --task, or list "
                    "the later phase under `phases`"
                ),
            )
        result.deferred = tuple(later.name for later in chain.steps[index:])
        result.until = until
        result.unknown = unknown

    # the result --------------------------------------------------------------------------------

    def _check(self) -> None:
        """What Kubernetes or a team's `validate` would refuse fails, with the step that did it."""
        result = self.result
        if result.after is result.before:
            return
        try:
            validate(result.before, result.after)
        except KubetailorError as error:
            raise self._error(self._culprit(error), error) from None
        for plugin, function, names in self.chain.validators:
            given = {"workload": self.workload}
            faults: Iterable[str] = function(**{n: given[n] for n in names}) or ()
            for fault in faults:
                last = result._roots[-1][0]
                raise self._error(last, KubetailorError(f"{fault} (validate of plugin {plugin})"))

    def _culprit(self, error: KubetailorError) -> Step:
        """The first step after which the fault is there."""
        for _, step, after in self.result.versions():
            try:
                validate(self.result.before, after)
            except KubetailorError as found:
                if str(found) == str(error):
                    return step
        return self.result._roots[-1][0]


def _returned(value: Any, allowed: str) -> str:
    return f"it returned {type(value).__name__}; a transformer returns {allowed}"


def _raised_at(error: Exception, step: Step) -> str:
    """The deepest line of the transformer's own file, else where it is defined."""
    source = step.transformer.source
    file = source.rpartition(":")[0]
    traceback, place = error.__traceback__, source
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == file:
            place = f"{file}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return place
