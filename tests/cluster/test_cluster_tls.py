"""A cluster whose traffic is encrypted, as docs/how-to/cluster.md says: own certificates, on loopback."""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("ray")

sys.path.insert(0, str(Path(__file__).parents[1] / "server"))
from running import free_port

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificates"),
]


def openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


def authority(folder: Path, name: str) -> None:
    subject = ("-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.crt")
    openssl(folder, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificates")
    authority(folder, "ca")
    authority(folder, "stranger")
    made = ("-keyout", "node.key", "-out", "node.csr", "-subj", "/CN=node")
    openssl(folder, "req", "-newkey", "rsa:2048", "-nodes", *made)
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1")
    signed = ("-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", "names", "-out", "node.crt")
    openssl(folder, "x509", "-req", "-in", "node.csr", "-days", "2", *signed)
    return folder


def environment(certificates: Path, who: str) -> dict[str, str]:
    return {
        **os.environ,
        "RAY_AUTH_TOKEN_PATH": str(certificates / "token"),
        "RAY_NUM_REDIS_GET_RETRIES": "1",
        "RAY_USE_TLS": "1",
        "RAY_TLS_SERVER_CERT": str(certificates / f"{who}.crt"),
        "RAY_TLS_SERVER_KEY": str(certificates / f"{who}.key"),
        "RAY_TLS_CA_CERT": str(certificates / "ca.crt"),
    }


def kster(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kster", "cluster", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)


@pytest.fixture(scope="module")
def cluster(certificates: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, int]]:
    """The data directory and the port."""
    data, port = tmp_path_factory.mktemp("encrypted") / "data", free_port()
    node = environment(certificates, "node")
    options = ("--data", str(data), "--port", str(port), "--cores", "2", "--shards", "1")
    done = kster(node, "up", *options)
    assert done.returncode == 0, done.stderr
    try:
        yield data, port
    finally:
        kster(node, "down", "--data", str(data))


def test_a_cluster_speaks_tls_to_those_with_a_certificate(
    cluster: tuple[Path, int], certificates: Path
) -> None:
    data, port = cluster
    trusting = ssl.create_default_context(cafile=str(certificates / "ca.crt"))
    trusting.set_alpn_protocols(["h2"])
    with (
        socket.create_connection(("127.0.0.1", port), timeout=30) as plain,
        trusting.wrap_socket(plain, server_hostname="127.0.0.1") as encrypted,
    ):
        assert encrypted.version() in ("TLSv1.2", "TLSv1.3")
    done = kster(environment(certificates, "node"), "status", "--data", str(data))
    assert done.returncode == 0, done.stderr
    assert "shard 0" in done.stdout


def test_without_tls_or_with_a_strangers_certificate_nobody_joins(
    cluster: tuple[Path, int], certificates: Path
) -> None:
    data, _ = cluster
    plain = environment(certificates, "node") | {"RAY_USE_TLS": "0"}
    for other in (plain, environment(certificates, "stranger")):
        done = kster(other, "status", "--data", str(data))
        assert done.returncode != 0
        assert "no Ray cluster answers" in done.stderr
