"""A webhook that says yes to everything, on uvicorn as `kubetailor webhook serve` sets it."""

from __future__ import annotations

import argparse
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import uvicorn

from benchmarks.reviews import noop
from kubetailor.plugins.webhook.certificates import CERTIFICATE, KEY

_JSON = (b"content-type", b"application/json")


def app(answered: Callable[[bytes], bytes]) -> Callable[..., Awaitable[None]]:
    """The application that answers bodies by a function."""

    async def called(scope: Any, receive: Any, send: Any) -> None:
        message = await receive()
        body = message.get("body", b"")
        while message.get("more_body"):
            message = await receive()
            body += message.get("body", b"")
        answer = answered(body)
        headers = [_JSON, (b"content-length", str(len(answer)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    return called


def main(answered: Callable[[bytes], bytes] = noop) -> None:
    """Serve until told to end."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--host")
    parser.add_argument("--port", type=int)
    parser.add_argument("--certificates", type=Path)
    given = parser.parse_args()
    uvicorn.run(
        app(answered),
        host=given.host,
        port=given.port,
        lifespan="off",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=120,
        ssl_certfile=given.certificates / CERTIFICATE,
        ssl_keyfile=given.certificates / KEY,
    )


if __name__ == "__main__":
    main()
