"""The offline judges: weak but real. Their answers go through the parser, and a sensible share stays open."""

import asyncio
import json
import time
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.bundled import build
from corpus.search.bm25 import Index
from judges.domain import debate, routing
from judges.domain.debate import AGAINST, FOR, PAIR
from judges.domain.verdicts import STRICT, Unparsed, parse_turn, parse_vote
from judges.errors import Rejected
from judges.models import JudgeVersion, Panel
from judges.offline import judges
from judges.offline.debate import argue_turn
from judges.offline.judges import ASSESSORS, UniformLexicon, assess_relevance, compare_documents
from judges.panels.offline_panel import OFFLINE_DEBATE, OFFLINE_ENSEMBLE, ensure_offline, offline_models
from judges.prompts.answers.formats import PairPreference, parse_answer
from judges.prompts.render import TURN_SCHEMA, VOTE_SCHEMA, turn_prompt, vote_prompt
from judges.providers import open_provider
from judges.providers.offline import CollectionLexicon, answer_request
from judges.records import DebateAgent, Inputs, Judge, ModelRequest, Quote, Side, Turn
from tests.factories import make_collection, make_document
from tests.speed import slowness

ALONE = UniformLexicon()
ANSWER = "A mapping object maps hashable values to arbitrary objects."
STATED = Inputs(
    "What does a mapping map?",
    (ANSWER,),
    "Mapping Types",
    "A mapping object maps hashable values to arbitrary objects. Mappings are mutable objects.",
)
UNRELATED = replace(
    STATED, title="Assert", document="Assert statements insert debugging assertions. They are optional."
)


def _judge(model: str) -> Judge:
    return Judge(id=1, name=f"offline-{model}", provider="offline", model=model)


def _request(model: str, role: str, inputs: Inputs, history: dict[DebateAgent, Turn] | None = None) -> ModelRequest:
    prompt = (
        vote_prompt(inputs)
        if role == "vote"
        else turn_prompt(inputs, DebateAgent(Side(role)), 2 if history else 1, history)
    )
    schema = VOTE_SCHEMA if role == "vote" else TURN_SCHEMA
    return ModelRequest(_judge(model), prompt, schema, inputs, role, round=2 if history else 1, history=history)


def _play(inputs: Inputs, lexicon: judges.Lexicon) -> dict[tuple[int, DebateAgent], Turn]:
    turns: dict[tuple[int, DebateAgent], Turn] = {}
    while isinstance(move := debate.next_move(turns, 2), debate.TurnRequest):
        for seat in move.agents:
            told = answer_request(_request(seat.side.value, seat.side.value, inputs, move.history), lexicon)
            turns[move.round, seat] = parse_turn(json.dumps(told), inputs.document)
    return turns


@pytest.mark.parametrize("model", ASSESSORS)
def test_every_assessor_tells_a_stated_answer_from_an_unrelated_text(model):
    assert assess_relevance(model, STATED, ALONE)[0] == 1
    assert assess_relevance(model, UNRELATED, ALONE)[0] == 0
    verdict, reason, share = assess_relevance(model, STATED, ALONE)
    assert (verdict, reason, share) == assess_relevance(model, STATED, ALONE)
    assert reason.startswith("By counting only: ")
    assert "reaches" in reason


@pytest.mark.parametrize("model", ASSESSORS)
def test_every_assessor_reads_chinese(model):
    stated = Inputs(
        "映射的键是什么？", ("映射的键必须是可哈希的对象。",), "", "映射的键必须是可哈希的对象。值可以任意。"
    )
    other = replace(stated, document="断言语句用于调试程序。它们可以被关闭。")
    assert [assess_relevance(model, inputs, ALONE)[0] for inputs in (stated, other)] == [1, 0]


def test_the_best_of_several_answers_counts_and_any_model_may_debate():
    several = replace(STATED, answers=("Something quite different about generators.", ANSWER))
    assert [assess_relevance(model, several, ALONE)[0] for model in ASSESSORS] == [1] * 5
    told = answer_request(_request("bm25", "against", UNRELATED), ALONE)
    assert told["response"] == "no"
    with pytest.raises(Rejected, match="no offline judge"):
        answer_request(_request("gpt", "vote", STATED), ALONE)


def test_sides_agree_at_once_where_the_matter_is_plain_and_else_begin_with_their_stance():
    for inputs, label in ((STATED, 1), (UNRELATED, 0)):
        assert debate.next_move(_play(inputs, ALONE), 2) == debate.Agreed(1, label)
    partly = replace(STATED, document="A mapping object is mutable. Dictionaries hold values.")
    turns = _play(partly, ALONE)
    assert [turns[1, seat].verdict for seat in PAIR] == [1, 0]
    assert '"arbitrary"' in turns[1, AGAINST].reason
    assert turns[1, FOR].quotes


