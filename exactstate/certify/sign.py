"""Sign certificates, and verify signatures, with the keys of SSH: for people who hand certificates on.

    ssh-keygen -t ed25519 -f key        the private key, `key`; the public one, `key.pub`, is for those who verify

The signature is a file beside the certificate, `certificate.json.sig`, as `ssh-keygen -Y sign -n exactstate` writes it.
Signed are the bytes of a certificate whose seal holds.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from exactstate.certify.certificate import read_content
from exactstate.certify.check import Refused, check_seal
from exactstate.errors import BackendUnavailable, BrokenFile
from exactstate.records import write_atomically

NAMESPACE = "exactstate"


def signature_path(certificate: str | os.PathLike[str]) -> Path:
    """Where the signature of a certificate lies."""
    return Path(f"{os.fspath(certificate)}.sig")


def sign(certificate: str | os.PathLike[str], key: str | os.PathLike[str]) -> Path:
    """Write the signature of a certificate by a private key; returns its path."""
    done = _ssh_keygen(certificate, "sign", "-f", str(key))
    if done.returncode:
        make = "`ssh-keygen -t ed25519 -f key` makes one"
        raise BrokenFile(key, f"this private key cannot sign ({_reason(done)}); {make}.")
    write_atomically(path := signature_path(certificate), done.stdout)
    return path


def verify(certificate: str | os.PathLike[str], key: str | os.PathLike[str]) -> str | None:
    """Why the signature beside a certificate is not by this public key, of this content; None if it is."""
    path = signature_path(certificate)
    try:
        public = Path(key).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BrokenFile(key, f"the key cannot be read: {str(getattr(error, 'strerror', error)).lower()}.") from None
    if not public.startswith(("ssh-", "ecdsa-", "sk-")) or "\n" in public:
        raise BrokenFile(key, "this is not a public key of SSH, one line such as key.pub holds.")
    if not path.is_file():
        raise BrokenFile(path, "there is no signature to read.")
    with TemporaryDirectory() as folder:
        signers = Path(folder) / "signers"
        signers.write_text(f"signer {public}\n", encoding="utf-8")
        done = _ssh_keygen(certificate, "verify", "-f", str(signers), "-I", "signer", "-s", str(path))
    return f"{path} is not a signature of this content by this key ({_reason(done)})" if done.returncode else None


def _ssh_keygen(certificate: str | os.PathLike[str], what: str, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """`ssh-keygen -Y` on a certificate whose seal holds."""
    try:
        check_seal(read_content(certificate))
    except Refused as reason:
        raise BrokenFile(certificate, str(reason)) from None
    command = ["ssh-keygen", "-Y", what, "-n", NAMESPACE, *arguments]
    try:
        return subprocess.run(command, input=Path(certificate).read_bytes(), capture_output=True)
    except FileNotFoundError:
        raise BackendUnavailable("signatures need the program ssh-keygen, which OpenSSH brings; install it.") from None


def _reason(done: subprocess.CompletedProcess[bytes]) -> str:
    lines = (done.stderr + done.stdout).decode(errors="replace").strip().splitlines()
    return lines[0].strip().rstrip(".") if lines else f"exit code {done.returncode}"
