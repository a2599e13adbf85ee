"""Overrides for Python: flytekit's options of an execution, and launch plans that carry one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kubetailor.registry.overrides.document import OVERRIDE, Override

if TYPE_CHECKING:
    from flytekit import LaunchPlan
    from flytekit.core.options import Options
    from flytekit.remote import FlyteRemote

__all__ = ["Overrides"]


class Overrides(Override):
    """An override that flytekit can launch with; each method of the builder gives a new one.

    It reads as the document does::

        h100 = Overrides().step("gpu", type="nvidia-h100-80gb").on(task="*.train")
        remote.execute(entity, inputs={"x": 1}, options=h100.options(remote, entity))
        nightly = h100.launch_plan(workflow, "nightly-h100", schedule=CronSchedule("0 2 * * *"))
    """

    def options(
        self,
        remote: FlyteRemote,
        entity: Any,
        options: Options | None = None,
        *,
        inputs: Mapping[str, Any] | None = None,
        overwrite_cache: bool = False,
    ) -> Options:
        """Options for `FlyteRemote.execute`: those given, with this override.

        The annotations of the launch plan stay; where they hold an override, its steps come first.
        What the cluster would refuse is refused here, and what will not happen is said on stderr.
        What is not fetched from FlyteAdmin is judged as registering it would make it.

        Args:
            remote: where it is launched.
            entity: what is launched, as `FlyteRemote.execute` takes it.
            options: other options.
            inputs: the inputs, where a `when` reads them.
            overwrite_cache: as it is given to `FlyteRemote.execute`.

        Raises:
            OverrideError: a step may not be, is for no task, or changes nothing.
        """
        from kubetailor.plugins.client.launching import prepare
        from kubetailor.plugins.client.request import Request
        from kubetailor.plugins.flyte.launch_options import LaunchOptions

        if not self.steps:
            return LaunchOptions.of(options, None)
        request = Request(
            annotations=_values(options, "annotations"),
            labels=_values(options, "labels"),
            inputs=inputs,
            overwrite_cache=overwrite_cache,
        )
        launch = prepare(remote, entity, self, request)
        launch.say()
        return LaunchOptions.of(options, launch.annotations)

    def launch_plan(self, workflow: Any, name: str, **given: Any) -> LaunchPlan:
        """A launch plan whose every run has this override; an execution's own comes on top.

        Args:
            workflow: the workflow.
            name: the name of the launch plan.
            given: all else that `LaunchPlan.get_or_create` takes.
        """
        from flytekit import LaunchPlan
        from flytekit.models.common import Annotations

        own = given.pop("annotations", None)
        annotations = {**(own.values if own else {}), OVERRIDE: self.annotation()}
        found: LaunchPlan = LaunchPlan.get_or_create(
            workflow, name, annotations=Annotations(annotations), **given
        )
        return found


def _values(options: Options | None, field: str) -> Mapping[str, str] | None:
    found = getattr(options, field, None)
    return None if found is None else found.values
