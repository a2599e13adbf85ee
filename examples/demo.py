"""A Flyte project and a few manifests, cut to a cluster: what `make demo` shows.

Everything is done by the commands that are printed, in a folder of its own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parent
TASK = "project=speech,domain=development"
IMAGE = "registry.example.com/speech:1"


class Demo:
    """Commands run one after the other in one folder; the first that fails ends it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # A user's environment: the commands of this Python, and nothing of kubetailor set.
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("KUBETAILOR", "FLYTE"))}
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
        self.env = kept | {"PATH": path, "PYTHONPATH": str(folder / "site")}

    def say(self, text: str) -> None:
        print(f"\n{self._styled('1', '## ' + text)}\n", flush=True)

    def run(
        self, *command: str, cwd: str, env: dict[str, str] | None = None, status: int = 0
    ) -> None:
        """Print a command and run it.

        Args:
            command: the command and its arguments.
            cwd: the folder, within the demo's own.
            env: what is set for it.
            status: what it must end with; `-o diff` and `--diff` end with 1 if something differs.
        """
        settings = [f"{name}={value}" for name, value in (env or {}).items()]
        print(self._styled("2", f"{cwd}$ {' '.join([*settings, *command])}"), flush=True)
        done = subprocess.run(
            command, cwd=self.folder / cwd, env={**self.env, **(env or {})}, check=False
        )
        if done.returncode != status:
            raise SystemExit(f"ended with {done.returncode}, not {status}")

    def output(self, *command: str, cwd: str) -> str:
        """What a command prints; the command itself is not shown."""
        return subprocess.run(
            command, cwd=self.folder / cwd, env=self.env, check=True, text=True, capture_output=True
        ).stdout

    @staticmethod
    def _styled(style: str, text: str) -> str:
        plain = not sys.stdout.isatty() or os.environ.get("NO_COLOR")
        return text if plain else f"\033[{style}m{text}\033[0m"


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="kubetailor-demo-") as folder:
        for name in ("team-plugin", "flyte-project", "manifests"):
            shutil.copytree(EXAMPLES / name, Path(folder) / name)
        demo = Demo(Path(folder))

        demo.say("The platform team's plugin is a package of its own")
        demo.run(
            *(sys.executable, "-m", "uv", "pip", "install", "--quiet", "--offline", "--no-deps"),
            *("--no-build-isolation", "--python", sys.executable, "--target", "site"),
            "./team-plugin",
            cwd=".",
        )
        demo.run("kubetailor", "transformers", "acme_platform.spot", cwd="flyte-project")

        demo.say("A Flyte project: its config is checked, and pyflyte packages it as ever")
        demo.run("kubetailor", "check", cwd="flyte-project")
        demo.run(
            *("pyflyte", "--pkgs", "speech", "package", "--image", IMAGE),
            *("--output", "tailored.tgz"),
            cwd="flyte-project",
            env={"KUBETAILOR_TASK": TASK},
        )

        demo.say("What the chain made of each task")
        show = ("kubetailor", "flyte", "show", "tailored.tgz")
        fields = [word for pair in TASK.split(",") for word in ("--task", pair)]
        demo.run(*show, "--diff", *fields, cwd="flyte-project", status=1)

        demo.say("Which step changed which field, and where it stands in the config")
        tasks = Path(folder) / "flyte-project" / "tasks"
        tasks.mkdir()
        for item in json.loads(demo.output(*show, "-o", "json", *fields, cwd="flyte-project")):
            if "node" not in item:
                (tasks / f"{item['task']}.json").write_text(json.dumps(item["before"]))
        demo.run("kubetailor", "explain", "-f", "tasks", *fields, cwd="flyte-project")

        demo.say("Jobs that are applied by hand: what would be sent to the cluster")
        demo.run("kubetailor", "render", "-f", "pytorchjob.yaml", cwd="manifests")
        demo.run("kubetailor", "explain", "-f", "rayjob.yaml", cwd="manifests")


if __name__ == "__main__":
    main()
