"""One definition of relevance: read out of everything that people, judges, training sets and rerankers are given."""

import asyncio
import json
import re
from html.parser import HTMLParser
from io import StringIO
from itertools import takewhile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2
import pyarrow.parquet
import pytest
from django.utils.translation import override

from actions.services import Actor
from annotation.exports.sets.shapes import PROMPT
from annotation.models import Role
from annotation.work.quality_control import gold, gold_reasons
from annotation.work.quality_control.matching import DebateForm
from annotation.work.settings import guidelines
from annotation.work.settings import services as texts
from config import demo
from corpus.collections.options import SettingsOptions
from corpus.evidence.measures import EvidenceTarget
from corpus.models import Collection, Pair
from corpus.rubric import HELPFULNESS, SUFFICIENCY, Definition
from judges.campaigns import configurations, lifecycle
from judges.campaigns.forecasts import pair_inputs
from judges.domain.debate import AGAINST, FOR
from judges.domain.protocol import Protocol
from judges.engine.calls import JudgeQuestion
from judges.prompts import render
from judges.prompts.writing import measure_prompt, write_prompt
from judges.providers.received import Received
from judges.providers.rerank import RerankProvider
from judges.records import SCALES, Inputs, Judge, ModelRequest, Prompt, Turn
from tests.called import call
from tests.factories import client_of, make_collection, make_document, make_item, make_member, make_pair, make_query
from tests.judged_books import export, lines, make_books
from tests.tiny_models import tiny
from training.published import protocol
from training.published.opening import open_scorer
from training.recipes import data, rendering

pytestmark = pytest.mark.django_db

OWN = 'Relevant is what names a mapping.\nNot "a list".'
SAID = {FOR: Turn(1, "It says so."), AGAINST: Turn(0, "It does not.")}
TOLD = re.compile(
    r"^What relevant means here(.*?)(?=\n\n(?:How to work|Your answer|The material|The query:))", re.S | re.M
)


class Shown(HTMLParser):
    """The blocks of the guidelines on the judging page, list items numbered as readers see them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.blocks: list[str] = []
        self.number = 0
        start = page.index('class="guidelines prose"')
        self.feed(page[start : page.index("</details>", start)])

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag == "ol":
            self.number = 1
        elif tag == "br":
            self.blocks[-1] += "\n"
        elif tag in ("p", "h3", "li"):
            self.blocks.append(f"{self.number}. " if tag == "li" and self.number else "")
            self.number += bool(self.number)

    def handle_endtag(self, tag: str) -> None:
        if tag == "ol":
            self.number = 0

    def handle_data(self, text: str) -> None:
        if self.blocks:
            self.blocks[-1] += text


def read_prompt(text: str) -> str:
    """The definition in a judge's message: as it stands, or out of its JSON."""
    (told,) = TOLD.findall(text)
    if told.startswith(": "):
        return str(told.removeprefix(": "))
    return str(json.loads(told.partition(": ")[2])["definition"])


def read_page(page: str) -> str:
    """The definition in the guidelines of queries with answers: all between what opens them and what follows."""
    blocks = [block.strip() for block in Shown(page).blocks]
    ends = {"How to judge", guidelines.WHERE[1]}
    told = takewhile(lambda block: block not in ends, blocks[blocks.index(guidelines.HEAD) + 1 :])
    statement, *rest = [block for block in told if block != guidelines.WHERE[0]]
    return "\n".join([statement, *(("", *rest) if rest else ())])


def judged(inputs: Inputs) -> list[Prompt]:
    """Everything that judges are asked to decide, by name of policy and scale."""
    found = [render.turn_prompt(inputs, FOR, 1), render.turn_prompt(inputs, AGAINST, 2, SAID)]
    found += [render.vote_prompt(inputs, grades) for grades in SCALES.values()]  # ensemble, single, filter, LARA
    found += [render.decision_prompt(inputs, grades) for grades in SCALES.values()]
    found += [render.adjudicate_prompt(inputs, SAID)]
    agents = Protocol().debate_agents(4)
    return [*found, render.turn_prompt(inputs, agents[0], 1, agents=agents)]


