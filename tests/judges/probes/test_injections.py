"""Hostile text: prompts, parser, pages and exports hold, whatever stands in a document (issue "Unbreakable", check 14).

What a model does with it is another question, which canaries answer (label_quality/test_canaries.py).
"""

import csv
import json
from html.parser import HTMLParser

import pytest
from django.test import Client

from annotation.exports.formats import FORMATS
from annotation.exports.options import ExportOptions
from annotation.exports.snapshots import create_snapshot, write_snapshot
from annotation.models import User
from corpus.models import Collection, Pair
from judges.domain.verdicts import parse_turn, parse_vote
from judges.models import Attempt
from judges.probes.injections import INJECTIONS, Injection
from judges.prompts.render import TEXT_LIMIT, repair_prompt, vote_prompt
from judges.records import Inputs
from tests.engine_parts import collection_of, judge, make_panel
from tests.hostile_scene import CALM, FIRST, TEXTS, hostile_collection, wrapped
from tests.judged_books import export
from tests.judges.prompts.test_prompts import FENCE, _check_data_stays_data
from tests.modelserver.fixtures import LocalModels

EVERY = pytest.mark.parametrize("injection", INJECTIONS, ids=lambda one: one.name)


@EVERY
def test_it_stays_in_its_fence_in_every_prompt(injection: Injection) -> None:
    _check_data_stays_data(injection.text[:TEXT_LIMIT])
    inputs = Inputs("q", ("a",), injection.text[:TEXT_LIMIT], wrapped(injection.text))
    prompt = vote_prompt(inputs)
    _, (_, body) = FENCE.findall(prompt.user)
    assert json.loads(body)["document"] == wrapped(injection.text)
    repaired = repair_prompt(prompt, "it was empty")
    assert len(FENCE.findall(repaired.user)) == 2
    assert injection.text[:50] not in repaired.user[repaired.user.rfind(">>>") :]


@EVERY
def test_an_honest_answer_that_repeats_it_keeps_its_own_verdict(injection: Injection) -> None:
    document = wrapped(injection.text)
    for verdict, word in ((1, "yes"), (0, "no")):
        reason = f"The document says {injection.text} and that is no statement."
        turn = parse_turn(
            json.dumps({"reference": [FIRST, injection.text], "reason": reason, "response": word}), document
        )
        assert (turn.verdict, turn.reason) == (verdict, reason)
        assert [document[quote.start : quote.end] for quote in turn.quotes] == [FIRST, injection.text]
        vote = parse_vote(json.dumps({"reason": reason, "response": word}, ensure_ascii=False))
        assert (vote.verdict, vote.reason) == (verdict, reason)


def test_through_the_whole_engine_no_answer_is_read_as_another(worker: object, model_server: LocalModels) -> None:
    """Debates and votes on a document for each text; each answer quotes the text. 0 wrong parses of all answers."""
    collection = collection_of(1)
    pair = Pair.objects.get()
    for injection in INJECTIONS:
        document = pair.document
        document.pk, document.text, document.title = None, f"{injection.text}. {FIRST}", injection.text
        document.external_id, document.content_hash = injection.name, injection.name
        document.save()
        Pair.objects.create(collection=collection, query=pair.query, document=document)
    make_panel(model_server, debate=("stance", "stance"), votes=("yes", "no", "yes", "no", "yes"))
    status = judge(check=True).json
    pairs = 1 + len(INJECTIONS)
    assert status["escalations"] == {"disagreement": pairs} and status["failed"] == 0
    said = {"for": 1, "against": 0}
    wrong = [
        attempt
        for attempt in Attempt.objects.all()
        if attempt.verdict != said.get(attempt.role, int(attempt.judge.model == "yes"))
    ]
    assert Attempt.objects.filter(counts=True, outcome="labelled").count() == pairs * (4 + 5)
    assert wrong == []
    assert all(request["user"].count("<<<DATA ") >= 1 for request in model_server.requests())


