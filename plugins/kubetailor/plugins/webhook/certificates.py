"""Certificates: made and renewed here, or given as files; used anew without a restart."""

from __future__ import annotations

import datetime
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kubetailor.plugins.webhook.logs import log
from kubetailor.plugins.webhook.reload import state_of

__all__ = ["CERTIFICATE", "KEY", "CertificateFiles", "Certificates", "not_after", "renewed"]

CERTIFICATE: Final = "tls.crt"
KEY: Final = "tls.key"
"""The names that a Secret of the type `kubernetes.io/tls` has, and cert-manager writes."""

_AUTHORITY_DAYS: Final = 730
_SERVING_DAYS: Final = 90
_RENEW_AT: Final = 1 / 3
"""Renewed when this part of its time is left, as cert-manager does."""


@dataclass(frozen=True)
class Certificates:
    """An authority of our own, and what it has signed; all in PEM.

    Attributes:
        bundle: the authority's certificate; while the authority changes, the older one's after it.
        authority_key: its key.
        certificate: the serving certificate.
        key: its key.
    """

    bundle: bytes
    authority_key: bytes
    certificate: bytes
    key: bytes


def renewed(old: Certificates | None, names: Sequence[str], now: datetime.datetime) -> Certificates:
    """Certificates that are good for a while; `old` itself if it is.

    Args:
        old: what there is, or None.
        names: the DNS names of the server.
        now: the time, with a zone.
    """
    if old is None or _is_due(old.bundle, now):
        key = ec.generate_private_key(ec.SECP256R1())
        authority = _authority(key, now)
        still_good = b"".join(
            _pem(older)
            for older in (x509.load_pem_x509_certificates(old.bundle) if old else ())
            if older.not_valid_after_utc > now
        )
        new = Certificates(_pem(authority) + still_good, _key_pem(key), b"", b"")
        return _signed(new, names, now)
    if _is_due(old.certificate, now) or _names(old.certificate) != list(names):
        return _signed(old, names, now)
    return old


def not_after(certificate: bytes) -> datetime.datetime:
    """When a certificate in PEM (the first, if there are more) ends."""
    return x509.load_pem_x509_certificate(certificate).not_valid_after_utc


def _is_due(certificate: bytes, now: datetime.datetime) -> bool:
    found = x509.load_pem_x509_certificate(certificate)
    whole = found.not_valid_after_utc - found.not_valid_before_utc
    return found.not_valid_after_utc - now < whole * _RENEW_AT


def _names(certificate: bytes) -> list[str]:
    found = x509.load_pem_x509_certificate(certificate)
    extension = found.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    return list(extension.value.get_values_for_type(x509.DNSName))


def _builder(now: datetime.datetime, days: int) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))  # clocks differ
        .not_valid_after(now + datetime.timedelta(days=days))
    )


def _authority(key: ec.EllipticCurvePrivateKey, now: datetime.datetime) -> x509.Certificate:
    # Each has a name of its own, so that the older one in the bundle is not taken for it.
    number = f"{now:%Y%m%d%H%M%S}"
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"kubetailor-authority-{number}")])
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    return (
        _builder(now, _AUTHORITY_DAYS)
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )


def _signed(by: Certificates, names: Sequence[str], now: datetime.datetime) -> Certificates:
    """The same authority with a new serving certificate."""
    authority = x509.load_pem_x509_certificate(by.bundle)
    authority_key = serialization.load_pem_private_key(by.authority_key, None)
    assert isinstance(authority_key, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = (
        _builder(now, _SERVING_DAYS)
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kubetailor")]))
        .issuer_name(authority.subject)
        .public_key(key.public_key())
        .add_extension(
            x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()),
            critical=False,
        )
        .sign(authority_key, hashes.SHA256())
    )
    return replace(by, certificate=_pem(certificate), key=_key_pem(key))


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


class CertificateFiles:
    """The certificate and key of a folder, in use by a server.

    Attributes:
        certificate: the file of the certificate.
        key: the file of the key.
    """

    def __init__(
        self, directory: Path, clock: Callable[[], datetime.datetime] | None = None
    ) -> None:
        self.certificate: Path = directory / CERTIFICATE
        self.key: Path = directory / KEY
        self._clock = clock or (lambda: datetime.datetime.now(datetime.timezone.utc))
        self._context: ssl.SSLContext | None = None
        self._state = self._look()
        self._ends: datetime.datetime | None = None

    def _look(self) -> object:
        return state_of(self.certificate), state_of(self.key)

    def use_in(self, context: ssl.SSLContext) -> None:
        """Keep a context, which has loaded the files as they are, up to date."""
        self._context = context
        self._ends = not_after(self.certificate.read_bytes())

    def seconds_left(self) -> float:
        """How long the certificate in use is still valid; negative once it is not."""
        if self._ends is None:
            return 0
        return (self._ends - self._clock()).total_seconds()

    async def refresh(self) -> None:
        """Load the files if they have changed; connections that are open stay as they are."""
        state = self._look()
        if state == self._state or self._context is None:
            return
        try:
            # First elsewhere: where they do not belong together, half of them would be in use.
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self.certificate, self.key)
            self._context.load_cert_chain(self.certificate, self.key)
            self._ends = not_after(self.certificate.read_bytes())
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
            log("error", "certificate refused", file=str(self.certificate), reason=str(error))
        else:
            log("info", "certificate loaded", ends=self._ends.isoformat())
        self._state = state