def sent_to_a_reranker(inputs: Inputs) -> dict[str, object]:
    """The body of the request to a rerank endpoint."""
    sent: list[dict[str, object]] = []

    def note(asked: httpx2.Request) -> httpx2.Response:
        sent.append(json.loads(asked.content))
        return httpx2.Response(200)

    provider = object.__new__(RerankProvider)
    provider.base_url, provider.client = "http://127.0.0.1", httpx2.AsyncClient(transport=httpx2.MockTransport(note))
    judge = Judge("ranker", "rerank-endpoint", "ranker", id=1)
    asyncio.run(provider.send(ModelRequest(judge, render.vote_prompt(inputs), {}, inputs, "vote"), Received()))
    return sent[0]


def configure(folder: Path, content: str) -> Any:
    """What a settings file changes in the collection "books"."""
    file = folder / "settings.toml"
    file.write_text(content)
    return call("configure_collection", "books", file, "--json").json["changed"]


def gold_desk(collection: Collection) -> str:
    """The page on which an expert grades gold."""
    gold.draw(collection=collection, size=3, seed=1, spot=0, by=None)
    member = make_member(collection, "erin")
    member.is_expert = True
    member.save()
    return str(client_of(member).get(f"/c/{collection.name}/gold/grade/").text)


def asked_for_gold_reasons(inputs: Inputs) -> list[Prompt]:
    """What the writers of arguments about gold pairs are asked, in both rounds."""
    found: list[Prompt] = []

    async def ask(_claimed: object, question: JudgeQuestion) -> Turn:
        found.append(question.prompt)
        return Turn(1 - question.slot[2], "It says so.")

    judges = [Judge(name, "openai", name, id=n) for n, name in enumerate("ab")]
    caller = SimpleNamespace(plan=SimpleNamespace(debaters=judges), ask=ask)
    asyncio.run(gold_reasons.ask_rounds(DebateForm(2), caller, SimpleNamespace(inputs=inputs)))
    return found


def versions_of(collection: Collection) -> list[tuple[int, bool]]:
    return list(collection.guidelines.order_by("version").values_list("version", "is_built_in"))


def hash_of(collection: Collection) -> str:
    """Of the prompt of a vote on its first pair."""
    pair = Pair.objects.filter(collection=collection).order_by("pk")[0]
    return render.vote_prompt(pair_inputs(collection, pair.query, pair.document)).sha256