def test_each_side_checks_what_the_other_says():
    history = {FOR: Turn(1, "all of it", (Quote(ANSWER, 0, 59),)), AGAINST: Turn(0, 'Missing: "arbitrary".')}
    convinced = argue_turn(AGAINST, STATED, ALONE, history)
    assert convinced.verdict == 1
    assert convinced.reason.endswith("I give in.")
    invented = history | {FOR: Turn(1, "all of it", (Quote(ANSWER),))}
    stays = argue_turn(AGAINST, UNRELATED, ALONE, invented)
    assert stays.verdict == 0
    assert "1 of its quotations" in stays.reason
    history = {FOR: Turn(1, "it does"), AGAINST: Turn(0, 'Missing: "arbitrary", "hashable".')}
    stays = argue_turn(FOR, STATED, ALONE, history)
    assert stays.verdict == 1 and ': "hashable", "arbitrary". Nowhere: none' in stays.reason
    assert argue_turn(FOR, UNRELATED, ALONE, history).verdict == 0


CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
TEXTS = st.text(CHARACTERS, max_size=120) | st.sampled_from(["", ". . .", "a the of", "映射", "DATA>>>\nyes", ANSWER])


@given(TEXTS, st.lists(TEXTS, max_size=3), TEXTS, TEXTS, TEXTS)
def test_any_text_gets_answers_that_the_parser_takes(query, answers, title, document, other):
    inputs = Inputs(query, tuple(answers), title, document)
    for model in offline_models().values():
        told = answer_request(_request(model, "vote", inputs), ALONE)
        assert parse_vote(json.dumps(told)).verdict in (0, 1)
    history = {FOR: Turn(1, other, (Quote(other),)), AGAINST: Turn(0, other)}
    for side in Side:
        for before in (None, history):
            told = answer_request(_request(side.value, side.value, inputs, before), ALONE)
            turn = parse_turn(json.dumps(told), document)
            assert len(turn.reason.split()) <= 100
            if before is None:
                assert all(quote.start is not None for quote in turn.quotes)


@pytest.mark.django_db(transaction=True)
def test_the_provider_weighs_words_by_the_collection():
    collection = make_collection()
    texts = ["A mapping maps keys to values.", "A list holds values.", "Keys are hashable. Keys are compared by value."]
    rows = [make_document(collection, text) for text in texts]
    query = Inputs("What are keys?", ("Keys are hashable.",), "", texts[2], "", collection.pk, rows[2].pk)

    async def ask(inputs: Inputs) -> Turn:
        provider = open_provider(_judge("bm25"))
        return parse_vote((await provider.complete(_request("bm25", "vote", inputs))).text)

    assert " 1.00 " in asyncio.run(ask(query)).reason
    other = replace(query, document=texts[0], document_id=rows[0].pk)
    assert asyncio.run(ask(other)).verdict == 0


class Bundled:
    """The bundled collection: its index, candidate pairs and gold."""

    def __init__(self, folder) -> None:
        build(folder)
        files = [(folder / f"{name}.jsonl").read_text().splitlines() for name in ("corpus", "queries", "pairs")]
        corpus, queries, gold = ([json.loads(line) for line in lines] for lines in files)
        self.documents = {row["_id"]: row for row in corpus}
        self.queries = {row["_id"]: row for row in queries}
        order = sorted(self.documents, reverse=True)
        self.keys = {name: key for key, name in enumerate(order, 1)}
        texts = (
            (self.keys[name], f"{self.documents[name]['title']}\n{self.documents[name]['text']}") for name in order
        )
        self.index = Index.build(texts)
        self.gold = [(row["query_id"], row["doc_id"], row["gold"]) for row in gold]
        names = {key: name for name, key in self.keys.items()}
        self.pairs = [
            (query, names[key]) for query, row in self.queries.items() for key, _ in self.index.search(row["text"], 8)
        ]

    def inputs(self, query: str, document: str) -> Inputs:
        asked, row = self.queries[query], self.documents[document]
        key = self.keys[document]
        return Inputs(asked["text"], tuple(asked["answers"]), row["title"], row["text"], "", 1, key)


@pytest.fixture(scope="module")
def bundled(tmp_path_factory) -> Bundled:
    return Bundled(tmp_path_factory.mktemp("bundled"))


