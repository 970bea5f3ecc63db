"""Sign certificates, and verify signatures: ed25519, for people who hand certificates on.

    openssl genpkey -algorithm ed25519 -out key.pem          the private key; keep it
    openssl pkey -in key.pem -pubout -out key.pub            the public key, for those who verify

The signature is a file beside the certificate, `certificate.json.sig`. Signed is the SHA-256 in the certificate, which
covers all of its content, after the certificate was checked. Needs the package `cryptography`
(`pip install '.[sign]'`).
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exactstate.certify.certificate import read_content
from exactstate.certify.check import Refused, check_seal
from exactstate.errors import BackendUnavailable, BrokenFile, InvalidConfig
from exactstate.records import InvalidJson, parse_strict_json, write_atomically

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

FORMAT, VERSION = "exactstate-signature", 1
MAKE_KEY = "`openssl genpkey -algorithm ed25519 -out key.pem` makes a private key"


def signature_path(certificate: str | os.PathLike[str]) -> Path:
    """Where the signature of a certificate lies."""
    return Path(f"{os.fspath(certificate)}.sig")


def sign(certificate: str | os.PathLike[str], key: str | os.PathLike[str]) -> Path:
    """Write the signature of a certificate by a private key in PEM; returns its path."""
    private = _private_key(key)
    seal = _seal(certificate)
    entries = {
        "format": FORMAT,
        "version": VERSION,
        "algorithm": "ed25519",
        "sha256": seal,
        "public_key": private.public_key().public_bytes_raw().hex(),
        "signature": private.sign(_message(seal)).hex(),
    }
    path = signature_path(certificate)
    write_atomically(path, json.dumps(entries, indent=1) + "\n")
    return path


def verify(certificate: str | os.PathLike[str], key: str | os.PathLike[str]) -> str | None:
    """Why the signature beside a certificate is not by this public key (PEM), of this content; None if it is."""
    from_key = _public_key(key)
    path, seal = signature_path(certificate), _seal(certificate)
    entries = _read_signature(path)
    from cryptography.exceptions import InvalidSignature

    try:
        from_key.verify(bytes.fromhex(entries["signature"]), _message(seal))
    except InvalidSignature:
        if entries["public_key"] != from_key.public_bytes_raw().hex():
            return f"{path} was made with another key, {entries['public_key'][:16]}..."
        return f"{path} is not a signature of this content"
    return None


def _message(seal: str) -> bytes:
    return f"exactstate certificate, SHA-256 {seal}".encode()


def _seal(certificate: str | os.PathLike[str]) -> str:
    """The SHA-256 of the content, if that is what the certificate gives."""
    content = read_content(certificate)
    try:
        check_seal(content)
    except Refused as reason:
        raise BrokenFile(certificate, str(reason)) from None
    return str(content["sha256"])


def _read_signature(path: Path) -> dict[str, str]:
    try:
        entries = parse_strict_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BrokenFile(path, f"there is no signature to read: {(error.strerror or str(error)).lower()}.") from None
    except (InvalidJson, UnicodeDecodeError):
        entries = None
    wanted = {"signature": 128, "public_key": 64}
    if (
        not isinstance(entries, dict)
        or (entries.get("format"), entries.get("version"), entries.get("algorithm")) != (FORMAT, VERSION, "ed25519")
        or any(not _is_hex(entries.get(name), digits) for name, digits in wanted.items())
    ):
        raise BrokenFile(path, f"this is not a signature of version {VERSION} (ed25519); sign anew.")
    return entries


def _is_hex(value: Any, digits: int) -> bool:
    return isinstance(value, str) and len(value) == digits and all(c in "0123456789abcdef" for c in value)


def _private_key(path: str | os.PathLike[str]) -> Ed25519PrivateKey:
    serialization, ed25519 = _library()
    try:
        key = serialization.load_pem_private_key(_key_bytes(path), password=None)
    except (ValueError, TypeError) as error:
        raise BrokenFile(path, f"this is not a private key in PEM without a password ({error}); {MAKE_KEY}.") from None
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise InvalidConfig(f"{path} is a key of another algorithm than ed25519; {MAKE_KEY}.")
    return key


def _public_key(path: str | os.PathLike[str]) -> Ed25519PublicKey:
    serialization, ed25519 = _library()
    data = _key_bytes(path)
    if b"PRIVATE KEY" in data:
        return _private_key(path).public_key()
    try:
        key = serialization.load_pem_public_key(data)
    except ValueError as error:
        raise BrokenFile(path, f"this is not a public key in PEM ({error}).") from None
    if not isinstance(key, ed25519.Ed25519PublicKey):
        raise InvalidConfig(f"{path} is a key of another algorithm than ed25519.")
    return key


def _key_bytes(path: str | os.PathLike[str]) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise BrokenFile(path, f"the key cannot be read: {reason}; {MAKE_KEY}.") from None


def _library() -> tuple[Any, Any]:
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise BackendUnavailable(
            "signatures need the package `cryptography`, which is not installed: pip install cryptography."
        ) from None
    return serialization, ed25519
