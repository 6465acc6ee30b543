"""Pages in English and Chinese: how the language is chosen, and catalogues that are whole."""

import ast
import json
import re
from importlib import import_module
from io import StringIO
from pathlib import Path

import polib
import pytest
from babel.messages import Message
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from django.utils import translation
from django.utils.formats import get_format
from django.utils.translation import to_locale

from annotation.access.languages import translate_stored
from annotation.models import Role, User
from benchmark.models import Run
from config import env, messages
from corpus.models import Collection
from jobs import background, leases
from jobs.models import BackgroundJob, JobState
from tests.config.test_names import modules
from tests.factories import make_collection, make_member

pytestmark = pytest.mark.django_db

CHINESE = {"HTTP_ACCEPT_LANGUAGE": "zh-CN,zh;q=0.9,en;q=0.5"}


@pytest.fixture(autouse=True)
def alice() -> User:
    """Somebody with an account, without whom the site would ask for its owner."""
    return User.objects.create_user("alice", password="a long enough one")


def html_of(client: Client, address: str = "/accounts/login/", **headers: str) -> str:
    return client.get(address, **headers).content.decode()


def test_a_page_speaks_what_the_browser_asks_for_and_offers_the_other_language_in_its_own_words(client: Client) -> None:
    assert all(part in html_of(client) for part in ('<html lang="en" dir="ltr"', ">简体中文</button>"))
    chinese = html_of(client, **CHINESE)
    assert '<html lang="zh-hans" dir="ltr"' in chinese and ">English</button>" in chinese
    assert '<html lang="en"' in html_of(Client()), "one request leaves no language for the next"


def test_a_visitor_chooses_a_language_on_the_sign_in_page_and_comes_back_there(client: Client) -> None:
    answer = client.post(reverse("display"), {"language": "zh-hans", "next": "/accounts/login/?next=/"})
    assert (answer.status_code, answer["Location"]) == (303, "/accounts/login/?next=/")
    assert '<html lang="zh-hans"' in html_of(client)


def test_the_language_of_an_account_holds_on_a_device_that_asks_for_another(client: Client, alice: User) -> None:
    client.force_login(alice)
    client.post(reverse("display"), {"language": "zh-hans"})
    elsewhere = Client()
    elsewhere.force_login(alice)
    answer = elsewhere.get(reverse("account"), HTTP_ACCEPT_LANGUAGE="en")
    assert '<html lang="zh-hans"' in answer.content.decode()
    assert (answer["Content-Language"], "Accept-Language" in answer["Vary"]) == ("zh-hans", True)


def test_a_language_that_is_not_offered_changes_nothing_and_the_switch_leads_to_pages_of_this_site_only(client) -> None:
    client.force_login(User.objects.get())
    client.post(reverse("display"), {"language": "tlh"})
    assert User.objects.get().language == ""
    for place in ("https://elsewhere.example/", "//elsewhere.example", "/no/such/page/", ""):
        assert client.post(reverse("display"), {"language": "en", "next": place})["Location"] == "/"


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_no_format_of_a_time_names_a_zone_which_corpus_reader_time_does(language: str) -> None:
    names = [name for name in dir(import_module(f"config.formats.{to_locale(language)}.formats")) if name.isupper()]
    with translation.override(language):
        timed = [form for form in map(get_format, names) if "H" in str(form)]
    assert len(timed) == 6 and not any("T" in form for form in timed)


# The catalogues (docs/annotators.md): every marked string, each with a translation that fits into its place.

PLACES = re.compile(r"%\(\w+\)[sd]|\{\}")
TAGS = re.compile(r"<[^>]+>")
CATALOGUES = [messages.catalogue_path(env.ROOT, locale) for locale in messages.translated_locales()]


@pytest.fixture(params=CATALOGUES, ids=lambda path: path.parent.parent.name)
def catalogue(request: pytest.FixtureRequest) -> polib.POFile:
    return polib.pofile(str(request.param), wrapwidth=0)


def told(entry: polib.POEntry) -> str:
    return str(entry.msgstr_plural.get(0, "") if entry.msgid_plural else entry.msgstr)


def test_a_catalogue_holds_every_marked_string_and_no_other_with_its_translation(catalogue: polib.POFile) -> None:
    marked = {
        (texts_of(message)[0], message.context or "") for message in messages.collect_messages(env.ROOT) if message.id
    }
    held = {(entry.msgid, entry.msgctxt or "") for entry in catalogue}
    assert (sorted(marked - held), sorted(held - marked)) == ([], []), "run manage.py messages, and translate"
    assert [entry.msgid for entry in catalogue if entry.msgid.strip() and not told(entry)] == []


