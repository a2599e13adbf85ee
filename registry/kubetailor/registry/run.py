"""One run of a chain over one workload."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from kubetailor.registry.accelerators import Catalogue
from kubetailor.registry.context import GIVEN_FIELDS, PHASES, TaskContext
from kubetailor.registry.errors import DeferError, StepError
from kubetailor.registry.fill import additions
from kubetailor.registry.hookspecs import PROJECT
from kubetailor.registry.result import Result, Warned
from kubetailor.registry.selection import Selection
from kubetailor.registry.selectors import POD_FIELDS, View
from kubetailor.registry.step import LAYERS, Layer, Step, copied
from kubetailor.registry.validated import culprit, refusal
from kubetailor.workloads import (
    CannotChangeError,
    ConflictError,
    JsonMap,
    KubetailorError,
    Note,
    Pod,
    Workload,
    check_json,
    validate,
)
from kubetailor.workloads.validation.authored import unread_fields

if TYPE_CHECKING:
    from kubetailor.registry.chain import Chain

__all__ = ["Run"]


class Run:
    """One run of a chain over one workload."""

    def __init__(self, chain: Chain, workload: Workload, task: TaskContext) -> None:
        self.chain: Chain = chain
        self.workload: Workload = workload
        self.task: TaskContext = task.about(workload)
        self.view: View = View(self.task, workload)
        root = workload.draft.root
        self.result: Result = Result(root, root)
        self.last: bool = task.phase == PHASES[-1]

    def all(self, start: int, layers: tuple[Layer, ...]) -> Result:
        """Run every step from `start` on that is in one of the layers; `enforce` always."""
        result = self.result
        before = result.before
        for index, step in enumerate(self.chain.steps):
            if step.layer != "enforce" and (index < start or step.layer not in layers):
                continue
            try:
                after = self._step(index, step, before)
            except DeferError as unknown:
                self._defer(index, step, unknown.field)
                break
            if after is not before:
                result.roots.append((step, after))
                before = after
        else:
            result.done = len(self.chain.steps)
        result.after = before
        self._check(went_on=start > 0 or layers != LAYERS)
        self.workload.release()
        return result

    # one step ----------------------------------------------------------------------------------

    def _step(self, index: int, step: Step, before: JsonMap) -> JsonMap:
        """Run a step; returns the version after it."""
        workload = self.workload
        if step.transformer.options.task_templates and not workload.is_task_template:
            self.result.inapplicable += step.when.of_workload(self.task, workload) is not False
            return before
        if not step.when.per_pod:
            holds = step.when.test(self.view)
            if not holds and not self._decided(step, holds):
                return before
        # Of defaults the first wins, and no later one is told that it did.
        is_default = step.layer == "defaults"
        workload.writer = (step.layer, "", 0) if is_default else (step.layer, step.name, index)
        try:
            if step.transformer.receiver in ("pod", "pod_spec"):
                after = self._each_pod(step, before)
            else:
                after = self._whole(step, before)
        except DeferError:
            workload.reset(before)
            raise
        if is_default and after is not before:
            atomic = step.transformer.options.atomic
            kept = additions(before, after, atomic=atomic, admitted=self.last)
            if kept is not after:
                workload.reset(kept)
            after = kept
        if workload.notes:
            self._take_notes(step)
        return after

    def _decided(self, step: Step, holds: bool | None) -> bool:
        if holds is None:
            if not self.last:
                raise DeferError(step.when.unknown_to(self.task))
            self.result.undecided += 1
            return False
        return holds

    def _picked(self, step: Step) -> list[int]:
        """Which pods a step is about; all must be known before any is changed."""
        replicas = step.transformer.options.replicas
        pods = self.workload.pods()
        places = [index for index, pod in enumerate(pods) if replicas or not pod.is_replica]
        if not step.when.per_pod:
            return places
        laid = [pod for pod in pods if pod.base is not None]
        return [index for index in places if self._picks(step, pods[index], laid)]

    def _picks(self, step: Step, pod: Pod, laid: list[Pod]) -> bool:
        concerns = self._concerns(step, pod, [other for other in laid if other.base is pod])
        if concerns is None and (len(pod.roles) > 1 or step.when.fields <= {*POD_FIELDS}):
            raise DeferError("role")
        return self._decided(step, concerns)

    def _holds(self, step: Step) -> bool:
        return self._decided(step, step.when.of_workload(self.task, self.workload))

    def _concerns(self, step: Step, pod: Pod, laid: list[Pod]) -> bool | None:
        """Whether a step is about a pod; None if about some of the roles alone that it serves.

        What is written to a task's own pod reaches those that are laid over it too.
        """
        test, task, workload = step.when.test, self.task, self.workload
        if not laid and len(pod.roles) == 1:
            return test(View(task, workload, pod))

        def holds(pod: Pod) -> bool | None:
            return test(View(task, workload, pod))

        answers = {other.role: holds(other) for other in laid}
        written = {  # these roles can be told apart: they have a place of their own
            other.role
            for other in laid
            if step.transformer.options.replicas or not other.is_replica
        }
        own = {role: holds(pod.serving(role)) for role in pod.roles if role not in answers}
        if not any(own.values()) and not any(answers[role] for role in answers.keys() - written):
            return None if None in own.values() else False
        everywhere = all(own.values()) and all(answers.values())
        return True if everywhere else None

    def _each_pod(self, step: Step, before: JsonMap) -> JsonMap:
        pods = self._picked(step)
        if not pods and step.when.per_pod:
            self._nothing_matched(step)
            return before
        arguments = self._arguments(step, ())
        after = before
        for index in pods:
            views = self.workload.pods()  # anew: a step that fails is taken back
            pod = views[index]
            try:
                if step.transformer.receiver == "pod":
                    returned = step.transformer.function(pod, **arguments)
                    if returned is not None and returned is not pod:
                        raise TypeError(_returned(returned, "the Pod or None"))
                else:
                    self._pod_spec(step, pod, arguments)
                after = self._committed(step, after)
            except (Exception, SystemExit) as error:
                back_to = before if step.transformer.options.atomic else after
                self._failed(step, error, back_to, views)
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
        picks = Selection in step.transformer.injected.values()
        picked = self._picked(step) if picks else ()
        pods = tuple(workload.pods()[index] for index in picked)
        if step.when.per_pod and not (pods if picks else self._holds(step)):
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
                result = given if returned is None else returned
                check_json(None, result)  # before it is compared, which what holds itself is not
                workload.replace(result)
            return self._committed(step, before)
        except (Exception, SystemExit) as error:
            self._failed(step, error, before)
            return before

    def _committed(self, step: Step, before: JsonMap) -> JsonMap:
        """The version that a function leaves; a team's may have put anything in it."""
        after = self.workload.commit()
        if after is not before and step.transformer.plugin != PROJECT:
            check_json(before, after)
        return after

    def _arguments(self, step: Step, pods: tuple[Pod, ...]) -> Mapping[str, Any]:
        """What the transformer is given; a team's gets copies, so that no two tasks share any."""
        arguments = step.arguments
        if step.transformer.plugin != PROJECT:
            arguments = copied(dict(arguments))
        if not step.transformer.injected:
            return arguments
        given: dict[type, Any] = {
            TaskContext: self.task,
            Catalogue: self.chain.catalogue,
            Selection: Selection(pods, "role" in step.when.fields),
        }
        injected = {name: given[kind] for name, kind in step.transformer.injected.items()}
        return {**arguments, **injected}

    # what can go wrong -------------------------------------------------------------------------

    def _failed(
        self,
        step: Step,
        error: BaseException,
        back_to: JsonMap,
        views: tuple[Pod, ...] | None = None,
    ) -> None:
        """Take a failed step back: a warning in `defaults` and `steps`, else an error."""
        if isinstance(error, MemoryError):
            traceback.clear_frames(error.__traceback__)  # or there is none left to say so
        self.workload.reset(back_to, views)
        if isinstance(error, DeferError):
            if not self.last:
                raise error
            self.result.undecided += 1
            return
        lenient = step.layer in ("defaults", "steps") and not self.chain.strict
        if step.layer == "defaults" and isinstance(error, ConflictError):
            return  # the author has set it
        if isinstance(error, CannotChangeError) and (step.optional or lenient):
            if not step.optional:
                self.workload.notes.append(Note(str(error), error.field))
            return
        raise self._error(step, error) from error

    def _error(self, step: Step, error: BaseException) -> StepError:
        if isinstance(error, KubetailorError):
            message, where = str(error), error.field
        else:
            message, where = f"{type(error).__name__}: {error}", ""
            message += f" ({_raised_at(error, step)})"
        return StepError(
            message,
            step=step.name,
            plugin=step.transformer.plugin,
            obj=self.workload.title,
            mark=step.mark,
            field=where,
        )

    def _nothing_matched(self, step: Step) -> None:
        """A role that is not there: in `enforce` and under `strict` that is an error.

        Whether a step of an override is for any task is judged over the whole execution.
        """
        if step.optional or step.layer == "override" or not self._role_missing(step):
            return
        roles = sorted({role for pod in self.workload.pods() for role in pod.roles})
        text = f"no pod has the role that `when` names; roles present: {', '.join(roles) or 'none'}"
        if step.layer == "enforce" or self.chain.strict:
            raise self._error(step, CannotChangeError(text))
        self.workload.warn(text)

    def _role_missing(self, step: Step) -> bool:
        """Whether it is the role that did not match, and not another condition beside it."""
        return "role" in step.when.fields and any(
            step.when.test(View(self.task, self.workload, pod, any_role=True))
            for pod in self.workload.pods()
        )

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
                    f"later phase is installed; {_way_out(unknown)}"
                ),
            )
        result.done = index
        result.deferred = tuple(later.name for later in chain.steps[index:])
        result.until = until
        result.unknown = unknown
        if until == PHASES[-1] and self.workload.is_task_template:
            self._say_lost(chain.steps[index:], unknown)

    def _say_lost(self, steps: Iterable[Step], unknown: str) -> None:
        """What is about task templates alone is lost where it waits for the last phase."""
        for step in steps:
            if step.optional or not step.transformer.options.task_templates:
                continue
            if step.when.of_workload(self.task, self.workload) is False:
                continue
            text = (
                f"it is about task templates, of which the phase {PHASES[-1]} sees none, and would "
                f"wait for that, as {unknown} is not known yet; {_sooner(self.task.phase, unknown)}"
            )
            if step.layer not in ("defaults", "steps") or self.chain.strict:
                raise self._error(step, CannotChangeError(text))
            self.result.warnings.append(Warned(text, step.name, ""))

    # the result --------------------------------------------------------------------------------

    def _check(self, *, went_on: bool) -> None:
        """What Kubernetes or a team's `validate` would refuse fails, with the step that did it.

        Where a run goes on, an earlier one is said to have changed the object, and to have checked
        what it made; but anybody can say so, and a team's `validate` is asked again.
        """
        result = self.result
        if result.after is not result.before:
            try:
                validate(result.before, result.after)
            except KubetailorError as error:
                raise self._error(self._culprit(error), error) from None
            for text, field in unread_fields(result.after, self.workload.kind):
                result.warnings.append(Warned(text, "", field))
        elif not went_on:
            return
        for call in self.chain.validators:
            refused = refusal(call, self.workload)
            if refused is None:
                continue
            if not result.roots:
                raise refused
            step = culprit(call, refused, result, self.workload)
            raise self._error(step, refused) from refused.__cause__

    def _culprit(self, error: KubetailorError) -> Step:
        """The first step after which the fault is there."""
        for _, step, after in self.result.versions():
            try:
                validate(self.result.before, after)
            except KubetailorError as found:
                if str(found) == str(error):
                    return step
        return self.result.roots[-1][0]


