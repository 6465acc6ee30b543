"""Pages are fetched from the open network alone, within limits, and lose their menus (check 12)."""

import ipaddress
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler

import pytest
from django.utils import translation

from corpus.errors import BadInput
from corpus.url_fetch import robots, texts
from corpus.url_fetch.addresses import is_public
from corpus.url_fetch.client import FetchLimits
from corpus.url_fetch.pages import fetch_page
from tests.open_web import NOISY, PUBLIC, Web, open_web


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    with open_web(monkeypatch) as found:
        yield found


def test_a_page_is_fetched_with_its_name_from_the_address_that_was_checked(web: Web) -> None:
    web.page("/a%20b?q=%C3%A9", "<html><body>hello</body></html>")
    seen: list[int] = []
    page = fetch_page("http://ice.example/a%20b?q=é", progress=seen.append)
    assert (page.url, page.body) == ("http://ice.example/a%20b?q=é", b"<html><body>hello</body></html>")
    assert (web.asked, web.looked_up) == ([("ice.example", "/a%20b?q=%C3%A9")], ["ice.example"])
    assert (seen[-1], len(page.sha256)) == (len(page.body), 64)


PRIVATE = [
    "127.0.0.1", "127.9.9.9", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254",
    "100.64.0.1", "0.0.0.0", "192.0.0.8", "192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1",
    "239.255.255.250", "240.0.0.1", "255.255.255.255", "192.88.99.1", "::1", "::", "::ffff:127.0.0.1",
    "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::ffff:93.184.215.14", "::127.0.0.1", "fe80::1", "fe80::1%lo",
    "fc00::1", "fd12:3456::1", "fec0::1", "ff02::1", "64:ff9b::7f00:1", "64:ff9b:1::1", "2002:7f00:1::",
    "2001:0:53aa:64c::1", "2001:db8::1", "2001:10::1", "3fff::1", "100::1", "5f00::1", "4000::1", "nonsense",
]  # fmt: skip


