"""Certificates that are made here, and their renewal."""

from __future__ import annotations

import asyncio
import base64
import datetime
import functools
import http.server
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from kubetailor.plugins.webhook.certificates import (
    CertificateFiles,
    Certificates,
    not_after,
    renewed,
)
from kubetailor.plugins.webhook.cluster import ApiServer, ApiServerError
from kubetailor.plugins.webhook.rotation import SelfSigned
from kubetailor.workloads import KubetailorError

NAMES = ["kubetailor.kubetailor-system.svc"]
NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)


def later(days: float) -> datetime.datetime:
    return NOW + datetime.timedelta(days=days)


def trusts(
    bundle: bytes, certificate: bytes, when: datetime.datetime, name: str = NAMES[0]
) -> bool:
    """Whether the API server would go on with a server that shows this certificate."""
    store = Store(x509.load_pem_x509_certificates(bundle))
    verifier = PolicyBuilder().store(store).time(when).build_server_verifier(x509.DNSName(name))
    try:
        verifier.verify(x509.load_pem_x509_certificate(certificate), [])
    except VerificationError:
        return False
    return True


def write(directory: Path, found: Certificates) -> None:
    directory.mkdir(exist_ok=True)
    (directory / "tls.key").write_bytes(found.key)
    (directory / "tls.crt").write_bytes(found.certificate)


def test_the_bundle_trusts_the_certificate_for_its_names_and_time() -> None:
    made = renewed(None, NAMES, NOW)
    assert trusts(made.bundle, made.certificate, NOW)
    assert not trusts(made.bundle, made.certificate, NOW, "other.svc")
    assert not trusts(made.bundle, made.certificate, later(91))
    assert not trusts(renewed(None, NAMES, NOW).bundle, made.certificate, NOW)


def test_nothing_is_renewed_before_its_time() -> None:
    made = renewed(None, NAMES, NOW)
    assert renewed(made, NAMES, later(59)) is made


def test_the_certificate_is_renewed_by_the_same_authority() -> None:
    made = renewed(None, NAMES, NOW)
    new = renewed(made, NAMES, later(61))
    assert (new.bundle, new.authority_key) == (made.bundle, made.authority_key)
    assert new.certificate != made.certificate
    assert trusts(made.bundle, new.certificate, later(150))


def test_another_name_needs_another_certificate() -> None:
    made = renewed(None, NAMES, NOW)
    new = renewed(made, ["other.svc"], NOW)
    assert new.bundle == made.bundle
    assert trusts(new.bundle, new.certificate, NOW, "other.svc")


def test_while_the_authority_changes_both_are_trusted() -> None:
    made = renewed(None, NAMES, NOW)
    old = renewed(made, NAMES, later(480))
    new = renewed(old, NAMES, later(490))
    assert new.authority_key != old.authority_key
    for certificate in (old.certificate, new.certificate):
        assert trusts(new.bundle, certificate, later(491))
    # And the one that has ended is dropped.
    third = renewed(new, NAMES, later(490 + 490))
    assert len(x509.load_pem_x509_certificates(third.bundle)) == 2
    assert not trusts(third.bundle, old.certificate, later(491))


def test_files_are_loaded_anew_and_half_a_pair_is_not(tmp_path: Path) -> None:
    now = datetime.datetime.now(datetime.timezone.utc)
    first = renewed(None, NAMES, now - datetime.timedelta(days=10))
    second = renewed(None, NAMES, now)
    write(tmp_path, first)
    files = CertificateFiles(tmp_path, lambda: now)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.certificate, files.key)
    files.use_in(context)
    assert round(files.seconds_left() / 86400) == 80

    assert shown(context, first.bundle)
    files.certificate.write_bytes(second.certificate)
    asyncio.run(files.refresh())
    assert shown(context, first.bundle)
    assert not shown(context, second.bundle)
    assert round(files.seconds_left() / 86400) == 80
    files.key.write_bytes(second.key)
    asyncio.run(files.refresh())
    assert shown(context, second.bundle)
    assert round(files.seconds_left() / 86400) == 90


