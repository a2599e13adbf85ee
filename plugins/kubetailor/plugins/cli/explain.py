"""``kubetailor explain``: every changed field, and who changed it."""

from __future__ import annotations

import os
import sys
from contextlib import redirect_stdout
from typing import Any

import click

from kubetailor.plugins.cli.changes import print_changes
from kubetailor.plugins.cli.output import note, print_json
from kubetailor.plugins.cli.tailoring import Asked, Outcome, over_manifests

__all__ = ["explain"]


@click.command()
@click.argument("target", required=False, metavar="[TYPE/NAME]")
@click.option("-n", "--namespace", metavar="NAME", help="The namespace of TYPE/NAME.")
@click.option("--context", metavar="NAME", help="The context of the kubeconfig, for TYPE/NAME.")
@over_manifests("table", "json", default="table", required=False)
def explain(
    target: str | None, namespace: str | None, context: str | None, asked: Asked, output: str
) -> None:
    """Say who changes which field.

    For every field that the chain changes: its old and new value, the step, its plugin, and where
    the step is written.

    TYPE/NAME is an object of the cluster, named as for kubectl: pod/train, or
    pytorchjobs.kubeflow.org/train. Said of it are the task of Flyte's behind it, the chain that ran
    over it or over what it was made for, and the override of its execution; then what the chain of
    the config here changes: of what FlyteAdmin holds of its task, or of what kubectl applied. Where
    neither can be had, each step is said to apply or not, and what it would still change.

    The table shortens long values; `-o json` has them whole.
    """
    if target is not None:
        _explain_object(target, namespace, context, asked, output)
        return
    if not asked.filename:
        raise click.UsageError("nothing to explain: give -f FILE, or TYPE/NAME of a cluster's")
    if namespace or context:
        raise click.UsageError("--namespace and --context are for TYPE/NAME")
    outcomes = asked.outcomes()
    if output == "json":
        print_json([row for outcome in outcomes for row in _rows(outcome)])
        return
    for index, outcome in enumerate(outcomes):
        if index:
            click.echo()
        title = f"{outcome.title} ({outcome.document.where}), {outcome.chain_text}"
        print_changes(title, outcome.result.changes())


def _explain_object(
    target: str, namespace: str | None, context: str | None, asked: Asked, output: str
) -> None:
    from kubetailor.plugins.client.explain import explain_object
    from kubetailor.registry.tailor import Tailor

    if os.path.isfile(target):
        raise click.UsageError(
            f"{target} is a file: `explain -f` takes manifests, `flyte show` a module of tasks"
        )
    if asked.filename or asked.recursive or asked.phase or asked.override:
        raise click.UsageError("-f, -R, --phase, --override, --set and --on are not for TYPE/NAME")
    with redirect_stdout(sys.stderr):
        tailor = Tailor.find(asked.config, chain=asked.chain, fields=asked.task)
    if tailor is None:
        note("no config here: give the cluster's with --config or KUBETAILOR_CONFIG")
        tailor = Tailor.built_in()
    explain_object(target, tailor, namespace=namespace, context=context, output=output)


def _rows(outcome: Outcome) -> list[dict[str, Any]]:
    document = outcome.document
    found = {"object": outcome.title, "source": document.source, "line": document.line}
    return [{**found, **change.as_json()} for change in outcome.result.changes()]
