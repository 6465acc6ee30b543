"""The attack list (docs/operators.md), one test each: what strangers, members and texts may try, and what it gets."""

import ast
import csv
import gzip
import html
import io
import re
import zipfile
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from annotation.access.audit_log import selectors
from annotation.access.audit_log.recording import record
from annotation.models import AuditEntry, Role, User
from annotation.models.snapshots import Snapshot
from config import env
from corpus.errors import BadInput
from corpus.formats import files
from corpus.models import Document
from tests import imported_files
from tests.attacked_site import FORMULA, HTML, MARK, Attacked, dangers, pages, poison
from tests.config.test_names import modules
from tests.factories import client_of, make_collection, make_item, make_member, make_pair, make_user
from tests.memory import peak_megabytes
from tests.site.test_permissions import World, routes
from tests.stages import first_quick

pytestmark = pytest.mark.django_db
READERS = first_quick(["annotator", "admin", "adjudicator", "owner"])


@pytest.fixture
def admin() -> Client:
    return client_of(make_member(make_collection("birds"), "charlie", Role.ADMIN))


# Cross-site scripting


@pytest.mark.parametrize("who", READERS)
def test_stored_markup_in_every_text_stays_text_on_every_page(who: str) -> None:
    world = Attacked(HTML)
    world.client(who).post("/c/birds/judge/next/")
    assert {path: bad for path, page in pages(world, who) if (bad := dangers(page))} == {}


def test_stored_markup_is_there_and_escaped() -> None:
    world = Attacked("nothing")
    wanted = {"Collection.title", "Collection.instruction", "Document.text", "Document.title", "Query.text"}
    wanted |= {"Judgment.comment", "Guideline.text", "Invitation.note", "Attempt.reason", "Assignment.flag_note"}
    assert wanted <= set(poison(HTML))
    assert dangers(f"<p>{HTML}</p>") == sorted({f"<{MARK}>", "<script> inline", "onfocus=", "style="}), "it finds them"
    page = world.client("admin").get(f"/c/birds/pairs/{world.pair.pk}/").text
    assert f"&lt;{MARK}" in page and f"<{MARK}" not in page


@pytest.mark.parametrize("who", first_quick(["visitor", "annotator", "owner"]))
def test_markup_in_an_address_does_not_come_back_as_markup(who: str) -> None:
    world = World()
    names = "search q act person since until before after campaign route format next a b population measure process"
    query = "?" + "&".join(f"{name}=%22%27%3E%3C{MARK}%20onfocus%3D1%3E" for name in names.split())
    assert {path: bad for path, page in pages(world, who, query) if (bad := dangers(page))} == {}
    missing = world.client(who).get(f"/%22%3E%3C{MARK}%3E/")
    assert missing.status_code == 404 and dangers(missing.text) == []


@pytest.mark.parametrize("who", first_quick(["visitor", "admin", "owner"]))
def test_markup_in_a_refused_form_does_not_come_back_as_markup(who: str) -> None:
    world = World()
    names = "login password username title name note text instruction comment email search format role days q limit"
    values = dict.fromkeys(names.split(), HTML)
    client = world.client(who)
    for route in routes(world):
        if route.action in ("public", "site"):
            client = world.client(who)  # some of these end a session
        response = client.post(route.path, values)
        if response.headers.get("Content-Type", "").startswith("text/html") and not response.streaming:
            assert dangers(response.text) == [], route.path


# Requests from elsewhere


def test_no_post_works_without_the_token_of_the_site() -> None:
    world = World()
    owner = Client(enforce_csrf_checks=True)
    owner.force_login(world.people["owner"])
    statuses = {route.path: owner.post(route.path, {"role": 3}).status_code for route in routes(world) if route.action}
    assert {path: status for path, status in statuses.items() if status not in (403, 405)} == {}
    assert set(AuditEntry.objects.exclude(act="session.in").values_list("act", flat=True)) == {"invitation.made"}


def test_a_post_from_another_site_is_refused_and_a_session_key_given_before_sign_in_is_worth_nothing_after_it() -> None:
    make_user("alice")
    client, other = Client(enforce_csrf_checks=True), Client()
    session = client.session
    session["planted"] = True
    session.save()
    client.cookies["sessionid"] = other.cookies["sessionid"] = session.session_key
    client.get("/accounts/login/")
    token = client.cookies["csrftoken"].value
    values = {"login": "alice", "password": "alice-password", "csrfmiddlewaretoken": token}
    assert client.post("/accounts/login/", values, headers={"origin": "https://evil.example"}).status_code == 403
    cookie = client.post("/accounts/login/", values, headers={"origin": "http://testserver"}).cookies["sessionid"]
    assert cookie["httponly"] and cookie["samesite"] == "Lax", "out of reach of scripts and of other sites"
    assert (other.get("/accounts/").status_code, client.get("/accounts/").status_code) == (302, 200)


