"""Signatures: by the right key, of this content; everything else is a reason."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from exactstate.certify import Certificate
from exactstate.certify.certificate import sealed
from exactstate.certify.sign import sign, signature_path, verify
from exactstate.errors import BackendUnavailable, BrokenFile, InvalidConfig
from tests.certify.certificates import certificate

pytest.importorskip("cryptography", reason="signatures need the extra `sign`, which `make install` installs")


@pytest.fixture
def keys(tmp_path: Path) -> list[tuple[Path, Path]]:
    """Two pairs of a private and a public key."""
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    pairs = []
    for name in "ab":
        key = Ed25519PrivateKey.generate()
        private, public = tmp_path / f"{name}.pem", tmp_path / f"{name}.pub"
        private.write_bytes(
            key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
        )  # fmt: skip
        public.write_bytes(
            key.public_key().public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)
        )  # fmt: skip
        pairs.append((private, public))
    return pairs


@pytest.fixture
def path(tmp_path: Path) -> Path:
    Certificate(certificate("S3")).write(tmp_path / "c.json")
    return tmp_path / "c.json"


def test_verify_of_a_signature(path: Path, keys: list[tuple[Path, Path]]) -> None:
    assert sign(path, keys[0][0]) == signature_path(path)
    assert verify(path, keys[0][1]) is None
    assert verify(path, keys[0][0]) is None  # a private key contains the public one
    assert "was made with another key" in str(verify(path, keys[1][1]))


def test_verify_after_a_change(path: Path, keys: list[tuple[Path, Path]]) -> None:
    sign(path, keys[0][0])
    content = certificate("S3")
    Certificate(sealed({**content, "name": "S4"})).write(path)
    assert "is not a signature of this content" in str(verify(path, keys[0][1]))
    Certificate({**content, "name": "S4"}).write(path)
    with pytest.raises(BrokenFile, match="changed after it was sealed"):
        verify(path, keys[0][1])


def test_verify_with_the_public_key_of_the_signer_swapped(path: Path, keys: list[tuple[Path, Path]]) -> None:
    """The key in the signature file is only a hint: the signature is verified by the key that was given."""
    sign(path, keys[0][0])
    held = json.loads(signature_path(path).read_text())
    sign(path, keys[1][0])
    other = json.loads(signature_path(path).read_text())
    signature_path(path).write_text(json.dumps({**other, "public_key": held["public_key"]}))
    assert "is not a signature of this content" in str(verify(path, keys[0][1]))


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"format": "exactstate-signature", "version": 1}', "\ud800"])
def test_verify_of_something_else(text: str, path: Path, keys: list[tuple[Path, Path]]) -> None:
    signature_path(path).write_bytes(text.encode(errors="surrogatepass"))
    with pytest.raises(BrokenFile, match="this is not a signature"):
        verify(path, keys[0][1])


def test_sign_with_something_else(path: Path, tmp_path: Path, keys: list[tuple[Path, Path]]) -> None:
    with pytest.raises(BrokenFile, match=r"the key cannot be read: no such file.*openssl genpkey"):
        sign(path, tmp_path / "none.pem")
    with pytest.raises(BrokenFile, match="this is not a private key"):
        sign(path, keys[0][1])
    with pytest.raises(BrokenFile, match="this is not a public key"):
        verify(path, path)
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key

    other = generate_private_key(SECP256R1())
    (tmp_path / "ec.pem").write_bytes(other.private_bytes(
        form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption()))  # fmt: skip
    with pytest.raises(InvalidConfig, match="another algorithm than ed25519"):
        sign(path, tmp_path / "ec.pem")
    assert not signature_path(path).exists()


def test_sign_without_the_package(path: Path, keys: list[tuple[Path, Path]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "cryptography.hazmat.primitives", None)
    with pytest.raises(BackendUnavailable, match="pip install cryptography"):
        sign(path, keys[0][0])
