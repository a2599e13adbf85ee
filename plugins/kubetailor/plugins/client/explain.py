"""``kubetailor explain TYPE/NAME``: why an object of the cluster is as it is."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import redirect_stdout

import click

from kubetailor.plugins.cli.changes import near, print_changes
from kubetailor.plugins.cli.output import note, print_json, print_table, shortened
from kubetailor.plugins.client.cluster import Cluster
from kubetailor.plugins.client.cluster_object import explained
from kubetailor.plugins.client.explanation import Basis, Explanation
from kubetailor.plugins.client.owners import Lineage
from kubetailor.registry.tailor import Tailor
from kubetailor.workloads import JsonMap, KubetailorError, dump_yaml

__all__ = ["explain_object", "print_explanation", "registered"]


def explain_object(
    target: str, tailor: Tailor, *, namespace: str | None, context: str | None, output: str
) -> None:
    """Explain an object of the cluster.

    Args:
        target: ``TYPE/NAME``.
        tailor: the config.
        namespace: its namespace; None for that of the context.
        context: the context of the kubeconfig; None for the current one.
        output: ``table`` or ``json``.

    Raises:
        KubetailorError: it cannot be read, or no chain runs over it.
    """
    with redirect_stdout(sys.stderr):  # what a plugin or flytekit prints
        cluster = Cluster.connect(context)
        lineage = Lineage.climb(cluster.read(target, namespace), cluster.owner)
        found = explained(lineage, tailor, lambda known, it: registered(known, it, tailor))
    if output == "json":
        print_json(found.as_json())
    else:
        print_explanation(found, tailor)


def registered(known: JsonMap, found: Explanation, tailor: Tailor) -> Basis:
    """What FlyteAdmin holds of the task behind an object, and what the chain changes of it.

    Args:
        known: what is known of the task.
        found: takes what there is to say.
        tailor: the config.

    Raises:
        KubetailorError: FlyteAdmin cannot be asked, or has no such node.
    """
    from kubetailor.plugins.client.executions import ExecutionId
    from kubetailor.plugins.client.previewing import preview_of
    from kubetailor.plugins.client.remote import look_up_execution

    place = [known.get(name) for name in ("project", "domain", "execution")]
    if None in place:
        raise KubetailorError("it does not say which project and domain its execution is in")
    id_ = ExecutionId(*map(str, place))
    execution = look_up_execution(id_)
    shown = preview_of(execution, tailor)
    found.notes += (f"this config refuses the execution: {fault}" for fault in shown.faults)
    nodes, node, task = shown.executions[0].nodes, known.get("node"), known.get("task")
    matching = [one for one in nodes if one.id == node] or [
        one for one in nodes if node is None and one.task == task
    ]
    if len(matching) != 1:
        what = f"node {node}" if node else f"one node of task {task}"
        raise KubetailorError(
            f"FlyteAdmin has not {what} in what {id_} runs: a dynamic task made it, or several "
            "nodes run the task"
        )
    (one,) = matching
    if one.deferred:
        found.notes.append(one.deferred)
    return Basis(f"what {execution.launched} says of node {one.id}", one.changes)


# for people --------------------------------------------------------------------------------------


def print_explanation(found: Explanation, tailor: Tailor) -> None:
    """Print it."""
    width = max(len(name) for name, _ in _facts(found, tailor))
    for name, text in _facts(found, tailor):
        click.echo(f"{name:{width}}   {text}")
    for text in found.notes:
        note(text)
    if found.override is not None:
        click.echo()
        click.echo(dump_yaml([{"override": found.override.document()}]), nl=False)
    if found.basis is not None:
        click.echo()
        changed = "Changed" if found.same_digest else "Would change"
        print_changes(f"{changed} of {found.basis.text}", found.basis.changes)
    if found.steps:
        click.echo()
        rows = [
            (
                f"{one.step.name} ({one.step.layer})",
                {True: "applies", False: "does not apply", None: "unknown"}[one.applies],
                ", ".join(f"{each.field} → {shortened(each.new)}" for each in one.changes)
                or "nothing",
                one.step.transformer.plugin,
                near(str(one.step.mark or "")),
            )
            for one in found.steps
        ]
        columns = ("STEP", "WHEN", "WOULD STILL CHANGE", "PLUGIN", "PLACE")
        print_table(columns, rows, title="The steps of the chain, and the object as it is")


def _facts(found: Explanation, tailor: Tailor) -> Iterator[tuple[str, str]]:
    for name, obj in (("object", found.lineage.obj), ("cut as", found.cut)):
        if name == "object" or obj is not found.lineage.obj:
            metadata = obj["metadata"]
            where = f" in {metadata['namespace']}" if "namespace" in metadata else ""
            yield name, f"{obj['kind']} {metadata['name']}{where}"
    if found.is_flyte:
        known = found.known
        yield "execution", "/".join(str(known.get(k)) for k in ("project", "domain", "execution"))
        for name in ("workflow", "node"):
            if known.get(name) is not None:
                yield name, str(known[name])
        version = f", version {known['version']}" if known.get("version") else ""
        yield "task", f"{known.get('task')}{version}"
    yield "applied", _applied(found)
    if found.stamp is not None and found.stamp.override is not None:
        yield "override", found.stamp.override
    yield "config", _config(found, tailor)


def _applied(found: Explanation) -> str:
    stamp = found.stamp
    if stamp is None:
        return "nothing: it has no stamp, so no chain changed it"
    steps = "1 step" if stamp.done == 1 else f"{stamp.done} steps"
    later = f", then {', '.join(found.deferred)} deferred" if found.deferred else ""
    return f"chain {stamp.chain}, {stamp.digest}, {steps}{later}"


def _config(found: Explanation, tailor: Tailor) -> str:
    file, chain = near(str(tailor.config.file)), found.chain
    if chain is None:
        return f"{file} selects no chain for it"
    said = {
        True: "the same digest",
        False: f"another digest, {chain.digest}: what is below is what it would do now",
        None: chain.digest,
    }
    return f"{file}, chain {chain.name}, {said[found.same_digest]}"