@pytest.mark.parametrize(
    ("rubric", "instruction", "definition"),
    [
        ("sufficiency", "", SUFFICIENCY),
        ("helpfulness", "", HELPFULNESS),
        ("auto", "", SUFFICIENCY),
        ("sufficiency", OWN, Definition("collection", OWN)),
    ],
)
def test_people_judges_exports_and_reranker_are_told_the_same(rubric, instruction, definition, tmp_path):
    books = make_books()
    Collection.objects.update(rubric=rubric, instruction=instruction)
    books.refresh_from_db()
    pair = Pair.objects.select_related("query", "document").order_by("pk")[0]
    inputs = pair_inputs(books, pair.query, pair.document)

    whole = {f"{n} {prompt.name}": read_prompt(prompt.system) for n, prompt in enumerate(judged(inputs))}
    manifest = export(books, "prism", tmp_path / "prism", teacher="votes")
    whole["manifest"] = manifest["options"]["relevance"][definition.name]
    whole["guidelines"] = read_page(client_of(make_member(books, "alice")).get("/c/books/judge/").text)
    whole["gold desk"] = read_page(gold_desk(books))
    whole |= {f"gold reason {n}": read_prompt(prompt.system) for n, prompt in enumerate(asked_for_gold_reasons(inputs))}
    assert set(whole.values()) == {definition.text} and len(whole) == 17

    writers = (write_prompt(inputs), measure_prompt(inputs, EvidenceTarget("c", "e")))
    stated = {prompt.name: read_prompt(prompt.user) for prompt in writers}
    export(books, "trl", tmp_path / "trl", allow_incomplete=True)
    (stated["trl"],) = {
        line["prompt"].split("What relevant means here: ")[1].split("\nQuery: ")[0]
        for line in lines(tmp_path / "trl" / "train.jsonl")
    }
    export(books, "parquet", tmp_path / "parquet")
    tables = [pyarrow.parquet.read_table(file) for file in (tmp_path / "parquet" / "data").iterdir()]
    (stated["parquet"],) = {told for table in tables for told in table["instruction"].to_pylist()}
    (stated["prism"],) = {line["instruction"] for line in lines(tmp_path / "prism" / "train.jsonl")}
    row = data.read_training_set(tmp_path / "prism").train[0]
    asked = rendering.QUORUM.render(row.query, row.document, row.instruction)
    stated["reranker"] = asked.removeprefix(rendering.QUORUM.head).split(rendering.QUORUM.to_query)[0]
    stated["rerank endpoint"] = sent_to_a_reranker(inputs)["instruction"]
    assert set(stated.values()) == {definition.statement}, stated


def test_the_reranking_service_asks_by_the_same_where_a_request_names_no_rule(monkeypatch, tmp_path):
    """It sees no answers, so it is the definition for queries without."""
    pytest.importorskip("torch", reason="needs the training extra: make install-training")
    asked: list[str] = []
    scorer = open_scorer(tiny(tmp_path / "base", "qwen3")[0])
    monkeypatch.setattr(
        type(scorer),
        "score_rows",
        lambda one, rows: asked.extend(one.tokenizer.decode(row.ids) for row in rows) or [0.0],
    )
    for instruction in (None, "", OWN):
        body = protocol.RerankBody.model_validate({"query": "q", "documents": ["d"], "instruction": instruction})
        scorer.score([body.request()])
    told = [text.removeprefix(rendering.QUORUM.head).split(rendering.QUORUM.to_query)[0] for text in asked]
    assert told == [HELPFULNESS.statement, HELPFULNESS.statement, OWN]


def test_the_definition_stands_in_one_file():
    """No prompt, page, document or other module restates a sentence of it."""
    root = Path(__file__).parents[2]
    sentences = [line for one in (SUFFICIENCY, HELPFULNESS) for line in (one.statement, *one.rules)]
    words = [" ".join(line.split()[1:7]) for line in sentences]
    folders = ("annotation", "benchmark", "config", "corpus", "judges", "templates", "training")
    paths = [path for folder in folders for path in (root / folder).rglob("*") if "migrations" not in path.parts]
    files = {path: " ".join(path.read_text().split()) for path in paths if path.suffix in (".py", ".txt", ".html")}
    found = {path.name for path, text in files.items() for some in words if some in text}
    assert found == {"rubric.py"}
    assert not set(SUFFICIENCY.rules) & set(HELPFULNESS.rules)
    for definition in (SUFFICIENCY, HELPFULNESS):
        numbers = [int(rule.split(".")[0]) for rule in definition.rules]
        assert numbers == list(range(1, len(numbers) + 1))
    assert "{instruction}" in PROMPT and HELPFULNESS.statement == rendering.DEFAULT_INSTRUCTION


def test_queries_with_and_without_answers_have_each_their_own_definition_in_one_collection():
    books = make_collection("books")
    document = make_document(books)
    with_answers, without = make_query(books), make_query(books, answers=[])
    own = make_query(books, instruction=OWN)
    votes = [render.vote_prompt(pair_inputs(books, query, document)) for query in (with_answers, without, own)]
    assert [read_prompt(vote.system) for vote in votes] == [SUFFICIENCY.text, HELPFULNESS.text, OWN]
    assert [vote.name for vote in votes] == ["vote-answers", "vote-plain", "vote-answers-own"]
    assert all((vote.sha256, vote.text) == render.prompt_versions(books.relevance)[vote.name] for vote in votes)
    text = guidelines.current(books)[1]
    assert all(one in text for one in (*guidelines.WHERE, SUFFICIENCY.text, HELPFULNESS.text))