def _decide(inputs: Inputs, lexicon: judges.Lexicon) -> routing.RoutingOutcome:
    votes = {place: Turn(*assess_relevance(model, inputs, lexicon)) for place, model in enumerate(ASSESSORS)}
    return routing.decide("debate+ensemble", 2, 3, _play(inputs, lexicon), votes)


def test_a_tenth_to_a_third_of_the_bundled_collection_goes_to_people_and_labels_are_mostly_right(bundled):
    lexicon = CollectionLexicon(bundled.index)
    outcomes = [_decide(bundled.inputs(*pair), lexicon) for pair in bundled.pairs]
    states = Counter(outcome.state for outcome in outcomes)
    assert 0.08 < states["escalated"] / len(outcomes) < 0.33
    assert states["failed"] == 0
    assert {outcome.reason for outcome in outcomes} == {"", "disagreement", "conflict"}
    rounds = Counter(outcome.agreed_in_round for outcome in outcomes)
    assert rounds[1] > rounds[2] > rounds[None] > 0
    labels = Counter(outcome.label for outcome in outcomes)
    assert labels[0] > labels[1] > 0
    lexicon = CollectionLexicon(bundled.index)
    found = [(_decide(bundled.inputs(query, document), lexicon).label, gold) for query, document, gold in bundled.gold]
    labelled = [(label, gold) for label, gold in found if label is not None]
    assert len(labelled) > 0.7 * len(found)
    assert sum(label == gold for label, gold in labelled) > 0.9 * len(labelled)


def test_the_assessors_are_different_in_kind(bundled):
    lexicon = CollectionLexicon(bundled.index)
    rows = [
        [assess_relevance(model, bundled.inputs(*pair), lexicon)[0] for model in ASSESSORS] for pair in bundled.pairs
    ]
    for one, column in enumerate(zip(*rows, strict=True)):
        for other in list(zip(*rows, strict=True))[:one]:
            assert 0.02 < sum(a != b for a, b in zip(column, other, strict=True)) / len(rows) < 0.4


def test_an_offline_judge_takes_less_than_two_milliseconds_a_pair(bundled):
    lexicon = CollectionLexicon(bundled.index)
    everything = [bundled.inputs(*pair) for pair in bundled.pairs]
    began = time.process_time()
    for inputs in everything:
        _decide(inputs, lexicon)
    assert (time.process_time() - began) / len(everything) / 7 < 0.002 * slowness()


def test_a_document_that_the_index_does_not_know_is_judged_by_its_text(bundled):
    lexicon = CollectionLexicon(bundled.index)
    assert assess_relevance("bm25", STATED, lexicon)[0] == 1
    assert assess_relevance("bm25", UNRELATED, lexicon)[0] == 0


@pytest.mark.django_db
def test_the_offline_panel_exists_comes_back_and_takes_no_others_place():
    Panel.objects.all().delete()
    JudgeVersion.objects.filter(provider="offline").delete()
    panel = ensure_offline()
    assert (panel.debate, panel.ensemble, panel.is_default) == (OFFLINE_DEBATE, OFFLINE_ENSEMBLE, True)
    assert JudgeVersion.objects.filter(is_current=True, provider="offline").count() == 7
    assert ensure_offline() == panel
    assert Panel.objects.count() == 1
    Panel.objects.all().delete()
    Panel.objects.create(name="main", is_default=True)
    assert ensure_offline().is_default is False


def parse(verdict: str) -> str:
    answer = f'{{"reason": "It says it outright.", "preference": {verdict}}}'
    return PairPreference.model_validate_json(parse_answer("prefer", answer, STRICT, {}).reason).preference


@pytest.mark.parametrize("word", ["A", "B", "equal", "both bad"])
def test_a_preference_is_one_of_four_words(word: str) -> None:
    assert parse(f'"{word}"') == word


@pytest.mark.parametrize("verdict", ['"a"', '"A or B"', '"neither"', '"both_bad"', '""', "1", "null", "true"])
def test_any_other_word_is_no_preference(verdict: str) -> None:
    with pytest.raises(Unparsed, match="\"preference\": Input should be 'A', 'B', 'equal' or 'both bad'"):
        parse(verdict)


@pytest.mark.parametrize("model", ASSESSORS)
def test_every_offline_judge_prefers_the_stated_answer_in_both_orders_and_calls_two_unrelated_texts_bad(model):
    def compare(first: Inputs, second: Inputs) -> object:
        return compare_documents(model, first, second, ALONE)["preference"]

    assert (compare(STATED, UNRELATED), compare(UNRELATED, STATED)) == ("A", "B")
    assert (compare(STATED, STATED), compare(UNRELATED, UNRELATED)) == ("equal", "both bad")
