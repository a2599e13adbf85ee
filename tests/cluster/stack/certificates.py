"""An authority of the stack's own, and what it signs for servers on loopback."""

from __future__ import annotations

import datetime as dt
import ipaddress
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

__all__ = ["Authority"]

_HOUR: Final = dt.timedelta(hours=1)


class Authority:
    """Signs certificates; `pem` is its own, for who is to trust it."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "loopback")])
        public = self._key.public_key()
        certificate = (
            self._builder(self._name, dt.timedelta(days=1))
            .public_key(public)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        self.pem: bytes = certificate.public_bytes(serialization.Encoding.PEM)

    def _builder(self, subject: x509.Name, lives: dt.timedelta) -> x509.CertificateBuilder:
        now = dt.datetime.now(dt.timezone.utc)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - 48 * _HOUR)
            .not_valid_after(now + lives)
        )

    def write(self, folder: Path, *, lives: dt.timedelta = 24 * _HOUR) -> Path:
        """Write `tls.crt` and `tls.key` for localhost into a folder, made if need be.

        Args:
            folder: where.
            lives: how long from now on it is valid; negative for one that has expired.

        Returns:
            The folder.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        certificate = (
            self._builder(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")]), lives)
            .public_key(key.public_key())
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        pem = serialization.Encoding.PEM
        form = serialization.PrivateFormat.PKCS8
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in (
            ("tls.key", key.private_bytes(pem, form, serialization.NoEncryption())),
            ("tls.crt", certificate.public_bytes(pem)),
        ):
            # Renamed into place: who reads it meanwhile finds the old one or the new one.
            new = folder / f".{name}.new"
            new.write_bytes(text)
            new.rename(folder / name)
        return folder