def test_helpfulness_asks_for_no_whole_answer_no_outright_words_and_no_equal_breadth():
    inputs = Inputs("How can I lose weight quickly?", (), "", "A trial.", HELPFULNESS)
    for prompt in judged(inputs):
        told = f"{prompt.system}\n{prompt.user}"
        assert HELPFULNESS.text in told
        for word in ("complete", "all that is needed", "outright", "inference", "readth", "halves", "in full"):
            assert word not in told.lower(), (prompt.name, word)
        assert not any(rule in told for rule in SUFFICIENCY.rules)
    levels = [line for grades in SCALES.values() for line in render.grade_levels(grades)]
    assert not any("needed" in line for line in levels)


def test_a_new_rubric_or_instruction_is_a_new_version_of_guidelines_and_prompts_together(tmp_path):
    books = make_books(queries=1)
    Collection.objects.update(instruction="")
    books.refresh_from_db()
    seen = [(books.guideline_version, hash_of(books))]
    for content in ('rubric = "helpfulness"', f"instruction = {json.dumps(OWN)}", 'instruction = "Other words."'):
        configure(tmp_path, content)
        books.refresh_from_db()
        seen.append((books.guideline_version, hash_of(books)))
    assert [number for number, _hash in seen] == [0, 1, 2, 3]
    assert len({digest for _number, digest in seen}) == 4
    assert versions_of(books) == [(0, True), (1, True), (2, True), (3, True)]
    told = [one.text for one in books.guidelines.order_by("version")]
    assert SUFFICIENCY.text in told[0] and HELPFULNESS.text in told[1] and SUFFICIENCY.text not in told[1]
    assert OWN in told[2] and HELPFULNESS.statement not in told[2] and "Other words." in told[3]

    assert configure(tmp_path, 'rubric = "sufficiency"') == ["rubric"]
    books.refresh_from_db()
    assert (books.guideline_version, hash_of(books)) == seen[-1], "under an instruction no rubric is read"
    configure(tmp_path, 'instruction = ""')
    books.refresh_from_db()
    assert hash_of(books) != seen[-1][1] and books.guideline_version == 4


def test_the_settings_page_sets_the_rubric_and_the_instructions_page_replaces_it():
    books = make_books(queries=1)
    Collection.objects.update(instruction="")
    client = client_of(make_member(books, "charlie", Role.ADMIN))
    given = {"title": "Books", "overlap": 1, "order": "query", "lease_minutes": 20, "relevant_from": 1}
    before = hash_of(Collection.objects.get())
    client.post("/c/books/settings/", given)
    assert Collection.objects.get().guideline_version == 0, "a program that knows no rubric leaves it"
    assert client.post("/c/books/settings/", {**given, "rubric": "helpfulness"}).status_code == 302
    books.refresh_from_db()
    assert (books.rubric, books.guideline_version) == ("helpfulness", 1) and hash_of(books) != before
    assert HELPFULNESS.statement in client.get("/c/books/settings/").text
    client.post("/c/books/settings/instruction/", {"text": OWN, "base": "0"})
    books.refresh_from_db()
    assert (books.instruction, books.guideline_version) == (OWN, 2)
    assert HELPFULNESS.statement not in guidelines.current(books)[1]


