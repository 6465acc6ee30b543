"""Twelve pairs judged by a model that thinks: on each scale, in each schema mode, and by a panel of five samples."""

import json
import math
import re
from collections import Counter
from typing import Any

import pytest

from judges.models import Attempt, Work
from tests.engine_parts import _standing_worker, judge, worker
from tests.models.judging import PAIRS, check_pairs, check_rows, configure, make_pairs, text_of
from tests.stages import first_slow

__all__ = ["_standing_worker", "worker"]

pytestmark = pytest.mark.django_db(transaction=True)
RELEVANT_FROM = {"binary": 1, "0-3": 3, "0-10": 7}
SHORT = {"prompt": "verdict-only", "max_output_tokens": 48}


def grade_in(text: str) -> int | None:
    """The grade that an answer names, yes as 1; None unless it is one JSON object with nothing around it."""
    try:
        answer = json.loads(text)
    except ValueError:
        return None
    if not isinstance(answer, dict):
        return None
    response = str(answer.get("response", "")).lower()
    return answer["score"] if "score" in answer else {"yes": 1, "no": 0}.get(response)


def share_in(answer: dict[str, Any], word: str) -> float:
    """The probability of the answer's word, from the server's tokens that hold a letter or digit of it."""
    tokens = answer["choices"][0]["logprobs"]["content"]
    text = "".join(token["token"] for token in tokens)
    *_, match = re.finditer(r'"(?:response|score)"\s*:\s*"?(yes|no|\d+)', text)
    assert match[1] == word
    share, position = 1.0, 0
    for token in tokens:
        end = position + len(token["token"])
        if position < match.end(1) and end > match.start(1):
            assert re.search(r"\w", token["token"]), "a token of the word, not of the punctuation around it"
            share *= math.exp(token["logprob"])
        position = end
    return share


@pytest.mark.parametrize("scale", first_slow(RELEVANT_FROM))
def test_a_single_judge_answers_by_its_scale_with_the_probability_of_its_answer(llama_server, worker, scale):
    make_pairs()
    configure(llama_server, {"judge": {"scale": scale, "logprobs": True, "max_output_tokens": 128}})
    check_pairs(judge("--policy", "single").json)
    votes = [(row, answer) for row, answer in check_rows(llama_server) if row.outcome == "labelled"]
    assert len(votes) == Work.objects.filter(state="labelled").count() > 0
    for row, answer in votes:
        grade = grade_in(text_of(answer))
        assert grade is not None and row.verdict == (grade >= RELEVANT_FROM[scale])
        assert row.score == (None if scale == "binary" else grade)
        word = str(grade) if scale != "binary" else "yes" if grade else "no"
        assert row.probabilities[word] == pytest.approx(share_in(answer, word))
        assert set(row.probabilities) == ({"yes", "no"} if scale == "binary" else {word})


@pytest.mark.parametrize("mode", first_slow(["json_object", "text"]))
def test_without_a_schema_an_answer_is_a_verdict_or_a_named_failure(llama_server, worker, mode):
    make_pairs()
    configure(llama_server, {"judge": {"schema_mode": mode, **SHORT}})
    status = judge("--policy", "single").json
    check_pairs(status)
    rows = check_rows(llama_server)
    for row, answer in rows:
        fenced = re.fullmatch(r"```(?:json)?\n(.*)\n```", text_of(answer).strip(), re.DOTALL)
        grade = grade_in(fenced[1] if fenced else text_of(answer))
        whole = answer["choices"][0]["finish_reason"] == "stop"
        assert row.verdict == (grade if whole else None), text_of(answer)
        assert row.outcome == ("truncated" if not whole else "unparsed" if grade is None else "labelled")
    tries = Counter(row.pair_id for row, _answer in rows)
    assert len(tries) == PAIRS and max(tries.values()) <= 2, "an answer is repaired once"


@pytest.mark.weekly
def test_five_samples_of_one_model_are_five_votes_of_each_pair(llama_server, worker):
    make_pairs()
    configure(llama_server, {"judge": {"temperature": 1.5, **SHORT}}, ensemble=["judge"] * 5)
    status = judge("--policy", "ensemble").json
    check_pairs(status)
    check_rows(llama_server)
    for work in Work.objects.all():
        votes = Attempt.objects.filter(pair=work.pair, counts=True).order_by("place")
        assert [vote.place for vote in votes] == [0, 1, 2, 3, 4]
        verdicts = Counter(vote.verdict for vote in votes if vote.outcome == "labelled")
        verdict, most = max(verdicts.items(), key=lambda item: item[1], default=(None, 0))
        assert work.label == (verdict if most >= 3 else None)
    answers = {text_of(call["answer"]) for call in llama_server.calls()}
    assert len(answers) > 1, "samples at a temperature differ"
