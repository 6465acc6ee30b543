"""Twelve pairs of plain sentences, judges that are SmolLM2 behind llama.cpp, and what holds of every call to it."""

import json
import tempfile
import zlib
from typing import Any

from django.core.management import call_command

from corpus.models import Collection
from judges.models import Attempt, AttemptBody, JudgeCall, Work
from judges.models.retrieval import RetrievalCall
from tests.engine_parts import sums_up
from tests.factories import make_collection, make_document, make_pair, make_query
from tests.models.fixtures import RealServer

DEFINITION = "A document is relevant when it answers the query."
PASSAGES = {
    "At what temperature does water boil at sea level?": (
        "Water boils at 100 degrees Celsius at sea level, and at 93 on a mountain.",
        "Ice floats on water: it is lighter than the liquid."),
    "Who wrote the play Hamlet?": ('William Shakespeare wrote "Hamlet" around the year 1600.',
        "The Globe, a theatre in London, burned down in 1613."),
    "Why do leaves look green?": ("Chlorophyll absorbs red and blue light, so leaves look green.",
        "Many trees lose their leaves in autumn; others keep them."),
    "How many legs does a spider have?": ("A spider has eight legs – two more than any insect.",
        "Spiders' silk is stronger than steel of the same weight."),
    "What is the capital of Australia?": ("Canberra, not Sydney, is the capital of Australia.",
        "Sydney's harbour bridge was opened in 1932."),
    "When did people first land on the Moon?": ("On 20 July 1969 two astronauts of Apollo 11 landed on the Moon.",
        "The Moon's gravity raises the tides of the sea."),
}  # fmt: skip
"""Of each query a passage that answers it, and one that does not."""
PAIRS = 2 * len(PASSAGES)


def make_pairs(**values: Any) -> Collection:
    """The collection `books` with these pairs, whose definition of relevance is one sentence."""
    collection = make_collection("books", instruction=DEFINITION, **values)
    for question, passages in PASSAGES.items():
        query = make_query(collection, question, answers=[])
        for passage in passages:
            make_pair(collection, query, make_document(collection, passage))
    return collection


def configure(server: RealServer, judges: dict[str, dict[str, Any]], **panel: Any) -> None:
    """A judges file with these judges, each with its further keys, and a panel of `panel` (else: all vote).

    The model that a judge asks for has the judge's name: llama.cpp has one model, and the log tells judges apart.
    Without a penalty this model says the same sentence until it is cut.
    """
    tables = []
    for name, values in judges.items():
        own = {"name": name, "provider": "llama-cpp", "model": name, "base_url": server.base_url}
        keys = own | {"input_price": 0, "output_price": 0, "extra_body.repeat_penalty": 1.1} | values
        tables.append("\n".join(["[[judge]]", *(f"{key} = {json.dumps(value)}" for key, value in keys.items())]))
    members = panel or {"ensemble": list(judges)}
    tables.append("\n".join(["[panel]", *(f"{key} = {json.dumps(value)}" for key, value in members.items())]))
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write("\n\n".join(tables))
        file.flush()
        call_command("configure_judges", file.name)


def answer_of(row: JudgeCall) -> dict[str, Any]:
    """The body that the product has kept of a call; {} for one that brought none."""
    if isinstance(row, Attempt):
        body = AttemptBody.objects.get(campaign_id=row.campaign_id, attempt_id=row.pk).raw
    else:
        assert isinstance(row, RetrievalCall)
        body = row.raw
    return dict(json.loads(zlib.decompress(body) or b"{}"))


def text_of(answer: dict[str, Any]) -> str:
    """What the model said in an answer of the server."""
    return str(answer["choices"][0]["message"]["content"])


def check_rows(server: RealServer) -> list[tuple[Attempt | RetrievalCall, dict[str, Any]]]:
    """Check that each call is a row with the server's own counts of tokens, and a verdict or a named failure.

    Answers that were taken over from an equal call are no calls. Returns the rows with the server's answers, in the
    order in which they were stored.
    """
    tables = (Attempt.objects, RetrievalCall.objects)
    rows = sorted((row for table in tables for row in table.filter(cached=False)), key=lambda row: row.pk)
    answers = {call["answer"]["id"]: call["answer"] for call in server.calls() if call.get("status") == 200}
    stored = {answer_of(row)["id"]: row for row in rows if row.status == 200}
    assert len(stored) == sum(row.status == 200 for row in rows), "no answer is two rows"
    assert {name: (row.tokens_in, row.tokens_cached, row.tokens_out) for name, row in stored.items()} == {
        name: (usage["prompt_tokens"], usage["prompt_tokens_details"]["cached_tokens"], usage["completion_tokens"])
        for name, answer in answers.items()
        for usage in [answer["usage"]]
    }
    for row in rows:
        assert (row.outcome == "labelled") != bool(row.error), f"{row.outcome}: nothing says why"
        assert row.outcome != "truncated" or answers[answer_of(row)["id"]]["choices"][0]["finish_reason"] == "length"
        assert row.cost == 0
    return [(row, answers[name]) for name, row in stored.items()]


def check_pairs(status: dict[str, Any]) -> None:
    """Check that the campaign has ended, and that each of its pairs has a label, a person's task or a named failure."""
    assert (status["state"], status["pairs"]) == ("finished", PAIRS) and sums_up(status)
    assert status["pending"] == status["running"] == 0
    for work in Work.objects.all():
        assert (work.label is not None) == (work.state == "labelled")
        assert work.state == "labelled" or work.reason
        assert work.state != "failed" or work.error