def _way_out(unknown: str) -> str:
    """What to do where a phase cannot know a field and none comes later."""
    given = set(unknown.split(", ")) & set(GIVEN_FIELDS)
    if given:
        names = ",".join(f"{name}=…" for name in sorted(given))
        return f"give it with KUBETAILOR_TASK={names} or --task, or list a later phase in `phases`"
    if unknown == "role":
        return (
            "the roles of this task share one pod spec until Flyte makes its objects: write a "
            "`when` that holds for all or none of them, or list a later phase in `phases`"
        )
    return "list a later phase in `phases`"


def _sooner(phase: str, unknown: str) -> str:
    """What to do for a step that is lost where it waits for the last phase."""
    if "launch_plan" in unknown.split(", "):
        return (
            "no phase of the cluster knows launch_plan: take it out of the `when` that reads it, "
            "or write this step before that one"
        )
    listed = "list `launch` in `phases`, or " if phase == PHASES[0] else ""
    return f"{listed}write it before the steps that wait"


def _returned(value: Any, allowed: str) -> str:
    return f"it returned {type(value).__name__}; a transformer returns {allowed}"


def _raised_at(error: BaseException, step: Step) -> str:
    """The deepest line of the transformer's own file, else where it is defined."""
    source = step.transformer.source
    file = source.rpartition(":")[0]
    traceback, place = error.__traceback__, source
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == file:
            place = f"{file}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return place
