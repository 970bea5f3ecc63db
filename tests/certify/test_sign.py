"""Signatures: by the right key, of this content; everything else is a reason."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from exactstate.certify import Certificate
from exactstate.certify.certificate import sealed
from exactstate.certify.sign import sign, signature_path, verify
from exactstate.errors import BackendUnavailable, BrokenFile
from tests.certify.certificates import certificate, make_key

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="signatures need ssh-keygen, of OpenSSH")


@pytest.fixture
def keys(tmp_path: Path) -> list[tuple[Path, Path]]:
    """Two pairs of a private and a public key."""
    return [make_key(tmp_path / name) for name in "ab"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    Certificate(certificate("S3")).write(tmp_path / "c.json")
    return tmp_path / "c.json"


def test_verify_of_a_signature(path: Path, keys: list[tuple[Path, Path]]) -> None:
    assert sign(path, keys[0][0]) == signature_path(path)
    assert verify(path, keys[0][1]) is None
    assert "is not a signature of this content by this key" in str(verify(path, keys[1][1]))
    sign(path, keys[1][0])
    assert verify(path, keys[1][1]) is None


def test_signatures_are_those_of_ssh(path: Path, keys: list[tuple[Path, Path]]) -> None:
    """Made without us, and verified by us."""
    subprocess.run(["ssh-keygen", "-q", "-Y", "sign", "-n", "exactstate", "-f", keys[0][0], path], check=True)
    assert verify(path, keys[0][1]) is None
    signature_path(path).unlink()
    subprocess.run(["ssh-keygen", "-q", "-Y", "sign", "-n", "file", "-f", keys[0][0], path], check=True)
    assert "is not a signature of this content" in str(verify(path, keys[0][1]))  # of another namespace


def test_verify_after_a_change(path: Path, keys: list[tuple[Path, Path]]) -> None:
    sign(path, keys[0][0])
    content = certificate("S3")
    Certificate(sealed({**content, "name": "S4"})).write(path)
    assert "is not a signature of this content" in str(verify(path, keys[0][1]))
    Certificate({**content, "name": "S4"}).write(path)
    with pytest.raises(BrokenFile, match="changed after it was sealed"):
        verify(path, keys[0][1])


@pytest.mark.parametrize("text", ["", "{}", "-----BEGIN SSH SIGNATURE-----\n"])
def test_verify_of_something_else(text: str, path: Path, keys: list[tuple[Path, Path]]) -> None:
    signature_path(path).write_text(text)
    assert "is not a signature of this content" in str(verify(path, keys[0][1]))


def test_sign_with_something_else(path: Path, tmp_path: Path, keys: list[tuple[Path, Path]]) -> None:
    for key in (tmp_path / "none", path):
        with pytest.raises(BrokenFile, match=r"this private key cannot sign .*ssh-keygen -t ed25519"):
            sign(path, key)
    assert not signature_path(path).exists()
    with pytest.raises(BrokenFile, match="there is no signature to read"):
        verify(path, keys[0][1])
    for key in (keys[0][0], path):
        with pytest.raises(BrokenFile, match="this is not a public key of SSH"):
            verify(path, key)
    with pytest.raises(BrokenFile, match="the key cannot be read: no such file"):
        verify(path, tmp_path / "none")


def test_sign_without_the_program(
    path: Path, keys: list[tuple[Path, Path]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BackendUnavailable, match="need the program ssh-keygen"):
        sign(path, keys[0][0])