def shown(context: ssl.SSLContext, bundle: bytes) -> bool:
    """Whether a client that trusts the bundle gets through a handshake with the context."""
    trusting = ssl.create_default_context(cadata=bundle.decode())
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = trusting.wrap_bio(to_client, to_server, server_hostname=NAMES[0])
    server = context.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(4):
        for side in (client, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                pass
            except ssl.SSLError:
                return False
    return client.version() is not None


# in a cluster ----------------------------------------------------------------------------------


class Objects(http.server.BaseHTTPRequestHandler):
    """One Secret and one webhook configuration, with an API server's rules on versions."""

    objects: ClassVar[dict[str, dict[str, Any]]] = {}
    calls: ClassVar[list[str]] = []
    before_put: ClassVar[list[Callable[[], None]]] = []

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the base's name)
        """Say nothing."""

    def _answer(self, code: int, body: Any) -> None:
        text = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def _handle(self) -> None:
        self.calls.append(f"{self.command} {self.path.rpartition('/')[0].rpartition('/')[2]}")
        if self.headers["Authorization"] != "Bearer a-token":
            self._answer(401, {"message": "who are you?"})
            return
        found = self.objects.get(self.path)
        if found is None:
            self._answer(404, {"message": "not found"})
            return
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"] or 0)) or "null")
        if self.command == "PUT":
            if self.before_put:
                self.before_put.pop()()
            if body["metadata"]["resourceVersion"] != found["metadata"]["resourceVersion"]:
                self._answer(409, {"message": "the object has been modified"})
                return
            found.update(body)
            self._bump(found)
        elif self.command == "PATCH":
            assert self.headers["Content-Type"] == "application/json-patch+json"
            import jsonpatch

            self.objects[self.path] = found = jsonpatch.apply_patch(found, body)
            self._bump(found)
        self._answer(200, found)

    @staticmethod
    def _bump(found: dict[str, Any]) -> None:
        version = int(found["metadata"]["resourceVersion"]) + 1
        found["metadata"] = {**found["metadata"], "resourceVersion": str(version)}

    do_GET = do_PUT = do_PATCH = _handle


SECRET = "/api/v1/namespaces/kubetailor-system/secrets/kubetailor"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/kubetailor"


@pytest.fixture
def api(tmp_path: Path) -> Iterator[ApiServer]:
    own = renewed(None, ["localhost"], datetime.datetime.now(datetime.timezone.utc))
    write(tmp_path, own)
    (tmp_path / "ca.crt").write_bytes(own.bundle)
    (tmp_path / "token").write_text("a-token\n")
    Objects.objects = {
        SECRET: {"metadata": {"name": "kubetailor", "resourceVersion": "1"}, "type": "Opaque"},
        WEBHOOKS: {
            "metadata": {"name": "kubetailor", "resourceVersion": "1"},
            "webhooks": [
                {"name": "flyte.kubetailor.dev", "clientConfig": {"service": {}}},
                {"name": "labelled.kubetailor.dev", "clientConfig": {"service": {}}},
            ],
        },
    }
    Objects.calls = []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Objects)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "tls.crt", tmp_path / "tls.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield ApiServer("localhost", server.server_port, tmp_path / "token", tmp_path / "ca.crt")
    server.shutdown()
    thread.join()
    server.server_close()


def replica(api: ApiServer, directory: Path, days: float = 0) -> SelfSigned:
    return SelfSigned(
        api,
        namespace="kubetailor-system",
        name="kubetailor",
        directory=directory,
        clock=lambda: later(days),
        told_seconds=0,
    )


def trusted() -> list[bytes]:
    webhooks = Objects.objects[WEBHOOKS]["webhooks"]
    return [base64.b64decode(webhook["clientConfig"]["caBundle"]) for webhook in webhooks]


def test_the_first_replica_makes_them_and_the_second_takes_them(
    api: ApiServer, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        asyncio.run(replica(api, tmp_path / name).refresh())
        bundle, same = trusted()
        assert bundle == same
        assert trusts(bundle, (tmp_path / name / "tls.crt").read_bytes(), NOW)
    assert (tmp_path / "one" / "tls.key").read_bytes() == (
        tmp_path / "two" / "tls.key"
    ).read_bytes()
    assert (tmp_path / "one" / "tls.key").stat().st_mode & 0o077 == 0
    assert Objects.calls.count("PUT secrets") == 1
    assert Objects.calls.count("PATCH mutatingwebhookconfigurations") == 1


def test_of_two_that_make_them_at_once_one_gives_way(api: ApiServer, tmp_path: Path) -> None:
    def other() -> None:
        asyncio.run(replica(api, tmp_path / "two").refresh())

    Objects.before_put.append(lambda: other_thread(other))
    asyncio.run(replica(api, tmp_path / "one").refresh())
    assert (tmp_path / "one" / "tls.crt").read_bytes() == (
        tmp_path / "two" / "tls.crt"
    ).read_bytes()


def other_thread(run: Callable[[], None]) -> None:
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()


def test_nobody_is_cut_off_while_the_authority_changes(api: ApiServer, tmp_path: Path) -> None:
    one, two = replica(api, tmp_path / "one", 0), replica(api, tmp_path / "two", 0)
    asyncio.run(one.refresh())
    asyncio.run(two.refresh())
    for days in range(30, 1500, 15):
        one._clock = two._clock = functools.partial(later, days)
        # Before anybody has looked, after the first has, after both have.
        for looking in ((), (one,), (two,)):
            for looker in looking:
                asyncio.run(looker.refresh())
            for name in ("one", "two"):
                certificate = (tmp_path / name / "tls.crt").read_bytes()
                assert trusts(trusted()[0], certificate, later(days)), days
    assert not_after((tmp_path / "one" / "tls.crt").read_bytes()) > later(1500)


def test_nobody_is_cut_off_when_the_secret_is_emptied(api: ApiServer, tmp_path: Path) -> None:
    """As a person does who wants another authority."""
    one, two = replica(api, tmp_path / "one"), replica(api, tmp_path / "two")
    for each in (one, two):
        asyncio.run(each.refresh())
    before = (tmp_path / "one" / "tls.crt").read_bytes()
    Objects.objects[SECRET]["data"] = {}
    for each in (one, two):
        asyncio.run(each.refresh())
        for name in ("one", "two"):
            assert trusts(trusted()[0], (tmp_path / name / "tls.crt").read_bytes(), NOW)
    after = (tmp_path / "one" / "tls.crt").read_bytes()
    assert after == (tmp_path / "two" / "tls.crt").read_bytes() != before
    # One who starts now has seen nothing of the older authority.
    asyncio.run(replica(api, tmp_path / "three").refresh())
    assert (tmp_path / "three" / "tls.crt").read_bytes() == after


def test_a_refusal_says_what_was_asked(api: ApiServer, tmp_path: Path) -> None:
    del Objects.objects[SECRET]
    with pytest.raises(ApiServerError, match=r"GET .*/secrets/kubetailor: 404 not found"):
        asyncio.run(replica(api, tmp_path).refresh())
    with pytest.raises(KubetailorError, match="KUBERNETES_SERVICE_HOST"):
        ApiServer.of_this_pod({})