def test_no_marked_string_is_inside_an_f_string() -> None:
    """Python before 3.12 has no tokens inside one, so the string would not be collected there."""
    calls = [
        f"{path.relative_to(env.ROOT)}:{call.lineno}"
        for path in modules()
        for template in ast.walk(ast.parse(path.read_text()))
        if isinstance(template, ast.JoinedStr)
        for call in ast.walk(template)
        if isinstance(call, ast.Call) and ast.unparse(call.func) in {"_", "gettext", "ngettext", "pgettext"}
        if call.args and isinstance(call.args[0], ast.Constant)
    ]
    assert calls == []


# Signs and words with which only the rest of a sentence begins, and what stands alone in brackets.
TAIL = re.compile(r"[(]|(and|or|but|nor|of|including|than|which|with)\b")
ALONE = {"(you)", "(empty document)", "(empty query)", "(no contribution)", "(no evidence)"}


def test_no_string_is_a_fragment_of_a_sentence(catalogue: polib.POFile) -> None:
    texts = [text for entry in catalogue for text in (entry.msgid, entry.msgid_plural) if text]
    assert [text for text in texts if text.lstrip()[:1] in {*",;.:)]}"}] == []
    assert [text for text in texts if text != text.strip() and "\n\n" not in text] == [], "but for a page of text"
    assert [text for text in texts if TAIL.match(text) and text not in ALONE] == []


def test_a_translation_has_the_places_and_tags_of_its_string_and_no_sign_that_ends_an_attribute(catalogue) -> None:
    """Translations stand in templates as they are: what a string does not hold, its translation must not bring."""
    wrong = []
    for entry in catalogue:
        text, words = entry.msgid_plural or entry.msgid, told(entry)
        is_same = all(set(pattern.findall(text)) == set(pattern.findall(words)) for pattern in (PLACES, TAGS))
        if not is_same or any(sign in words and sign not in entry.msgid + entry.msgid_plural for sign in '"<>'):
            wrong.append(entry.msgid)
    assert wrong == []


# Words that docs/annotators.md has another one for: pair, token, adjudicator, gold, route, judge.
OTHER_WORDS = re.compile("文档对|词元|裁决员|等待裁决|黄金|条路径|(评判|标注|裁判)模型")
HALF_WIDTH = re.compile(r"[\u4e00-\u9fff][,;:!]|[,;:!][\u4e00-\u9fff]")


def test_chinese_has_one_word_for_a_thing_and_its_own_punctuation() -> None:
    catalogue = polib.pofile(str(messages.catalogue_path(env.ROOT, "zh_Hans")), wrapwidth=0)
    texts = {entry.msgid: told(entry) for entry in catalogue if entry.msgid != "yes,no"}  # A pair for `yesno`.
    assert {text for text in texts.values() if OTHER_WORDS.search(text) or HALF_WIDTH.search(text)} == set()


def test_the_compiled_catalogue_is_that_of_the_text(catalogue: polib.POFile) -> None:
    assert Path(catalogue.fpath).with_suffix(".mo").read_bytes() == catalogue.to_binary()


def texts_of(message: Message) -> tuple[str, ...]:
    """A string and, where it has one, its plural."""
    return (message.id,) if isinstance(message.id, str) else tuple(message.id)


def test_strings_are_collected_as_templates_and_python_look_them_up(tmp_path: Path) -> None:
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "page.html").write_text("""{% load i18n %}<p
      >{% if x == 1 %}{% translate "100% sure" %}{% endif %}
    {% blocktranslate trimmed count n=n with a=b|default:_("none") %}
        {{ n }} pair of {{ a }}{% plural %}{{ n }} pairs
    {% endblocktranslate %}</p>
  {{ y|default:_("nothing") }}{% translate "before" context "in time" %}""")
    (tmp_path / "templates" / "mail.txt").write_text("""{% load i18n %}{% translate "in a mail" %}""")
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "__init__.py").write_text(
        '_("a"); gettext_lazy("b"); ngettext("c", "ds", n); gettext_noop("e"); other("f"); _(variable)'
    )
    found = {(texts_of(one), one.context) for one in messages.collect_messages(tmp_path) if one.id}
    assert found == {
        (("100%% sure",), None), (("%(n)s pair of %(a)s", "%(n)s pairs"), None), (("none",), None),
        (("nothing",), None), (("before",), "in time"), (("in a mail",), None),
        (("a",), None), (("b",), None), (("c", "ds"), None), (("e",), None),
    }  # fmt: skip


