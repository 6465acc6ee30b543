"""Where webhooks go: public addresses by https, and named networks; looked at after resolving, at each request."""

import asyncio
import socket
import ssl
import subprocess
import threading
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import httpx2
import pytest

from api.webhooks import sending
from api.webhooks.addresses import ReceiverClient, check_url
from api.webhooks.sending import send_request
from corpus.errors import BadInput
from corpus.url_fetch import client
from corpus.url_fetch.addresses import FetchTarget, WebAddress
from corpus.url_fetch.problems import NoPage
from tests.api.webhooks.conftest import Receiver


def resolves_to(monkeypatch: pytest.MonkeyPatch, *found: str) -> None:
    """Every name has these addresses."""

    def getaddrinfo(host: str, port: int, **_: object) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, port)) for one in found]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)


def find_address(url: str) -> str:
    """Return where a request to a receiver would go."""
    client = ReceiverClient()
    return client.locate(client.check(url))[0][0]


INSIDE = [
    "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1",
    "::1", "fe80::1", "fc00::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:7f00:1::", "::",
]  # fmt: skip


@pytest.mark.parametrize("address", INSIDE)
def test_a_name_that_leads_inside_is_refused_also_when_another_address_of_it_is_public(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for found in ([address], ["93.184.216.34", address]):
        resolves_to(monkeypatch, *found)
        with pytest.raises(NoPage, match="public network"):
            find_address("https://receiver.example/")


def test_a_public_address_is_reached_by_https_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    resolves_to(monkeypatch, "93.184.216.34")
    assert find_address("https://receiver.example:8443/") == "93.184.216.34"
    with pytest.raises(NoPage, match="public network"):
        find_address("http://receiver.example/")


def test_a_named_network_is_reached_by_both(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    settings.WEBHOOK_NETWORKS = [ip_network("10.0.0.0/8"), ip_network("fd00::/8")]
    for address in ("10.1.2.3", "fd00::7"):
        resolves_to(monkeypatch, address)
        assert find_address("http://receiver.example/") == address
        assert find_address("https://receiver.example/") == address
    for address in ("127.0.0.1", "169.254.169.254", "11.0.0.1"):
        resolves_to(monkeypatch, address)
        with pytest.raises(NoPage, match="public network"):
            find_address("http://receiver.example/")


@pytest.mark.parametrize("host", ["2130706433", "0x7f.1", "127.1", "localhost", "[::1]", "[::ffff:7f00:1]"])
def test_however_this_machine_is_written_it_is_refused(host: str) -> None:
    with pytest.raises(NoPage):
        find_address(f"https://{host}/")


@pytest.mark.parametrize(
    "url",
    [
        "http://receiver.example/", "ftp://receiver.example/", "https://", "https:///path", "receiver.example",
        "javascript:alert(1)", "https://receiver.example/ x", "https://receiver.example/\x00", "https://[::1",
        "https://user:password@receiver.example/", "https://receiver.example/#part", "https://receiver.example:99999/",
        "https://receiver.example:0/", "https://127.0.0.1/", "https://localhost/", "https://[::1]/", "https://10.0.0.1/",
        "https://169.254.169.254/latest/meta-data/", "https://receiver.example/" + "x" * 2_000, "",
    ],
)  # fmt: skip
def test_an_address_to_which_nothing_can_be_sent_is_refused_when_it_is_entered(url: str) -> None:
    with pytest.raises(BadInput) as refused:
        check_url(url)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "host",
    [
        "2130706433", "0x7f000001", "0x7f.1", "0177.1", "127.1", "0", "134744072", "8.8.2056", "1.2.3.", "99999999999",
        "localhost.", "LOCALHOST", "a.localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback",
        "127.0.0.1.", "127。0。0。1", "[::ffff:127.0.0.1]",
    ],
)  # fmt: skip
def test_a_number_and_this_machines_own_names_are_no_host_of_a_receiver(host: str) -> None:
    with pytest.raises(BadInput):
        check_url(f"https://{host}/hook")


@pytest.mark.parametrize(
    "url",
    [
        "https://receiver.example/hook?token=1",
        "https://4.example/",
        "https://0x.example/",
        "https://bücher.example:8443/",
        "https://1.1.1.1/",
    ],
)
def test_other_addresses_are_taken(url: str) -> None:
    check_url(url)


def ask(url: str) -> sending.ReceiverAnswer:
    return asyncio.run(send_request(url, {}, "{}"))


def test_the_request_goes_to_the_address_that_was_checked_whatever_the_name_says_a_moment_later(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def find_once(client: ReceiverClient, address: WebAddress) -> list[FetchTarget]:
        asked.append(address.host)
        return [("127.0.0.1", ("127.0.0.1", address.port))]

    monkeypatch.setattr(ReceiverClient, "locate", find_once)
    port = httpx2.URL(receiver.url).port
    # The name has no address at all: a second look at it would fail.
    answer = ask(f"http://rebinding.invalid:{port}/hook")
    assert (answer.status, asked) == (200, ["rebinding.invalid"])
    assert receiver.got[0].headers["host"] == f"rebinding.invalid:{port}"


def test_a_refused_address_gets_no_connection(receiver: Receiver, settings: Any) -> None:
    settings.WEBHOOK_NETWORKS = []
    answer = ask(receiver.url)
    assert (answer.problem, answer.status) == ("address", None) and receiver.got == []


def test_a_name_without_an_address_is_said_to_be_so() -> None:
    assert ask("https://nowhere.invalid/").problem == "name"


def test_no_proxy_of_the_environment_is_asked(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1/")
    assert ask(receiver.url).status == 200


def test_a_certificate_counts_for_the_name_and_not_for_the_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=receiver"
    names = ["-addext", "subjectAltName=DNS:receiver.example", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*command.split(), *names], check=True, capture_output=True)
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(certificate, key)
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]

    def serve() -> None:
        for _ in range(2):
            plain, _address = listener.accept()
            try:
                with serving.wrap_socket(plain, server_side=True) as connection:
                    got = b""
                    while not got.endswith(b"{}"):  # closed before it is read, the body would end the connection
                        got += connection.recv(65_536) or b"{}"
                    connection.sendall(b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n")
            except (ssl.SSLError, OSError):
                plain.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    settings.WEBHOOK_NETWORKS = [ip_network("127.0.0.0/8")]
    trusting = ssl.create_default_context(cafile=str(certificate))
    monkeypatch.setattr(client, "tls_context", lambda: trusting)
    resolves_to(monkeypatch, "127.0.0.1")
    assert ask(f"https://receiver.example:{port}/").status == 204
    other = ask(f"https://other.example:{port}/")
    assert other.problem == "connection" and "certificate" in other.text.lower()
    thread.join()
    listener.close()


def test_the_setting_takes_networks_and_says_what_is_wrong(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from config import env

    monkeypatch.setenv("QUORUM_WEBHOOK_NETWORKS", "10.0.0.0/8, 127.0.0.1")
    assert [str(one) for one in env.networks("QUORUM_WEBHOOK_NETWORKS")] == ["10.0.0.0/8", "127.0.0.1/32"]
    monkeypatch.setenv("QUORUM_WEBHOOK_NETWORKS", "10.0.0.1/8")
    with pytest.raises(SystemExit, match="2"):
        env.networks("QUORUM_WEBHOOK_NETWORKS")
    assert "QUORUM_WEBHOOK_NETWORKS: 10.0.0.1/8 has host" in capsys.readouterr().err