def test_guidelines_of_ones_own_warn_until_they_hold_what_judges_follow():
    books = make_collection("books", rubric="helpfulness")
    charlie = make_member(books, "charlie", Role.ADMIN)
    client = client_of(charlie)
    pages = ("/c/books/settings/", "/c/books/settings/guidelines/")

    def warned() -> set[bool]:
        return {"may use different definitions" in client.get(page).text for page in pages}

    assert warned() == {False}
    client.post(pages[1], {"text": "A part of an answer is enough.", "base": "0"})
    assert warned() == {True}
    for code in ("en", "zh-hans"):
        with override(code):
            held = guidelines.translate_lines(HELPFULNESS.text)
        version = guidelines.current(books)[0]
        client.post(pages[1], {"text": f"Be quick.\r\n\r\n{held}\r\n\r\nBe fair.", "base": str(version)})
        assert warned() == {False}
        guidelines.write(collection=books, text="Mine.", author=charlie.user)
    assert warned() == {True}
    held = guidelines.translate_lines(guidelines.built_in(books.relevance))
    client.post(pages[1], {"text": held, "base": str(guidelines.current(books)[0])})
    assert warned() == {False} and versions_of(books)[-1][1], "brought back, it is the built-in text again"


def test_guidelines_need_no_definition_that_no_query_is_judged_by():
    books = make_collection("books")
    make_query(books)
    guidelines.write(collection=books, text=SUFFICIENCY.text, author=make_member(books, "charlie").user)
    assert guidelines.follows_definition(books)
    make_query(books, answers=[])
    assert not guidelines.follows_definition(books)


def test_own_words_outlive_a_new_rubric_under_a_new_number_that_nobody_has_to_read():
    books = make_collection("books", rubric="helpfulness")
    alice = make_member(books, "alice")
    guidelines.write(collection=books, text="Mine.\n", author=alice.user)
    type(alice).objects.update(guideline_read=1)
    books.refresh_from_db()
    texts.change_settings(Actor("alice"), books, SettingsOptions(rubric="sufficiency"))
    books.refresh_from_db()
    alice.refresh_from_db()
    assert guidelines.current(books) == (2, "Mine.\n") and not guidelines.follows_definition(books)
    assert (books.guideline_version, alice.guideline_read) == (2, 2)


def test_a_new_definition_is_announced_with_what_is_new_and_gone(tmp_path):
    books = make_collection("books", rubric="sufficiency")
    make_item(make_pair(books))
    client = client_of(make_member(books, "alice"))
    client.post("/c/books/judge/next/")
    configure(tmp_path, 'rubric = "helpfulness"')
    assert "guidelines have changed" in client.get("/c/books/judge/").text
    page = client.get("/c/books/judge/guidelines/").text
    assert SUFFICIENCY.statement in page.split("<del>", 1)[1] and HELPFULNESS.statement in page.split("<ins>", 1)[1]


def test_judges_start_anew_under_a_new_definition_and_go_on_under_the_same(transactional_db):
    books = make_collection("books")
    make_pair(books)
    wanted = configurations.build_configuration(policy="ensemble")

    def start() -> int:
        started = lifecycle.start_campaign(collection=Collection.objects.get(), configuration=wanted)
        assert started.campaign is not None
        return started.campaign.pk

    first, again = start(), start()
    Collection.objects.update(rubric="helpfulness")
    second = start()
    Collection.objects.update(rubric="auto")
    assert (first == again, first == second, start()) == (True, False, first)
    rubrics = lifecycle.Campaign.objects.order_by("pk").values_list("rubric", flat=True)
    assert list(rubrics) == ["auto", "helpfulness"]


def test_the_demo_tells_people_what_its_gold_was_made_by(tmp_path):
    collection, _built = demo.load_collection(tmp_path, StringIO())
    assert collection.instruction == "" and collection.relevance.definitions() == (SUFFICIENCY,)
    text = guidelines.current(collection)[1]
    assert SUFFICIENCY.text in text and "a part of an answer" not in text
    Collection.objects.update(rubric="helpfulness")
    demo.load_collection(tmp_path, StringIO())
    assert Collection.objects.get().rubric == "helpfulness", "what an admin chose stays"