PUBLIC_ONES = [PUBLIC, "8.8.8.8", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2a00:1450::1"]


def test_addresses_of_every_private_kind_are_told_from_public_ones() -> None:
    assert [address for address in [*PRIVATE, *PUBLIC_ONES] if is_public(address)] == PUBLIC_ONES


def test_whatever_is_not_global_by_the_registry_is_not_public_here() -> None:
    for block in range(256):
        for rest in ("0.0.1", "64.0.1", "168.0.1", "88.99.1", "254.1.1", "16.1.1", "18.1.1"):
            found = ipaddress.ip_address(f"{block}.{rest}")
            assert not is_public(str(found)) or (found.is_global and not found.is_multicast), found


@pytest.mark.parametrize(
    ("to", "said"),
    [
        ("file:///etc/passwd", "http://"),
        ("http://user:secret@ice.example/", "name or password"),
        ("http://ice.example:6379/", "ports"),
    ],
)
def test_a_redirect_to_another_scheme_port_or_with_a_password_is_refused(web: Web, to: str, said: str) -> None:
    web.redirect("/", to)
    with pytest.raises(BadInput, match=said):
        fetch_page("http://ice.example/")


def test_redirects_are_followed_and_counted(web: Web) -> None:
    web.redirect("/one", "/two")
    web.page("/two", "<p>there</p>")
    web.redirect("/round", "/round")
    assert fetch_page("http://ice.example/one").url == "http://ice.example/two"
    with pytest.raises(BadInput, match="more than 5 times"):
        fetch_page("http://ice.example/round")
    assert web.asked.count(("ice.example", "/round")) == 6


def test_redirects_share_the_time_of_one_page(web: Web) -> None:
    def later(handler: BaseHTTPRequestHandler) -> None:
        time.sleep(0.2)
        web.redirect("/", "/")
        web.answers["/"](handler)
        web.answers["/"] = later

    web.answers["/"] = later
    with pytest.raises(BadInput, match="did not load"):
        fetch_page("http://ice.example/", FetchLimits(seconds=0.5))


def test_what_is_no_page_of_text_is_refused_in_the_readers_language(web: Web) -> None:
    web.page("/", "x", Content_Type="application/pdf")
    for url, detail in (
        ("http://ice.example/", "application/pdf"),
        ("http://ice.example/missing", "404"),
        ("http://no-such-name.invalid/", "no-such-name"),
    ):
        with pytest.raises(BadInput, match=detail) as refused:
            fetch_page(url)
        assert str(refused.value).isascii()
    with translation.override("zh-hans"), pytest.raises(BadInput, match="404") as refused:
        fetch_page("http://ice.example/missing")
    assert not str(refused.value).isascii()


def test_headers_that_no_honest_server_sends_are_refused_in_one_line(web: Web) -> None:
    web.redirect("/", "http://[half-an-address")
    with pytest.raises(BadInput, match="not a valid address"):
        fetch_page("http://ice.example/")
    web.page("/long", "x")

    def boast(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/plain")
        handler.send_header("Content-Length", "9" * 5_000)
        handler.end_headers()

    web.answers["/long"] = boast
    with pytest.raises(BadInput, match="could not be read: bad Content-Length"):
        fetch_page("http://ice.example/long")


@pytest.mark.parametrize("charset", ["undefined", "idna", "hex", "no-such-coding"])
def test_a_charset_that_reads_nothing_is_no_reason_to_break_off(web: Web, charset: str) -> None:
    web.page("/", NOISY, Content_Type=f"text/html; charset={charset}")
    assert "creeps under stress" in texts.extract_text(fetch_page("http://ice.example/"))[1]
    web.page("/plain", "É".encode("latin-1"), Content_Type=f"text/plain; charset={charset}")
    with pytest.raises(BadInput, match="not UTF-8"):
        texts.extract_text(fetch_page("http://ice.example/plain"))


@pytest.mark.parametrize(
    ("charset", "body"),
    [("utf-7", b"ice +2AA- sheets"), ("unicode_escape", rb"ice \ud800 sheets"), ("raw-unicode-escape", rb"ice \ud800")],
)
def test_no_charset_brings_half_a_surrogate_pair_which_nothing_can_store(web: Web, charset: str, body: bytes) -> None:
    page = b"<html><head><title>%b</title></head><body><p>%b</p></body></html>" % (body, body * 20)
    for kind, sent in (("plain", body), ("html", page)):
        web.page(f"/{kind}", sent, Content_Type=f"text/{kind}; charset={charset}")
        title, text = texts.extract_text(fetch_page(f"http://ice.example/{kind}"))
        assert body.decode() in f"{title} {text}", "as bytes of ASCII it says this, and can be stored"


def test_a_page_in_punycode_is_not_decoded_for_minutes(web: Web) -> None:
    web.page("/", b"a" * 1_000_000 + b"-" + b"b" * 1_000_000, Content_Type="text/plain; charset=punycode")
    began = time.process_time()
    assert len(texts.extract_text(fetch_page("http://ice.example/"))[1]) == 2_000_001
    assert time.process_time() - began < 20


def test_rules_that_could_not_be_read_are_read_again(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    rules = robots.RobotRules()
    with monkeypatch.context() as broken, pytest.raises(MemoryError):
        broken.setattr(robots, "fetch_page", fail)
        rules.check("http://ice.example/thin")
    web.page("/robots.txt", "User-agent: *\nDisallow: /secret\n", Content_Type="text/plain")
    rules.check("http://ice.example/thin")


# --- The text of a page -----------------------------------------------------------------------------------------


def test_menus_advertisements_and_footers_are_taken_out_of_a_noisy_page(web: Web) -> None:
    web.page("/", NOISY)
    title, text = texts.extract_text(fetch_page("http://ice.example/"))
    assert f"<title>{title}</title>" in NOISY
    assert "creeps under stress" in text and "calves into" in text
    for noise in ("Shop now", "cookies", "skis", "penguins", "Copyright", "Imprint", "Log in", "var "):
        assert noise not in text


def test_a_page_in_another_alphabet_and_coding_keeps_its_letters(web: Web) -> None:
    arabic = "تنتشر الصفائح الجليدية تحت وزنها لأن الجليد يزحف تحت الضغط. "
    body = f"<html><head><title>الجليد</title></head><body><article><p>{arabic * 5}</p></article></body></html>"
    web.page("/", body.encode("cp1256"), Content_Type="text/html; charset=windows-1256")
    title, text = texts.extract_text(fetch_page("http://ice.example/"))
    assert title == "الجليد"
    assert arabic.strip() in text


def test_plain_text_is_taken_as_it_is_without_control_characters(web: Web) -> None:
    web.page("/", "One.\r\n\x00\x07Two.\r\n\r\n\r\n\r\nThree.", Content_Type="text/plain")
    assert texts.extract_text(fetch_page("http://ice.example/")) == ("", "One.\nTwo.\n\nThree.")


@pytest.mark.parametrize("body", ["<html><body><script>var x = 1;</script></body></html>", "", "<html></html>"])
def test_a_page_without_text_says_so(web: Web, body: str) -> None:
    web.page("/", body)
    with pytest.raises(BadInput, match="No text found"):
        texts.extract_text(fetch_page("http://ice.example/"))