def test_commands_speak_english_in_a_process_whose_pages_spoke_chinese() -> None:
    make_collection("books")
    err = StringIO()
    with translation.override("zh-hans"), pytest.raises(SystemExit):
        call_command("ledger", "books", stderr=err)
    assert "no campaign" in err.getvalue()


STIFF = re.compile(r"\b(?:stands?|holds?|anew|somebody|nobody|everybody|whoever|shall|given back)\b", re.I)
NOT_COMPLETED = re.compile(r"\b(?:settle[ds]?|right answers?|(?:is|are|was|were) right|Right|open orders)\b")
STANDARD = re.compile(r"\b(?:stand out|stand in for|hold any out)\b")


def test_no_string_has_a_word_that_the_style_sheet_leaves_out() -> None:
    """The rubric is apart: what judges are asked is a new version of their prompts when a word of it changes."""
    entries = [entry for entry in polib.pofile(str(CATALOGUES[0])) if not entry.obsolete]
    texts = [
        re.sub(r"%\(\w+\)s", "", STANDARD.sub("", text))
        for entry in entries
        if [place for place, _line in entry.occurrences] != ["corpus/rubric.py"]
        for text in (entry.msgid, entry.msgid_plural)
    ]
    assert len(texts) > 5_000, "the walk finds them"
    assert [text for text in texts if STIFF.search(text)] == []
    # Nothing is settled or right where it is completed or correct; one state of tasks, on no page, has the name.
    assert [text for text in texts if NOT_COMPLETED.search(text)] == ["settled"]
    # The 228 strings that were rewritten by docs/developers.md, each beside its new words.
    rewrites = json.loads((Path(__file__).parent / "rewrites.json").read_text())
    earlier = {old for old, new in rewrites if old != new}
    assert len(earlier) == 228
    now = {" ".join(text.split()) for entry in entries for text in (entry.msgid, entry.msgid_plural)}
    assert earlier & now == set()


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        ("The connection was interrupted. Try again.", "连接在网页中途断开：请重试。"),
        ("grade 7 is above the highest grade 3; raise the scale to 7", "等级 7 高于最高等级 3；请把最高等级改为 7"),
        (
            "q.jsonl, line 3: grade 7 is above the highest grade 3; raise the scale to 7",
            "q.jsonl，第 3 行：等级 7 高于最高等级 3；请把最高等级改为 7",
        ),
        ("taken up 5 times without getting further: Killed", "尝试了 5 次都没有进展：Killed"),
        ("ValueError: not a number", None),
        ("a, b", None),
        ("", None),
    ],
)
def test_a_stored_message_is_found_again_with_its_values(stored: str, said: str | None) -> None:
    with translation.override("zh-hans"):
        assert translate_stored(stored) == said


@pytest.fixture
def books() -> Collection:
    return make_collection("books")


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        ("grade 7 is above the highest grade 3; raise the scale to 7", "等级 7 高于最高等级 3；请把最高等级改为 7"),
        ("OSError: <b>no room</b>", '<span lang="en">OSError: &lt;b&gt;no room&lt;/b&gt;</span>'),
    ],
)
def test_a_page_says_why_a_job_failed_in_its_language_or_marks_what_is_english(books, stored: str, shown: str) -> None:
    run = Run.objects.create(collection=books, name="bm25", kind="bm25", state="failed", depth=10, error=stored)
    client = Client(headers={"accept-language": "zh-CN"})
    client.force_login(make_member(books, "charlie", Role.ADMIN).user)
    assert shown in client.get(f"/c/books/benchmark/runs/{run.pk}/").text
    english = client.get(f"/c/books/benchmark/runs/{run.pk}/", headers={"accept-language": "en"}).text
    assert "<b>" not in english and stored[:3].upper() in english.upper() and 'lang="en">OS' not in english


def test_a_job_that_nobody_finishes_says_so_in_words_that_have_a_translation() -> None:
    job, _new = background.enqueue("tests.never", 1)
    for _ in range(leases.MOST_ATTEMPTS):
        assert leases.claim(BackgroundJob, kind="tests.never") is not None
        BackgroundJob.objects.update(state=JobState.WAITING)
    assert leases.claim(BackgroundJob, kind="tests.never") is None
    job.refresh_from_db()
    assert job.state == JobState.FAILED and "5 times" in job.error
    with translation.override("zh-hans"):
        assert translate_stored(job.error) == "尝试了 5 次都没有进展"