EVIL = ["https://evil.example/", "//evil.example/", "/\\evil.example", "\\\\evil.example", "javascript:alert(1)"]
EVIL += [
    "http:///evil.example",
    "https:evil.example",
    "/%09/evil.example",
    "////evil.example",
    "http://testserver@evil",
    "/\r\nSet-Cookie: evil=1",
]


@pytest.mark.parametrize("target", EVIL)
def test_no_address_leads_to_another_site(target: str) -> None:
    make_user("alice")
    client = Client()
    answers = [client.post("/accounts/login/", {"login": "alice", "password": "alice-password", "next": target})]
    answers += [client.get(f"/{path}/", {"next": target}) for path in ("accounts/login", "display")]
    answers += [
        client.post(f"/{path}/", {"next": target}) for path in ("accounts/confirm", "accounts/logout", "display")
    ]
    answers += [client.get("/accounts/", headers={"HX-Request": "true", "HX-Current-URL": target})]
    for answer in answers:
        led = answer.headers.get("Location") or answer.headers.get("HX-Redirect") or "/"
        assert re.match(r"/(?![/\\])", led), led
        assert "evil" not in answer.cookies and not {"\r", "\n"} & {*"".join(answer.headers.values())}


# Which modules speak to a network, and whose addresses they use. A new one has to come into this table.
SPEAKS = {
    "addresses that people give: private ones are refused there": ("corpus/url_fetch", "api/webhooks"),
    "the rerank API that the command's caller names": ("annotation/exports/reranker_scores/client.py",),
    "only the names of errors": (
        "annotation/people/accounts/views.py", "annotation/people/accounts/invitations.py",
        "annotation/home/inbox/mails.py",
    ),
    "the judges file of the owner": ("judges/providers", "judges/batch/endpoints.py"),
    "the name of this machine": (
        "judges/engine", "judges/workers/inline_runner.py", "judges/probes/self_check.py", "judges/probes/canaries.py",
        "jobs/workers.py", "training/jobs/supervisor.py", "training/jobs/gpus.py",
    ),
    "the instance's own services": ("config", "embedded"),
    "answers; it asks nobody": ("training/serving",),
    "a free port for the processes of one training": ("training/trainers/processes.py",),
}  # fmt: skip
LIBRARIES = ["requests", "urllib.request", "urllib3", "http.client", "httpx", "httpx2", "aiohttp", "socket", "ftplib"]
LIBRARIES += ["smtplib", "trafilatura.fetch_url", "trafilatura.downloads"]


def test_the_server_fetches_addresses_of_people_in_one_place_only() -> None:
    speaking = set()
    for path in modules():
        text = path.read_text()
        for name in _imports(text) if any(library.partition(".")[0] in text for library in LIBRARIES) else ():
            if any(name == library or name.startswith(f"{library}.") for library in LIBRARIES):
                speaking.add(str(path.relative_to(env.ROOT)))
    known = tuple(place for places in SPEAKS.values() for place in places)
    assert [path for path in sorted(speaking) if not path.startswith(known)] == []
    assert any(path.startswith("corpus/url_fetch") for path in speaking)


def _imports(text: str) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


# Files that are brought


def bring(client: Client, corpus: bytes, name: str = "corpus.jsonl") -> str:
    """Why the import page refuses these documents."""
    row = imported_files.bring(client, "birds", {name: corpus, "queries.jsonl": '{"_id": "q1", "text": "What?"}'})
    assert row.state == "failed" and not Document.objects.exists()
    return client.get(f"/c/birds/import/{row.number}/").text


def test_a_gzip_bomb_is_refused_before_it_has_unpacked(admin: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "UNPACKED", 16 << 20)
    unpacked = 3 * files.UNPACKED
    bomb = io.BytesIO()
    with gzip.GzipFile(fileobj=bomb, mode="wb") as packed:
        for _ in range(unpacked >> 20):
            packed.write((b" " * 1023 + b"\n") * 1024)
    assert unpacked / len(bomb.getvalue()) > 2 * files.MAX_RATIO
    before = peak_megabytes()
    assert "200 times its size" in bring(admin, bomb.getvalue())
    assert peak_megabytes() - before < 64, "MiB more memory at the peak"


