"""What the cluster will do with an execution, as data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kubetailor.plugins.cli.output import note, warn
from kubetailor.plugins.client.registered import Registered
from kubetailor.plugins.execution.node_overrides import at_node
from kubetailor.plugins.execution.tailored_node import TailoredNode
from kubetailor.plugins.flyte.undo import undo
from kubetailor.registry import Chain, Change, OverrideError
from kubetailor.registry.overrides.compiled import CompiledOverride
from kubetailor.workloads import JsonMap

__all__ = ["ExecutionPreview", "NodePreview", "Preview"]


@dataclass(frozen=True)
class NodePreview:
    """A node that runs a task, before and after.

    Attributes:
        id: its nested id, such as ``n1.n0``.
        title: what messages call it: its id, behind those of the nodes that launch its execution.
        task: the name of its task.
        task_type: Flyte's type of it.
        version: the version that it is registered as.
        registered: the task template as it is registered, in JSON form, with what the node
            states otherwise laid over it.
        author: the same as its author wrote it: what the chain of `serialize` did is undone.
        final: what FlytePropeller will run.
        spec: the node as FlyteAdmin compiles it: retries, timeouts and what `with_overrides` says.
        final_spec: the same as it will be.
        chain: the chain, with the override; None if none is selected.
        changes: what each step changes of what the author wrote, in order.
        deferred: what waits for which phase, and why; None if nothing does.
        warnings: what there is to say of it.
    """

    id: str
    title: str
    task: str
    task_type: str
    version: str
    registered: JsonMap
    author: JsonMap
    final: JsonMap
    spec: JsonMap
    final_spec: JsonMap
    chain: Chain | None
    changes: tuple[Change, ...]
    deferred: str | None
    warnings: tuple[str, ...]

    @classmethod
    def of(cls, tailored: TailoredNode, path: tuple[str, ...]) -> NodePreview:
        """A node, after the chain ran over its task there.

        Args:
            tailored: the node.
            path: the nested ids of the nodes that lead to its execution.
        """
        node, pair, template = tailored.node, tailored.pair, tailored.template
        spec = tailored.spec
        id_: JsonMap = template.get("id", {})
        author, _ = undo(template)
        return cls(
            id=tailored.id,
            title="/".join((*path, tailored.id)),
            task=id_.get("name", ""),
            task_type=template.get("type", ""),
            version=id_.get("version", ""),
            registered=at_node(template, node.spec),
            author=at_node(author, node.spec),
            final=at_node(pair.template, spec),
            spec=node.spec,
            final_spec=spec,
            chain=pair.chain,
            changes=() if pair.result is None else tuple(pair.result.changes()),
            deferred=tailored.deferred,
            warnings=tailored.warnings,
        )


@dataclass(frozen=True)
class ExecutionPreview:
    """One execution: the one asked for, or one that a node of another launches.

    Attributes:
        registered: what it is an execution of.
        path: the nested ids of the nodes that lead to it; empty for the one asked for.
        nodes: its nodes that run tasks.
        before: the FlyteWorkflow as FlyteAdmin will create it.
        after: the same as the webhook will make it.
    """

    registered: Registered
    path: tuple[str, ...]
    nodes: tuple[NodePreview, ...]
    before: JsonMap
    after: JsonMap


@dataclass(frozen=True)
class Preview:
    """What will happen.

    Attributes:
        executions: the one asked for, then those that its nodes launch, each launch plan once.
        override: the override, or None.
        faults: why it would be refused; none if it would not.
        warnings: what the cluster would warn of.
        notices: what will not happen, though it is asked for, and what to do.
    """

    executions: tuple[ExecutionPreview, ...]
    override: CompiledOverride | None
    faults: tuple[str, ...]
    warnings: tuple[str, ...]
    notices: tuple[str, ...]

    @property
    def nodes(self) -> Iterator[NodePreview]:
        """The nodes of all executions."""
        return (node for execution in self.executions for node in execution.nodes)

    def say(self) -> None:
        """Say on stderr what the cluster would warn of, and what will not happen."""
        for text in self.warnings:
            warn(text)
        for text in self.notices:
            note(text)

    def check(self) -> None:
        """Refuse what the cluster would refuse.

        Raises:
            OverrideError: with all faults.
        """
        if self.faults:
            raise OverrideError("\n".join(self.faults))
