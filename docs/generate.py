"""Writes the pages of docs/reference anew, from the code that they describe.

With `--check` it writes nothing, says which are stale, and ends with 1 if any is.
"""

from __future__ import annotations

import inspect
import re
import sys
import typing
from collections.abc import Callable, Iterable, Iterator
from itertools import starmap
from pathlib import Path
from typing import Any

import click
from pydantic import BaseModel
from reference_examples import example_of, hook_example

from kubetailor.registry import Container, Pod, TaskContext, Workload, hookspecs
from kubetailor.registry.accelerator import Accelerator
from kubetailor.registry.accelerators import Catalogue
from kubetailor.registry.describe import description_of, parameters_of, type_text
from kubetailor.registry.model import ConfigModel, OverrideModel
from kubetailor.registry.overrides.document import LIMITS, MAX_STEPS, OVERRIDE
from kubetailor.registry.overrides.never import DEFAULT_USES, NEVER
from kubetailor.registry.plugins import Plugins
from kubetailor.registry.selectors import LOOKED_AT, WHEN_FIELDS
from kubetailor.registry.transformer import Transformer
from kubetailor.workloads import BUILTIN_KINDS, Kind, dotted

REFERENCE = Path(__file__).resolve().parent / "reference"
HEAD = "<!-- Written by docs/generate.py: `make docs`. -->\n\n"

WHEN = {
    "namespace": "the Kubernetes namespace",
    "kind": "the kind: `PyTorchJob`; of a Flyte task, the kind that Flyte makes of it",
    "api_group": 'the API group of that kind, `""` for the core',
    "phase": "`serialize`, `launch` or `admit`",
    "labels": "labels on the object so far: `{name: glob}`",
    "annotations": "annotations on the object so far: `{name: glob}`",
    "role": "picks pods by role; `worker` is every `worker:<group>` too",
    "requests": "picks pods of which a container asks for more than 0 of a resource",
    "any": "a list of conditions, one of which holds",
    "all": "a list of conditions, all of which hold",
    "not": "a condition that does not hold",
}
"""The words of `when` that are not fields of `TaskContext`, whose docstring has the others."""