def test_a_line_without_an_end_is_refused_and_ordinary_text_that_packs_well_is_taken(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(files, "MAX_LINE", 1 << 20)
    monkeypatch.setattr(files, "UNPACKED", 1 << 20)
    (tmp_path / "long.jsonl").write_bytes(b"x" * (3 << 20))
    (tmp_path / "fine.jsonl").write_bytes((b"x" * (1 << 19) + b"\n") * 6)
    with pytest.raises(BadInput, match="1 MB"):
        list(files.FileSource(tmp_path / "long.jsonl").lines())
    assert len(list(files.FileSource(tmp_path / "fine.jsonl").lines())) == 6
    with gzip.open(tmp_path / "fine.jsonl.gz", "wb") as packed:
        for number in range(20_000):
            packed.write(b'{"_id": "d%d", "text": "%s"}\n' % (number, b"the same words again and again " * 12))
    assert sum(1 for _ in files.FileSource(tmp_path / "fine.jsonl.gz").lines()) == 20_000


@pytest.mark.parametrize("name", ["../../evil.jsonl", "corpus.jsonl"])
def test_a_zip_bomb_or_one_with_a_way_out_is_refused_unopened(admin: Client, name: str) -> None:
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(name, b" " * (70 << 20))
    row = imported_files.bring(admin, "birds", {"corpus.zip": bomb.getvalue()})
    assert row.state == "failed"
    page = html.unescape(admin.get(f"/c/birds/import/{row.number}/").text)
    said = "in it unpacks to more than 200 times its size" if name == "corpus.jsonl" else "has a path outside"
    assert f'corpus.zip: "{name}" {said}' in page


def test_a_body_larger_than_its_sender_may_send_is_not_read(settings) -> None:
    settings.MAX_UPLOAD_BYTES = 2_000_000
    make_user("alice")

    class Untouched(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            raise AssertionError("the body was read")

    stranger, alice = Client(), Client()
    alice.force_login(User.objects.get())
    for client, size in ((stranger, 1_000_001), (alice, 2_000_001)):
        body = {"wsgi.input": Untouched(), "CONTENT_LENGTH": str(size)}
        answer = client.generic("POST", "/accounts/login/", b"", "multipart/form-data; boundary=x", **body)
        assert answer.status_code == 413 and "too large" in answer.text


@pytest.mark.parametrize("name", ["../../evil.jsonl", "/etc/evil.jsonl", "..\\..\\evil.jsonl", "a/../../evil.jsonl"])
def test_the_name_of_an_upload_leads_nowhere(admin: Client, name: str, tmp_path: Path, monkeypatch, settings) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    upload = SimpleUploadedFile("x", b'{"_id": "d1", "text": "A document."}\n{broken')
    upload._name = name  # as a client that sends any name
    queries = SimpleUploadedFile("queries.jsonl", b'{"_id": "q1", "text": "What?"}')
    at = admin.post("/c/birds/import/", {"files": [upload, queries]})["Location"]
    imported_files.work_off()
    page = admin.get(at).text
    assert "line 2" in page and str(tmp_path) not in page.replace("\\", "/") and str(settings.VAR) not in page
    assert not list(tmp_path.parent.glob("**/evil*")) and not Path("/etc/evil.jsonl").exists()


def test_a_download_stays_in_its_folder(tmp_path: Path, settings) -> None:
    world = World()
    settings.VAR = tmp_path
    folder = tmp_path / "exports" / "birds" / "one"
    folder.mkdir(parents=True)
    for name in ("labels.csv", "hidden.txt"):
        (folder / name).write_text("fine")
    (tmp_path / "secret_key").write_text("secret")
    manifest = {"files": [{"name": "labels.csv"}, {"name": "../../../secret_key"}]}
    row = Snapshot.objects.create(collection=world.collection, format="csv", folder=str(folder), manifest=manifest)
    client = world.client("admin")
    assert b"".join(client.get(f"/c/birds/exports/{row.number}/labels.csv").streaming_content) == b"fine"
    tricks = ["../../../secret_key", "..%2f..%2f..%2fsecret_key", "%2e%2e/%2e%2e/%2e%2e/secret_key", "hidden.txt"]
    for trick in (*tricks, f"{tmp_path}/secret_key".lstrip("/"), f"/{tmp_path}/secret_key", "labels.csv%00.png"):
        answer = client.get(f"/c/birds/exports/{row.number}/{trick}")
        assert answer.status_code in (400, 404), trick
        assert not answer.streaming
    for kind, name in (("jobs", "files/..%2f..%2fsecret_key"), ("models", "card")):
        number = world.job.pk if kind == "jobs" else world.model.pk
        assert client.get(f"/c/birds/training/{kind}/{number}/{name}").status_code == 404


# What leaves the site


@pytest.mark.slow
def test_no_cell_of_any_csv_is_a_formula() -> None:
    world = Attacked(FORMULA)
    User.objects.filter(pk=world.people["admin"].pk).update(username="+cmd|calc")
    record(User.objects.get(username="+cmd|calc"), "settings.changed", world.collection, title=FORMULA)
    client = world.client("owner")
    answers = {route.path: client.get(route.path) for route in routes(world)}
    texts = {path: one.text for path, one in answers.items() if one.headers.get("Content-Type", "")[:8] == "text/csv"}
    entries = selectors.filter_records(world.collection, selectors.AuditLogFilters())
    texts["audit log"] = "".join(selectors.csv_lines(entries))
    assert len(texts) >= 3
    assert "+cmd" in texts["audit log"]
    for name, text in texts.items():
        for row in csv.reader(io.StringIO(text)):
            bad = [cell for cell in row if re.match(r"[=@\t\r]|[+-](?![\w.:-]*$)", cell)]
            assert bad == [], name


def test_no_text_of_a_visitor_becomes_a_mail_header_and_no_foreign_host_is_mailed(settings, mailoutbox) -> None:
    settings.EMAIL_HOST = "127.0.0.1"
    make_user("alice", email="alice@example.org")
    for address in ("alice@example.org\r\nBcc: all@example.org", "alice@example.org\nSubject: x", "a@b,c@d"):
        Client().post("/accounts/password/reset/", {"email": address})
    alice = {"email": "alice@example.org"}
    assert Client().post("/accounts/password/reset/", alice, headers={"host": "evil.example"}).status_code == 400
    assert mailoutbox == []
    Client().post("/accounts/password/reset/", alice)
    assert [mail.to for mail in mailoutbox] == [["alice@example.org"]] and not mailoutbox[0].bcc


# Sessions


def test_the_django_admin_debugger_and_documents_are_not_there() -> None:
    for path in ("/admin/", "/admin/login/", "/__debug__/", "/.git/config", "/static/../config/settings.py", "/.env"):
        assert Client().get(path).status_code in (400, 404), path
    assert Client().get("/nowhere/").text.count("Traceback") == 0


# NUL characters, which name nothing that PostgreSQL could hold


@pytest.mark.slow
def test_every_page_refuses_a_nul_in_its_query() -> None:
    world = World()
    owner = world.client("owner")
    owner.raise_request_exception = False
    assert {owner.get(f"{route.path}?q=a%00b").status_code for route in routes(world)} == {400}


def test_a_nul_in_an_address_or_a_cookie_is_refused() -> None:
    client = Client(raise_request_exception=False)
    client.force_login(make_member(make_collection("books"), "alice", Role.ADMIN).user)
    for address in ("/c/bo%00oks/", "/c/books/judge/?x=%00", "/%00", "/c/books/pairs/1%00/"):
        answer = client.get(address)
        assert answer.status_code == 400 and "Bad request" in answer.text, address
    assert client.get("/", headers={"cookie": 'sessionid="aaaaaaaaaaaaaaaa\\000"'}).status_code == 400


def test_a_nul_in_a_form_is_left_out_or_refused_and_never_an_error_of_ours() -> None:
    books = make_collection("books")
    alice = make_member(books, "alice")
    make_item(make_pair(books))
    client = Client(raise_request_exception=False)
    client.force_login(alice.user)
    page = client.post("/c/books/judge/next/", follow=True).content.decode()
    (item,) = re.findall(r'name="item" value="(\d+)"', page)[:1]
    assert client.post("/c/books/judge/draft/", {"item": item, "token": "a\0b", "comment": "x"}).status_code == 400
    client.logout()
    assert client.post("/accounts/login/", {"login": "a\0b", "password": "\0"}).status_code in (200, 400)