class Shape(HTMLParser):
    """Tags with their classes and the names of their attributes, and the text under `.document .text`."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, ...]] = []
        self.text, self.depth = "", 0
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.tags.append((tag, values.get("class") or "", *sorted(values)))
        if self.depth or (tag, values.get("class")) == ("div", "text"):
            self.depth += tag not in ("br", "img", "input")
            self.labels = (values.get("class") or "").startswith("tag ")

    def handle_endtag(self, tag: str) -> None:
        self.depth -= bool(self.depth)
        self.labels = False

    def handle_data(self, data: str) -> None:
        if self.depth and not self.labels:
            self.text += data


@pytest.mark.slow
@pytest.mark.django_db
def test_a_page_has_the_same_elements_whatever_its_texts_say(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pair pages and judging pages of all texts: the document's text is whole, and no element came or went."""
    monkeypatch.setattr(
        "annotation.work.judging.page.CONFIRMED_FOR_SECONDS", 3600
    )  # "Saved" stays, however slow we are
    books = hostile_collection()
    pairs = list(books.pair_set.select_related("document").order_by("pk"))
    shapes = {page: [] for page in ("pair", "judge")}
    client.force_login(User.objects.get(username="charlie"))
    for pair in pairs:
        answer = client.get(f"/c/books/pairs/{pair.pk}/")
        assert answer.status_code == 200
        shapes["pair"].append(Shape(answer.text))
    client.force_login(User.objects.get(username="alice"))
    client.post("/c/books/judge/next/")
    for number in range(len(pairs)):
        page = client.get("/c/books/judge/").text
        shapes["judge"].append(Shape(page))
        sent = {name: page.partition(f'name="{name}" value="')[2].partition('"')[0] for name in ("item", "token")}
        assert client.post("/c/books/judge/submit/", {**sent, "grade": number % 2}).status_code == 303
    for found in shapes.values():
        assert sorted(shape.text for shape in found) == sorted(pair.document.text for pair in pairs)
        calm = [shape.tags for shape in found if any(f" {text} " in shape.text for text in CALM)]
        assert len(calm) == 2
        assert [shape.text[:60] for shape in found if shape.tags not in calm] == []


@pytest.fixture
def books(db: None) -> Collection:
    return hostile_collection()


def written(books: Collection, name: str, folder) -> str:
    write_snapshot(create_snapshot(books, ExportOptions(format=name), folder))
    return (folder / FORMATS[name].file).read_bytes().decode()


@pytest.mark.slow
def test_exports_of_one_file_are_read_back_whole(books: Collection, tmp_path) -> None:
    import ir_measures

    pairs = len(TEXTS)
    written(books, "qrels", tmp_path / "qrels")
    assert len(list(ir_measures.read_trec_qrels(str(tmp_path / "qrels" / "qrels.txt")))) == pairs
    written(books, "csv", tmp_path / "csv")
    with (tmp_path / "csv" / "labels.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == pairs
    turns = _lines(written(books, "debates", tmp_path / "debates"))
    assert len(turns) == 4 * pairs and {turn["verdict"] for turn in turns if turn["side"] == "for"} == {1}
    assert [turn["quotes"][1] for turn in turns[::4]] == list(TEXTS)
    assert all(turn["found"] == [True, True, False] for turn in turns)
    assert [turn["reason"] for turn in turns[::4]] == [f"It says {text}" for text in TEXTS]
    assert written(books, "judgments", tmp_path / "judgments") == ""


def _lines(text: str) -> list[dict]:
    return [json.loads(line) for line in text.split("\n")[:-1]]


@pytest.mark.slow
def test_training_sets_are_read_back_whole_by_their_libraries(books: Collection, tmp_path) -> None:
    texts = {wrapped(text) for text in TEXTS}
    titled = {f"Title {text}" for text in TEXTS}
    options = {"split": 1.0, "near_duplicates": 0, "teacher": "labels"}
    export(books, "beir", tmp_path / "beir", **options)
    corpus = _load(tmp_path, "json", tmp_path / "beir" / "corpus.jsonl")
    assert set(corpus["text"]) == texts and set(corpus["title"]) == titled and len(corpus) == len(texts)
    export(books, "parquet", tmp_path / "parquet", **options)
    rows = _load(tmp_path, "parquet", *sorted((tmp_path / "parquet" / "data").glob("*.parquet")))
    assert len(rows) == len(texts)
    for name in ("prism", "sentence-transformers", "trl"):
        export(books, name, tmp_path / name, **options)
        found = _load(tmp_path, "json", tmp_path / name / "train.jsonl")
        held = "\n".join(json.dumps(row, ensure_ascii=False) for row in found)
        missing = [text[:60] for text in texts if json.dumps(text, ensure_ascii=False)[1:-1] not in held]
        assert missing == [], name


def _load(tmp_path, kind: str, *files):
    import datasets

    datasets.disable_progress_bars()
    names = [str(file) for file in files]
    return datasets.load_dataset(kind, data_files={"train": names}, cache_dir=str(tmp_path / "cache"))["train"]
