"""A chain over the objects of files: all of them, or none if any is at fault."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kubetailor.plugins.cli.manifests import filename_options, read_manifests
from kubetailor.plugins.cli.options import (
    chain_option,
    config_option,
    output_option,
    phase_option,
    required_tailor,
    task_option,
)
from kubetailor.plugins.cli.output import fail, faults_of, print_notes, print_warnings
from kubetailor.plugins.cli.overriding import GivenOverride, override_options
from kubetailor.registry import Chain, Phase, Result
from kubetailor.registry.context import known_of_template
from kubetailor.workloads import Document, Kind, KubetailorError, Workload
from kubetailor.workloads.task_template import TASK_TEMPLATE

if TYPE_CHECKING:
    from kubetailor.registry.overrides.outcome import OverrideOutcome
    from kubetailor.registry.tailor import Tailor

__all__ = ["Asked", "Outcome", "over_manifests", "tailor_files"]


@dataclass(frozen=True)
class Outcome:
    """One object of a file after its chain.

    Attributes:
        document: the object as it was read.
        title: what messages call it, such as ``PyTorchJob train``.
        phase: the phase that was run.
        chain: the chain, or None if none was selected or none could be yet.
        result: what the run did.
    """

    document: Document
    title: str
    phase: Phase
    chain: Chain | None
    result: Result

    @property
    def chain_text(self) -> str:
        """The chain, for messages."""
        return "no chain" if self.chain is None else f"chain {self.chain.name}"


@dataclass(frozen=True)
class Asked:
    """What a command was asked to run the chain over, and how.

    Attributes:
        filename: files, folders, or ``-``.
        recursive: read folders and all that is in them.
        config: the config, or None.
        chain: the chain to run, or None.
        phase: the phase, or None for each object's own.
        task: what is known of the task.
        override: the override.
    """

    filename: tuple[str, ...]
    recursive: bool
    config: Path | None
    chain: str | None
    phase: Phase | None
    task: dict[str, str]
    override: GivenOverride

    def outcomes(self) -> list[Outcome]:
        """Each object after its chain; see `tailor_files`."""
        # What a plugin prints must not get into what is applied.
        with redirect_stdout(sys.stderr):
            tailor = required_tailor(self.config, self.chain, self.task)
            return tailor_files(tailor, self.filename, self.recursive, self.phase, self.override)


def over_manifests(
    *formats: str, default: str | None, required: bool = True
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The options of a command that runs the chain over manifests.

    The command is given `asked: Asked`, and `output`.

    Args:
        formats: what `-o` may be.
        default: what it is if it is not given.
        required: whether there must be a manifest.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @filename_options(required=required)
        @output_option(*formats, default=default)
        @config_option
        @chain_option
        @phase_option
        @task_option
        @override_options
        @functools.wraps(command)
        def run(
            filename: tuple[str, ...],
            recursive: bool,
            config: Path | None,
            chain: str | None,
            phase: Phase | None,
            task: dict[str, str],
            override: GivenOverride,
            **others: Any,
        ) -> None:
            asked = Asked(filename, recursive, config, chain, phase, task, override)
            command(asked=asked, **others)

        return run

    return decorate


def tailor_files(
    tailor: Tailor,
    names: Sequence[str],
    recursive: bool,
    phase: Phase | None,
    given: GivenOverride,
) -> list[Outcome]:
    """Run the chain over every object of the files; warnings and notes go to stderr.

    Args:
        tailor: the config.
        names: files, folders, or ``-``.
        recursive: read folders and all that is in them.
        phase: the phase, or None for each object's own.
        given: the override, if there is one; the objects stand for its execution.

    Raises:
        Fault: with all that is wrong, file by file and object by object.
        OverrideError: a step of the override may not be, or does nothing.
    """
    documents, faults = read_manifests(names, recursive)
    outcomes: list[Outcome] = []
    override = _outcome(tailor, given)
    for document in documents:
        try:
            outcomes.append(_tailor(tailor, document, phase, override))
        except KubetailorError as error:
            faults += [f"{document.where}: {fault}" for fault in faults_of(error)]
    if faults:
        fail(*faults)
    if override is not None:
        override.check()
    results = [(f"{each.document.where}: {each.title}", each.result) for each in outcomes]
    for where, result in results:
        print_warnings(where, result)
    print_notes(results)
    return outcomes


def _outcome(tailor: Tailor, given: GivenOverride) -> OverrideOutcome | None:
    if not given:
        return None
    from kubetailor.registry.overrides.outcome import OverrideOutcome

    written = given.read(tailor.config.plugins)
    return OverrideOutcome(tailor.config.overrides.compile(written))


def _tailor(
    tailor: Tailor, document: Document, phase: Phase | None, outcome: OverrideOutcome | None
) -> Outcome:
    obj = document.obj
    kind = tailor.kind_of(obj)
    is_task = kind == TASK_TEMPLATE
    chosen: Phase = phase or ("serialize" if is_task else "admit")
    known = known_of_template(obj) if is_task else {}
    override = None if outcome is None else outcome.override
    found = tailor.tailor(obj, chosen, kind=kind, override=override, **known)
    if outcome is not None and kind is not None:
        outcome.add(tailor.task(chosen, **known), found.result, kind)
    return Outcome(document, _title(obj, kind), chosen, found.chain, found.result)


def _title(obj: dict[str, Any], kind: Kind | None) -> str:
    if kind is not None:
        return Workload(obj, kind).title
    metadata = obj.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return f"{obj.get('kind')} {name or ''}".strip()
