#!/usr/bin/env bash
# Builds the wheel and installs it as a user would: with plain pip, into empty virtual environments outside
# the checkout, bound by pyproject.toml alone. `make wheel-check` runs it.
#
#   UV=...      builds (default: uv)
#   PYTHON=...  makes the virtual environments (default: python3)
set -euo pipefail

checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
uv=${UV:-uv}
python=${PYTHON:-python3}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export PIP_DISABLE_PIP_VERSION_CHECK=1
unset PYTHONPATH VIRTUAL_ENV KUBETAILOR_CONFIG KUBETAILOR_CHAIN

say() { printf '== %s\n' "$*"; }

# ------------------------------------------------------------------------------------------ the wheel
say "build the sdist, the wheel from it, and the wheel from the checkout"
build=("$uv" build --quiet --python "$python" --build-constraint "$checkout/constraints.txt" "$checkout")
"${build[@]}" --out-dir "$work/dist"
"${build[@]}" --out-dir "$work/direct" --wheel
wheel=$(echo "$work"/dist/*.whl)

"$python" - "$wheel" "$work"/direct/*.whl <<'PY'
import sys
import zipfile

built, direct = (set(zipfile.ZipFile(path).namelist()) for path in sys.argv[1:])
assert built == direct, f"the sdist lacks or adds files: {sorted(built ^ direct)}"
roots = {name.split("/")[0] for name in built}
assert all(root.startswith("kubetailor") for root in roots), f"top level of the wheel: {roots}"
assert "kubetailor/__init__.py" not in built, "kubetailor must stay a namespace package"
for part in ("workloads", "registry", "transformers", "plugins"):
    assert f"kubetailor/{part}/py.typed" in built, f"no py.typed in kubetailor/{part}"
print(f"{len(built)} files, the same from either")
PY

# ----------------------------------------------------------------------------------- without any extra
say "install it alone"
"$python" -m venv alone
alone/bin/python -m pip --quiet install "$wheel"
alone/bin/python -m pip check
alone/bin/kubetailor --help
alone/bin/python - <<'PY'
import importlib
import importlib.metadata
import importlib.util

for name in ("transformers", "plugins", "registry", "workloads"):
    assert importlib.util.find_spec(name) is None, f"the wheel brings a top-level {name}"
    importlib.import_module(f"kubetailor.{name}")
(host,) = importlib.metadata.entry_points(group="flytekit.plugins", name="kubetailor")
assert importlib.util.find_spec(host.module) is not None, f"{host.module} is not in the wheel"
PY

# ---------------------------------------------------------------------------------------- with flytekit
# Once with the pip that this Python brings, once with the newest.
for pip in bundled newest; do
  "$python" -m venv "$pip"
  if [ "$pip" = newest ]; then
    "$pip/bin/python" -m pip --quiet install --upgrade pip
  fi
  version=$("$pip/bin/python" -m pip --version | cut -d ' ' -f 2)
  say "install it with the extra flyte, by pip $version ($pip)"
  started=$SECONDS
  if ! "$pip/bin/python" -m pip install "$wheel[flyte]" >"$pip.log" 2>&1; then
    tail -n 40 "$pip.log"
    exit 1
  fi
  printf 'pip %s: %s s; looked at multiple versions %s times, said that it could take a while %s times\n' \
    "$version" "$((SECONDS - started))" \
    "$(grep -c 'is looking at multiple versions' "$pip.log" || true)" \
    "$(grep -c 'could take a while' "$pip.log" || true)"
  "$pip/bin/python" -m pip check
  "$pip/bin/python" - <<'PY'
import importlib.metadata
import sys

import flytekit  # loads the host by its entry point

assert "kubetailor.plugins.flyte" in sys.modules, "flytekit did not load kubetailor"
print(*(f"{name} {importlib.metadata.version(name)}" for name in ("flytekit", "kubernetes")), sep=", ")
PY
done

# A config file is all that is missing.
say "package a task with pyflyte"
mkdir project
cat >project/kubetailor.yaml <<'YAML'
chains:
  default:
    steps:
      - use: node_selector
        with: {set: {example.com/pool: spot}}
YAML
cat >project/flows.py <<'PY'
from flytekit import task


@task(container_image="example.com/img:1")
def double(x: int) -> int:
    return 2 * x
PY
(cd project && ../newest/bin/pyflyte --pkgs flows package --output package.tgz)
newest/bin/python - project/package.tgz <<'PY'
import sys
import tarfile

from flyteidl.admin.task_pb2 import TaskSpec
from google.protobuf.json_format import MessageToDict

with tarfile.open(sys.argv[1]) as archive:
    (name,) = (name for name in archive.getnames() if name.endswith("_1.pb"))
    template = MessageToDict(TaskSpec.FromString(archive.extractfile(name).read()).template)
assert template["k8sPod"]["podSpec"]["nodeSelector"] == {"example.com/pool": "spot"}, template
assert "kubetailor.dev/applied" in template["metadata"]["metadata"]["annotations"], template
print(f"{template['id']['name']} is tailored")
PY

# ---------------------------------------------------------------------------------------- in an image
# The `RUN` lines of the Dockerfile where the first stage would run them, and what they install where the
# second stage would have it. There is no container in this: neither base image nor user is tried.
say "install it as the Dockerfile does"
mkdir source root
(cd "$checkout" && cp -R $(sed -n 's/^COPY \([^-].*\) [^ ]*$/\1/p' Dockerfile) "$work/source")
"$python" -m venv stage
"$python" - "$checkout/Dockerfile" "$work/root" >run.sh <<'PY'
import re
import sys
from pathlib import Path

text = re.sub(r"\\\n", " ", Path(sys.argv[1]).read_text())
runs = re.findall(r"^RUN (.*)$", text, re.MULTILINE)
assert len(runs) == 3, runs
print("set -eu", *(re.sub(r"(?<=[ (])(/dist|/install)\b", rf"{sys.argv[2]}\1", run) for run in runs), sep="\n")
PY
if ! (cd source && PATH="$work/stage/bin:$PATH" bash ../run.sh) >image.log 2>&1; then
  tail -n 40 image.log
  exit 1
fi
"$python" -m venv final
cp -R root/install/. final/
final/bin/python -m pip check
final/bin/python -m kubetailor --version
# It is whole if all that it misses are certificates.
cp "$checkout/deploy/base/kubetailor.yaml" source/
if said=$(final/bin/python -m kubetailor webhook serve --config source/kubetailor.yaml --certificates /nowhere 2>&1)
then
  echo "served without certificates: $said" && exit 1
fi
grep -F /nowhere/tls.crt <<<"$said" || { echo "$said" && exit 1; }
say "the wheel is good"
