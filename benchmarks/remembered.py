"""A webhook that decided once, and says the same to whoever asks: what it costs to be listened to.

The API server applies the patch, runs its own admission plugins a second time, and asks again
where one of them then derived something from what the patch changed: so once for a new pod, and
once for one that has been tailored.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from benchmarks import noop
from kubetailor.plugins.flyte.stamp import STAMP
from kubetailor.plugins.webhook.decide import decide
from kubetailor.plugins.webhook.reload import load_tailor
from kubetailor.plugins.webhook.reviews import dump, parse

_SAID: dict[bool, Any] = {}


def answered(body: bytes) -> bytes:
    """What was said first, with the id of this request."""
    review = orjson.loads(body)
    request = review["request"]
    is_tailored = STAMP in request["object"]["metadata"]["annotations"]
    if is_tailored not in _SAID:
        _SAID[is_tailored] = decide(parse(body), load_tailor(Path("../kubetailor.yaml"))).response
    response = {**_SAID[is_tailored], "uid": request["uid"]}
    return dump({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response})


if __name__ == "__main__":
    noop.main(answered)
