"""Puts what commands print now into the pages, where that is not what the pages say.

    python tests/docs/accept.py [PAGE ...]

Read the difference before you keep it: a page that is made to agree with a fault says so no longer.
"""

from __future__ import annotations

import importlib
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
pages = importlib.import_module("tests.docs.test_pages")


def accept(page: Path) -> None:
    text, written, end = page.read_text(encoding="utf-8"), "", 0
    with tempfile.TemporaryDirectory() as folder:
        if page.is_relative_to(pages.CHECKOUT / "examples"):
            shutil.copytree(page.parent, folder, dirs_exist_ok=True)
        for block in pages.blocks_of(page):
            if "norun" in block.options or block.language == "text":
                continue
            if block.language != "console":
                pages.run(block, Path(folder))
                continue
            printed = outputs(block, Path(folder))
            written += text[end : block.span[0]] + "".join(f"$ {c}\n{out}" for c, out in printed)
            end = block.span[1]
    page.write_text(written + text[end:], encoding="utf-8")


def outputs(block: Any, folder: Path) -> list[tuple[str, str]]:
    found = []
    for command, expected in block.commands:
        _, printed = pages.shell(command, folder)
        same = pages.agrees(expected, printed)
        lines = (expected if same else printed).strip("\n").splitlines()
        found.append((command, "".join(f"{line.rstrip()}\n" for line in lines)))
    return found


for name in sys.argv[1:] or pages.PAGES:
    accept(Path(name).resolve())
