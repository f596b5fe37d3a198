"""HAProxy's own check of our configuration, and HTTPS by it: the only thing the other tests of the proxy do without."""

from __future__ import annotations

import http.client
import http.server
import shutil
import ssl
import subprocess
import threading
from pathlib import Path

import pytest

from tests.support.serving import ROOT, free_port, get, haproxy, proxy, proxy_files

SETTINGS = {"CARRY_LAB_HTTP": "127.0.0.1:8080", "CARRY_LAB_HTTPS": "127.0.0.1:8443", "CARRY_LAB_COOKIE_KEY": "key"}
COMPOSE = ["-f", str(ROOT / "deploy/proxy/haproxy.cfg"), "-f", str(ROOT / "deploy/proxy/replicas.cfg")]


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """Chain and key in one file, for this machine's name, good for a day."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("needs openssl")
    key, chain, both = tmp_path / "key.pem", tmp_path / "chain.pem", tmp_path / "both.pem"
    subprocess.run(
        [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", chain],
        check=True, capture_output=True,
    )  # fmt: skip
    both.write_text(chain.read_text() + key.read_text())
    return both


def checked(files: list[str], more: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run([haproxy(), "-c", *files], env=SETTINGS | more, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("secure", [False, True], ids=["http", "https"])
@pytest.mark.parametrize("replicas", ["compose", "elsewhere"])
def test_the_configuration_is_valid_without_a_warning(
    replicas: str, secure: bool, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    more = {"CARRY_LAB_CERTIFICATE": str(request.getfixturevalue("certificate"))} if secure else {}
    files = COMPOSE if replicas == "compose" else proxy_files(tmp_path, [8501, 8502])
    told = checked(files, more)
    assert told.returncode == 0, told.stderr
    assert "WARNING" not in told.stderr
    assert "ALERT" not in told.stderr


def test_a_misspelt_line_would_be_seen(tmp_path: Path) -> None:
    broken = tmp_path / "broken.cfg"
    broken.write_text((ROOT / "deploy/proxy/haproxy.cfg").read_text().replace("option redispatch", "option redispath"))
    told = checked(["-f", str(broken), *proxy_files(tmp_path, [8501])[2:]], {})
    assert told.returncode != 0
    assert "redispath" in told.stderr


class Replica(http.server.BaseHTTPRequestHandler):
    """Says that it is well, whatever it is asked."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_: object) -> None:
        pass


def test_with_a_certificate_everything_goes_by_https(tmp_path: Path, certificate: Path) -> None:
    secure = free_port()
    more = {"CARRY_LAB_CERTIFICATE": str(certificate), "CARRY_LAB_HTTPS": f"127.0.0.1:{secure}"}
    replica = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Replica)
    threading.Thread(target=replica.serve_forever, daemon=True).start()
    try:
        with proxy(tmp_path, [replica.server_address[1]], more) as front:
            status, headers, _ = get(front.port, "/lstm?v=1&batch=3", {"Host": "localhost"})
            assert (status, headers["Location"]) == (308, "https://localhost/lstm?v=1&batch=3")
            context = ssl.create_default_context(cafile=str(certificate))
            connection = http.client.HTTPSConnection("localhost", secure, context=context, timeout=10)
            connection.request("GET", "/")
            answer = connection.getresponse()
            assert (answer.status, answer.read()) == (200, b"ok")
            connection.close()
            assert answer.headers["Strict-Transport-Security"] == "max-age=31536000"
            assert "; Secure" in answer.headers["Set-Cookie"]
    finally:
        replica.shutdown()
        replica.server_close()
