"""``kubetailor override``: overrides as annotations, for clients that know nothing of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import click

from kubetailor.plugins.cli.options import config_option, output_option
from kubetailor.plugins.cli.output import fail, note, print_json
from kubetailor.plugins.cli.overriding import GivenOverride, override_options
from kubetailor.registry.overrides.document import OVERRIDE
from kubetailor.workloads import dump_yaml

__all__ = ["override"]


@click.group()
def override() -> None:
    """Write an override, and put it into an annotation."""


@override.command()
@override_options
@output_option("raw", "yaml", "json", default="raw")
@config_option
def annotate(override: GivenOverride, output: str, config: Path | None) -> None:
    """Print the annotation that carries an override.

    For whatever launches executions with annotations: `pyflyte run --remote --annotations` takes
    the raw form. Of a launch plan's own annotations it has to send those as well: FlyteAdmin
    replaces all of them. `kubetailor launch` and `pyflyte run --override` see to that.

    With a config, the override is checked against what that lets an execution override.
    """
    from kubetailor.plugins.cli.installed import installed
    from kubetailor.registry.overrides.overridable import when_text
    from kubetailor.registry.tailor import Tailor

    if not override:
        fail("no override: give --override FILE or --set STEP.PARAM=VALUE")
    tailor = Tailor.find(config)
    only: dict[str, None] = {}
    if tailor is None:
        found = override.read(installed(None)[0])
        checked = "there is no config here: what may be overridden is not checked"
    else:
        found = override.read(tailor.config.plugins)
        compiled = tailor.config.overrides.compile(found)
        checked = f"{tailor.config.file} lets an execution override that"
        for step in compiled.steps:
            if conditions := compiled.overridable.conditions(step):
                where = " or ".join(map(when_text, conditions))
                only[f"{step.transformer.name}: only where {where}"] = None
    uses = ", ".join(dict.fromkeys(step.use for step in found.steps))
    text = found.annotation()
    for said in (f"{uses}: {checked}", *only):
        note(said)
    _PRINTERS[output](text)


_PRINTERS: Mapping[str, Callable[[str], None]] = {
    "raw": lambda text: click.echo(f"{OVERRIDE}={text}"),
    "yaml": lambda text: click.echo(dump_yaml([{OVERRIDE: text}]), nl=False),
    "json": lambda text: print_json({OVERRIDE: text}),
}