# --------------------------------------------------------------------------------------- Markdown


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table; `|` in a cell is escaped."""
    head = list(head)
    lines = [head, ["---"] * len(head), *rows]
    return "".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines
    )


def code(text: object) -> str:
    return f"`{text}`" if text not in (None, "") else ""


def literals(text: str) -> str:
    """reStructuredText's literals as Markdown's."""
    return text.replace("``", "`")


def prose(text: str) -> str:
    """The same, on one line."""
    return " ".join(literals(text).split())


def sections(doc: str) -> tuple[str, dict[str, dict[str, str]]]:
    """A Google-style docstring: its prose, and section -> name -> text."""
    head: list[str] = []
    found: dict[str, dict[str, str]] = {}
    section = name = ""
    for line in inspect.cleandoc(doc).splitlines():
        if match := re.fullmatch(r"(Args|Attributes|Raises|Returns|Example):", line):
            section = match[1]
            found[section] = {}
        elif section and line and not line[0].isspace():
            section, name = "", ""
            head.append(line)
        elif section and (match := re.match(r" {4}([\w, ]+): (.*)", line)):
            name = match[1]
            found[section][name] = match[2]
        elif section and name:
            found[section][name] += " " + line.strip()
        elif not section:
            head.append(line)
    return literals("\n".join(head).strip()), found


# ------------------------------------------------------------------------------------------ pages


def transformers() -> str:
    plugins = Plugins.load(entry_points=False).require()
    built_in = sorted(
        (t for t in plugins.transformers.values() if t.plugin == "kubetailor"),
        key=lambda transformer: transformer.name,
    )
    parts = [
        "# Built-in transformers\n\n"
        "What `use` may name without a plugin. `kubetailor transformers` lists these and those of "
        "your plugins.\n\n",
        table(
            ("name", "what it does"),
            ((f"[`{t.name}`](#{t.name})", prose(t.summary)) for t in built_in),
        ),
    ]
    return "".join([*parts, *map(transformer_section, built_in)])


def transformer_section(transformer: Transformer) -> str:
    traits = []
    if transformer.options.atomic:
        traits.append(" As a default it is kept whole or not at all.")
    if transformer.options.replicas:
        traits.append(" It reaches the replicas in a Flyte task's `custom` too.")
    if transformer.options.task_templates:
        traits.append(" It is about Flyte's task templates alone, in `serialize` and `launch`.")
    if transformer.options.queue:
        traits.append(" It chooses a queue: at `admit` it is for what no other workload made.")
    if transformer.options.accelerator:
        traits.append(
            " It chooses an accelerator, which one that a Flyte node states itself beats."
        )
    per = "pod" if transformer.receiver in ("pod", "pod_spec") else "object"
    return (
        f"\n## {transformer.name}\n\n{literals(description_of(transformer))}\n\n"
        f"Runs once for each {per}.{''.join(traits)}\n\n"
        + table(
            ("parameter", "type", "default", "meaning"),
            (
                (
                    code(p.name),
                    code(p.type.removesuffix(" | None") if p.default is None else p.type),
                    "required" if p.required else default(p.default),
                    prose(p.doc),
                )
                for p in parameters_of(transformer)
            ),
        )
        + ("" if (example := example_of(transformer.name)) is None else f"\n{example.markdown()}")
    )


def default(value: Any) -> str:
    """A default as YAML writes it; nothing where there is none, or no short one."""
    if isinstance(value, bool):
        return code(str(value).lower())
    return code(value) if isinstance(value, str | int) else ""


def kinds() -> str:
    def rows(kind: Kind) -> Iterator[tuple[str, ...]]:
        own = (code(kind.name), code(kind.group))
        queue = code(kind.queue_place) + (
            " (all but Dask's)" if kind.name == "TaskTemplate" else ""
        )
        of_object = (queue, code(dotted(kind.suspend)) if kind.suspend else "")
        if not kind.pods:
            roles, names = (", ".join(map(code, found)) for found in (kind.roles, kind.primary))
            yield (*own, roles, "see below", names, *of_object, "see below")
        for index, pod in enumerate(kind.pods):
            path = ".".join(part for part in (pod.path, pod.spec) if part)
            yield (
                *(own if index == 0 else ("", "")),
                ", ".join(map(code, pod.roles)),
                code(path),
                ", ".join(map(code, pod.primary)),
                *(of_object if index == 0 else ("", "")),
                "<br>".join(f"{code(one.field)} (read: {one.instead})" for one in pod.ignored),
            )

    with_code: dict[type[Kind], list[Kind]] = {}
    for kind in BUILTIN_KINDS:
        if type(kind) is not Kind:
            with_code.setdefault(type(kind), []).append(kind)
    return (
        "# Kinds\n\n"
        "Where each kind of workload keeps its pods. `*` is every key of a map, `[]` every entry "
        "of a list. The primary container is the one that the operator knows by name; where none "
        "is named it is the only one, or the one that the object's annotations name. The queue "
        "label is where Kueue reads it, and `kueue` writes it; a kind without one is not managed "
        "by Kueue. What is ignored, the kind's operator does not read: a step of an override or "
        "of `enforce` that writes there fails, and another is taken back with a warning.\n\n"
        + table(
            (
                *("kind", "API group", "role", "pod spec", "primary container", "queue label"),
                *("suspended by", "ignored"),
            ),
            (row for kind in BUILTIN_KINDS for row in rows(kind)),
        )
        + "\n## Kinds with code of their own\n"
        + "".join(starmap(kinds_with_code, with_code.items()))
        + "\n## FlyteWorkflow\n\n"
        "It is no row: at `launch` each of its task templates is tailored, as a `TaskTemplate`, "
        "and what Flyte makes of it is nobody's child.\n"
        "\nA plugin adds rows: [How to add a kind](../how-to/add-a-kind.md).\n"
    )


def kinds_with_code(row: type[Kind], found: list[Kind]) -> str:
    names = ", ".join(code(kind.name) for kind in found)
    reads = ", ".join(map(code, found[0].reads))
    text = literals(inspect.getdoc(inspect.getmodule(row)) or "")
    return f"\n### {names.replace('`', '')}\n\n{text}\n" + (
        f"\nRead of a pod: {reads}.\n" if reads else ""
    )


def accelerators() -> str:
    plugins = Plugins.load(entry_points=False).require()
    catalogue = Catalogue(plugins.accelerators)
    _, parts = sections(Accelerator.__doc__ or "")
    written = {
        **parts["Attributes"],
        "requests": "requests that are set besides `per_gpu`'s.",
        "limits": "the same for limits.",
        "extends": "another entry: maps merge by key, null deletes, lists replace.",
    }
    fields = [name for name in Accelerator.__dataclass_fields__ if name != "name"]
    presets = sorted(catalogue.all, key=lambda a: a.name)
    pages = list(dict.fromkeys(page for a in presets for page in a.pages))
    return (
        "# Accelerators\n\n"
        "What the transformer `gpu` may name as `type`, besides the entries of your config and "
        "your plugins ([How to add an accelerator](../how-to/add-an-accelerator.md)).\n\n"
        "## Fields of an entry\n\n"
        + table(
            ("field", "meaning"),
            (
                (code(name), prose(written[name]).replace("or None", "or null"))
                for name in [*fields, "extends"]
            ),
        )
        + "\n## Presets\n\n"
        + table(
            ("name", "resource", "nodes", "tolerations", "Flyte's device", "pages"),
            (
                (
                    code(a.name),
                    code(a.resource),
                    placement(a),
                    tolerations(a),
                    ", ".join(code(word) for word in a.devices if word),
                    ", ".join(str(pages.index(page) + 1) for page in a.pages),
                )
                for a in presets
            ),
        )
        + "\n## Pages\n\nWhat the presets come from:\n\n"
        + "".join(f"{number}. <{page}>\n" for number, page in enumerate(pages, 1))
    )


def placement(accelerator: Accelerator) -> str:
    pairs = [f"{key}={value}" for key, value in accelerator.node_selector.items()]
    for entry in accelerator.node_requirements:
        values = ", ".join(entry.get("values", ()))
        pairs.append(f"{entry['key']} {entry['operator']} ({values})")
    if accelerator.runtime_class:
        pairs.append(f"runtimeClassName: {accelerator.runtime_class}")
    return "<br>".join(map(code, pairs))


def tolerations(accelerator: Accelerator) -> str:
    texts = []
    for entry in accelerator.tolerations:
        key = entry.get("key", "*")
        pair = f"{key}={entry['value']}" if "value" in entry else key
        texts.append(f"{pair}:{entry['effect']}" if "effect" in entry else pair)
    return "<br>".join(map(code, texts))


def config() -> str:
    return (
        "# kubetailor.yaml\n\n"
        "Every key of the config. `kubetailor schema` prints the same as a JSON Schema, with the "
        "parameters of what is installed. `kubetailor check` checks a file.\n"
        + "".join(map(model_section, models_below(ConfigModel)))
        + "\n## when\n\n"
        "A map of fields: all of them must hold. A value is a glob or a list of globs, or null, "
        "which matches what is absent. A glob looks at the first "
        f"{LOOKED_AT} characters of a text; what has no `*`, `?` or `[` is compared whole.\n\n"
        + table(("field", "meaning"), ((code(name), when_meaning(name)) for name in WHEN_FIELDS))
        + environment()
    )


def override() -> str:
    never: dict[str, list[str]] = {}
    for (use, parameter), rows in NEVER.items():
        for row in rows:
            globs = ", ".join(code(glob or '""') for glob in row.globs)
            way = "nothing allows it" if not row.lifted_by else ", ".join(sorted(row.lifted_by))
            never[f"{use}.{parameter}: {row.what}"] = [globs, way]
    return (
        "# Overrides\n\n"
        "An override is a chain for one execution. It travels as the annotation "
        f"`{OVERRIDE}` of the execution, in YAML or JSON, and `--set` and `--on` of a command say "
        f"the same in one line. At most {LIMITS.bytes // 1024} KiB, {MAX_STEPS} steps, "
        f"{LIMITS.depth} levels; no aliases.\n\n"
        "A step that is for no task of the execution, or changes nothing, is refused; `optional: "
        "true` allows it. A step that has no place on a task that it is for is an error, where a "
        "step of a chain would warn.\n\n"
        "The [webhook](../how-to/install-the-webhook.md) applies it: at `launch` all of it, at "
        "`admit` what a Kubernetes object knows, once. `cache`, `retries` and all else that is "
        "about task templates needs `launch`, and so does a `when` on `inputs`. The execution "
        "fails at once where an override cannot be read or may not be. The stamp, "
        "`kubetailor.dev/applied`, has the digest of the override.\n"
        + "".join(map(model_section, models_below(OverrideModel)))
        + "\n`when` is that of a [step of a chain](config.md#when).\n\n"
        "## In one line\n\n"
        + table(
            ("word", "meaning"),
            (
                (
                    "`--set STEP.PARAM=VALUE`",
                    "A parameter of a step. STEP is the longest name of a transformer that it "
                    "begins with, PARAM the next word, VALUE is YAML. The words for one "
                    "transformer make one step.",
                ),
                (
                    "`--set STEP.PARAM.KEY=VALUE`",
                    "One entry of a parameter that is a map. Where the map holds scalars, all that "
                    "is left is one key: `resources.limits.nvidia.com/gpu=4`, "
                    "`labels.set.example.com/team=a`.",
                ),
                (
                    "`--on KEY=GLOB`",
                    "A field of `when`; of `labels`, `annotations` and `inputs` with the name: "
                    "`--on labels.team=a*`. All of them hold, for every `--set`.",
                ),
            ),
        )
        + "\n## What may be overridden\n\n"
        "What the config's [`overridable`](config.md#overridable) allows; without it, "
        + ", ".join(map(code, sorted(DEFAULT_USES)))
        + ". What an entry of `overridable` does not say in so many words stays as this table has "
        "it:\n\n"
        + table(
            ("never", "as", "unless its `allow` has"),
            ((what, *row) for what, row in never.items()),
        )
    )


def models_below(model: type[BaseModel]) -> list[type[BaseModel]]:
    """A model and those that its fields name, in the order of a reader."""
    found = [model]
    for field in model.model_fields.values():
        for part in models_in(field.annotation):
            found += [below for below in models_below(part) if below not in found]
    return found


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        yield annotation
    for arg in typing.get_args(annotation):
        yield from models_in(arg)


def model_section(model: type[BaseModel]) -> str:
    rows = []
    for name, field in model.model_fields.items():
        parts = list(models_in(field.annotation))
        about = field.description or " ".join(part.__doc__ or "" for part in parts)
        links = [f" See [{title(part)}](#{title(part).lower()})." for part in parts]
        shown = "required" if field.is_required() else default(field.default)
        hint = type_text(field.annotation).removesuffix(" | None")
        for part in parts:
            hint = hint.replace(part.__name__, title(part))
        rows.append((code(field.alias or name), code(hint), shown, prose(about) + "".join(links)))
    return f"\n## {title(model)}\n\n{prose(model.__doc__ or '')}\n\n" + table(
        ("key", "type", "default", "meaning"), rows
    )


def title(model: type[BaseModel]) -> str:
    return model.__name__.removesuffix("Model")


def when_meaning(name: str) -> str:
    _, parts = sections(TaskContext.__doc__ or "")
    return prose(WHEN.get(name) or parts["Attributes"][name].rstrip("."))


def environment() -> str:
    return "\n## Environment\n\n" + table(
        ("variable", "meaning"),
        (
            ("`KUBETAILOR_CONFIG`", "the config, as `--config`"),
            ("`KUBETAILOR_CHAIN`", "the chain, whatever `select` says, as `--chain`"),
            ("`KUBETAILOR_TASK`", "what is known of every task, `key=value,…`, as `--task`"),
        ),
    )


def hooks() -> str:
    parts = [
        "# Hooks\n\n"
        "What a plugin may implement, marked with `kubetailor.registry.hookimpl`. A hook takes "
        "the arguments that it names, or fewer. Functions marked with "
        "`kubetailor.registry.transformer` need no hook.\n"
    ]
    for name, value in vars(hookspecs).items():
        if hasattr(value, "kubetailor_spec"):
            text, _ = sections(value.__doc__ or "")
            text, _, fields = text.partition("\n:")
            lines = re.split(r"\n:", fields) if fields else []
            listed = "".join(f"- {_field(line)}\n" for line in lines)
            shown = hook_example(name).read_text(encoding="utf-8")
            parts.append(
                f"\n## {name}\n\n```text\n@hookimpl\ndef {name}{_signature(value)}: ...\n```\n\n"
                f"{text.strip()}\n\n{listed}\n```python title={name}.py\n{shown}```\n"
            )
    parts.append(
        "\n## RegisterTransformer\n\nWhat `register_transformers` is given:\n\n```text\n"
        f"{_signature(hookspecs.RegisterTransformer.__call__, drop_self=True)}\n```\n"
    )
    return "".join(parts)


def _field(line: str) -> str:
    match = re.match(r"(?:param (\w+)|(return)): (.*)", line, re.DOTALL)
    assert match is not None, line
    return f"{code(match[1]) if match[1] else 'returns'}: {prose(match[3])}"


def _signature(function: Callable[..., Any], *, drop_self: bool = False) -> str:
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    if drop_self or (parameters and parameters[0].name == "self"):
        signature = signature.replace(parameters=parameters[1:])
    return re.sub(r"'([^']*)'", r"\1", str(signature)) if "'" in str(signature) else str(signature)


def verbs() -> str:
    parts = [
        "# Verbs\n\n"
        "How a transformer reads and changes a workload. Reads give copies; verbs carry the "
        "[rules by which lists and maps merge](../explanation/semantics.md#merging). `edit` is "
        "for what no verb does: it gives the dict or list at a path, to be changed in place.\n"
    ]
    for owner, about in (
        (Pod, "One pod template. Here the verbs of a container mean the primary one."),
        (Container, "From `pod.containers`, `pod.container(name)` or `pod.primary`."),
        (Workload, "The whole object. Its labels and annotations are its own, not its pods'."),
    ):
        parts.append(f"\n## {owner.__name__}\n\n{about}\n\n")
        parts.append(table(("verb", "what it does"), rows_of(owner)))
    return "".join(parts)


HIDDEN = {
    Pod: {"move", "note_write", "peek", "placed", "serving", "where"},
    Container: set[str](),
    Workload: {
        "commit",
        "forget_pods",
        "metadata",
        "metadata_at",
        "note_write",
        "release",
        "reset",
    },
}
"""What hosts and the chain use, and transformers do not."""


def rows_of(owner: type) -> Iterator[tuple[str, str]]:
    for name, value in vars(owner).items():
        if name.startswith("_") or name in HIDDEN[owner]:
            continue
        if isinstance(value, property):
            shown, doc = name, value.fget.__doc__
        elif inspect.isfunction(value):
            shown, doc = f"{name}{_short(value)}", value.__doc__
        else:
            continue
        text, _ = sections(doc or "")
        yield code(shown), prose(text)


def _short(function: Callable[..., Any]) -> str:
    """A signature without annotations."""
    signature = inspect.signature(function)
    bare = [
        parameter.replace(annotation=parameter.empty)
        for parameter in signature.parameters.values()
        if parameter.name != "self"
    ]
    text = str(signature.replace(parameters=bare, return_annotation=signature.empty))
    return text.replace("<class 'dict'>", "dict")


def commands() -> str:
    from kubetailor.plugins.cli.root import cli

    return (
        "# Command line\n\n"
        "Exit status: 0 done; 1 what `--check` or `-o diff` look for is there; 2 an error, or "
        "wrong usage.\n" + "".join(command_sections(cli, "kubetailor"))
    )


def command_sections(
    command: click.Command, name: str, above: click.Context | None = None
) -> Iterator[str]:
    settings: dict[str, Any] = {**command.context_settings, "terminal_width": 80}
    context = click.Context(command, info_name=name, parent=above, **settings)
    title = context.command_path
    yield f"\n## {title}\n\n```text\n$ {title} --help\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for child in command.list_commands(context):
            found = command.get_command(context, child)
            assert found is not None
            yield from command_sections(found, child, context)


PAGES: dict[str, Callable[[], str]] = {
    "accelerators.md": accelerators,
    "cli.md": commands,
    "config.md": config,
    "hooks.md": hooks,
    "kinds.md": kinds,
    "override.md": override,
    "transformers.md": transformers,
    "verbs.md": verbs,
}


def main(arguments: list[str]) -> int:
    stale = []
    for name, page in PAGES.items():
        path = REFERENCE / name
        text = HEAD + page()
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            stale.append(name)
            if "--check" not in arguments:
                path.write_text(text, encoding="utf-8")
    done = "is stale" if "--check" in arguments else "written"
    for name in stale:
        print(f"docs/reference/{name} {done}")
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
