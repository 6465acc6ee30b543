"""Where webhooks go: public addresses by https, and named networks; looked at after resolving, at each request."""

import asyncio
import socket
from ipaddress import ip_network
from typing import Any

import httpx2
import pytest

from api.webhooks import sending
from api.webhooks.addresses import ReceiverClient, check_url
from api.webhooks.sending import send_request
from config import env
from corpus.errors import BadInput
from corpus.url_fetch.addresses import FetchTarget, WebAddress
from corpus.url_fetch.problems import NoPage
from tests.api.webhooks.conftest import Receiver


def resolves_to(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    """Every name has these addresses."""

    def getaddrinfo(host: str, port: int, **_: object) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)


def find_address(url: str) -> str:
    """Return where a request to a receiver would go."""
    client = ReceiverClient()
    return client.locate(client.check(url))[0][0]


def test_a_name_leads_to_public_addresses_by_https_and_to_named_networks_by_both(monkeypatch, settings):
    """Which addresses are public: tests/corpus/url_fetch."""
    for host in ("2130706433", "0x7f.1", "localhost", "[::1]"):
        with pytest.raises(NoPage):
            find_address(f"https://{host}/")
    for inside in ("127.0.0.1", "169.254.169.254", "::1", "fc00::1", "::ffff:10.0.0.1"):
        for addresses in ([inside], ["93.184.216.34", inside]):
            resolves_to(monkeypatch, *addresses)
            with pytest.raises(NoPage, match="public network"):
                find_address("https://receiver.example/")
    resolves_to(monkeypatch, "93.184.216.34")
    assert find_address("https://receiver.example:8443/") == "93.184.216.34"
    with pytest.raises(NoPage, match="public network"):
        find_address("http://receiver.example/")
    settings.WEBHOOK_NETWORKS = [ip_network("10.0.0.0/8"), ip_network("fd00::/8")]
    for address in ("10.1.2.3", "fd00::7"):
        resolves_to(monkeypatch, address)
        assert {find_address(f"{scheme}://receiver.example/") for scheme in ("http", "https")} == {address}
    for address in ("127.0.0.1", "11.0.0.1"):
        resolves_to(monkeypatch, address)
        with pytest.raises(NoPage, match="public network"):
            find_address("http://receiver.example/")


WRONG = [
    "http://receiver.example/", "ftp://receiver.example/", "https://", "https:///path", "receiver.example", "",
    "javascript:alert(1)", "https://receiver.example/ x", "https://receiver.example/\x00", "https://[::1",
    "https://user:password@receiver.example/", "https://receiver.example/#part", "https://receiver.example:99999/",
    "https://receiver.example:0/", "https://10.0.0.1/", "https://169.254.169.254/latest/meta-data/",
    "https://receiver.example/" + "x" * 2_000,
    *(f"https://{host}/hook" for host in ("2130706433", "0x7f.1", "127.1", "0", "8.8.2056", "1.2.3.", "localhost.",
      "a.localhost", "ip6-loopback", "127.0.0.1.", "127。0。0。1", "[::ffff:127.0.0.1]")),
]  # fmt: skip


def test_an_address_to_which_nothing_can_be_sent_is_refused_when_it_is_entered() -> None:
    for url in WRONG:
        with pytest.raises(BadInput) as refused:
            check_url(url)
        assert "\n" not in str(refused.value), url
    for host in ("receiver.example/hook?token=1", "4.example", "0x.example", "bücher.example:8443", "1.1.1.1"):
        check_url(f"https://{host}")


def ask(url: str) -> sending.ReceiverAnswer:
    return asyncio.run(send_request(url, {}, "{}"))


def test_the_request_goes_to_the_address_that_was_checked_whatever_the_name_says_a_moment_later(receiver, monkeypatch):
    hosts: list[str] = []

    def find_once(client: ReceiverClient, address: WebAddress) -> list[FetchTarget]:
        hosts.append(address.host)
        return [("127.0.0.1", ("127.0.0.1", address.port))]

    monkeypatch.setattr(ReceiverClient, "locate", find_once)
    port = httpx2.URL(receiver.url).port
    # The name has no address at all: a second look at it would fail.
    answer = ask(f"http://rebinding.invalid:{port}/hook")
    assert (answer.status, hosts) == (200, ["rebinding.invalid"])
    assert receiver.got[0].headers["host"] == f"rebinding.invalid:{port}"


def test_a_refused_address_and_an_unknown_name_get_no_connection(receiver: Receiver, settings: Any) -> None:
    settings.WEBHOOK_NETWORKS = []
    answer = ask(receiver.url)
    assert (answer.problem, answer.status) == ("address", None) and receiver.got == []
    assert ask("https://nowhere.invalid/").problem == "name"


def test_the_setting_takes_networks_and_says_what_is_wrong(monkeypatch, capsys):
    monkeypatch.setenv("QUORUM_WEBHOOK_NETWORKS", "10.0.0.0/8, 127.0.0.1")
    assert [str(network) for network in env.networks("QUORUM_WEBHOOK_NETWORKS")] == ["10.0.0.0/8", "127.0.0.1/32"]
    monkeypatch.setenv("QUORUM_WEBHOOK_NETWORKS", "10.0.0.1/8")
    with pytest.raises(SystemExit, match="2"):
        env.networks("QUORUM_WEBHOOK_NETWORKS")
    assert "QUORUM_WEBHOOK_NETWORKS: 10.0.0.1/8 has host" in capsys.readouterr().err
