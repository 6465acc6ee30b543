"""Conversations through the engine against a scripted server: order, repair, budget, and going on after an end."""

import json

import pytest

from corpus.errors import Incomplete
from judges.conversations.requests import ConversationStep, Subject, hold_conversations
from judges.costs.judge_records import judge_of
from judges.costs.ledger import ledger_rows
from judges.domain.verdicts import NoVerdict
from judges.models.retrieval import RetrievalCall
from judges.prompts.answers.formats import ContextAnswer, Correctness
from judges.prompts.conversations import answer_prompt, correct_prompt
from judges.retrieval.model_requests import judge_for, open_campaign
from tests.engine_parts import make_judge
from tests.factories import make_collection, make_query

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def asked(settings, tmp_path):
    settings.VAR, settings.RETRY_SECONDS = tmp_path, 0.01
    collection = make_collection("wings")
    queries = [make_query(collection, text, answers=["a secret"]) for text in ("wing lift", "heated plate")]
    return collection, [Subject(one.pk, one.text, topic) for one in queries for topic in ("bm25", "dense")]


def talk_with(judge):
    async def talk(conversation):
        """Answer, then ask whether that is right."""
        query, topic = conversation.subject.text, conversation.subject.topic
        contexts = [f"{topic} document about {query}"]
        told = {"query": query, "contexts": contexts}
        first = ConversationStep("answer", ContextAnswer, judge, answer_prompt(query, contexts), material=told)
        said = await conversation.ask(first)
        if isinstance(said, NoVerdict):
            return f"{said.outcome}: {conversation.problem_with(first)}"
        prompt = correct_prompt(query, said.Answer, ["lift"])
        told = {"answer": said.Answer, "references": ["lift"]}
        right = await conversation.ask(ConversationStep("correct", Correctness, judge, prompt, material=told))
        return right if isinstance(right, NoVerdict) else right.correct

    return talk


def scripted(model_server, asked, *answers, **limits):
    collection, subjects = asked
    judge = judge_of(make_judge(model_server, "writer"))
    limits = {"budget": None, "max_calls": None, **limits}
    model_server.script(writer=[*answers, {"contains": "Is this answer", "text": '{"correct": true}'}, ANSWER])
    return judge, open_campaign(collection, [judge], "a test", **limits), subjects


ANSWER = {"contains": "Answer this query", "text": '{"Answer": "It lifts."}'}


def test_steps_follow_each_other_and_every_call_is_a_row_in_the_ledger(asked, model_server):
    judge, campaign, subjects = scripted(model_server, asked)
    found = hold_conversations(campaign, subjects, talk_with(judge))
    assert (found.answers, found.spent, found.stopped) == ([True] * 4, "", False)

    sent = model_server.requests()
    # Both topics of a query ask the same second question: the later may find it answered.
    assert len(sent) in (6, 7, 8)
    assert "a secret" not in json.dumps([one["body"] for one in sent])
    rows = RetrievalCall.objects.filter(campaign=campaign)
    assert sorted(rows.values_list("query", "topic", "role")) == sorted(
        (one.query, one.topic, role) for one in subjects for role in ("answer", "correct")
    )
    assert {one.role: one.calls for one in ledger_rows(campaign)} == {"answer": 4, "correct": len(sent) - 4}


def test_what_was_answered_is_not_asked_again(asked, model_server):
    judge, campaign, subjects = scripted(model_server, asked)
    hold_conversations(campaign, subjects[:3], talk_with(judge))
    model_server.reset()
    model_server.script(writer=[{"contains": "Is this answer", "text": '{"correct": true}'}, ANSWER])
    assert hold_conversations(campaign, subjects, talk_with(judge)).answers == [True] * 4
    # The fourth asks what no other did; what all say of its answer is known.
    (request,) = model_server.requests()
    assert request["user"].startswith("Answer this query")


def test_a_malformed_answer_is_repaired_once_and_a_second_one_stays_none(asked, model_server):
    bad = {"contains": "bm25 document about wing", "text": '{"answer": 7}'}
    judge, campaign, subjects = scripted(model_server, asked, bad)
    first, *others = hold_conversations(campaign, subjects, talk_with(judge)).answers
    assert first.startswith("unparsed: ") and first.endswith('"Answer"')
    assert others == [True] * 3
    assert [one for one in model_server.requests() if "7}" in one["user"]] == []
    assert RetrievalCall.objects.filter(campaign=campaign, outcome="unparsed").count() == 2
    model_server.script(writer={"text": '{"correct": true}'})
    before = len(model_server.requests())
    assert hold_conversations(campaign, subjects, talk_with(judge)).answers[0] == first
    assert len(model_server.requests()) == before


def test_a_repair_that_was_not_asked_for_before_the_end_is_asked_for_later(asked, model_server):
    judge, campaign, subjects = scripted(model_server, asked, {**ANSWER, "text": "prose", "times": 1}, max_calls=1)
    found = hold_conversations(campaign, subjects[:1], talk_with(judge))
    assert (found.answers, found.spent) == ([None], "max-calls")
    campaign.max_calls = None
    campaign.save()
    assert hold_conversations(campaign, subjects[:1], talk_with(judge)).answers == [True]
    assert [one["user"].count("Answer this query") for one in model_server.requests()] == [1, 1, 0]


def test_a_budget_that_ends_in_the_middle_leaves_what_is_whole(asked, model_server):
    judge, campaign, subjects = scripted(model_server, asked, max_calls=5)
    found = hold_conversations(campaign, subjects, talk_with(judge), at_once=1)
    assert (found.answers[:2], found.answers[-1], found.spent) == ([True, True], None, "max-calls")
    assert len(model_server.requests()) == 5
    campaign.max_calls = 20
    campaign.save()
    assert hold_conversations(campaign, subjects, talk_with(judge)).answers == [True] * 4
    assert len(model_server.requests()) <= 8


def test_the_offline_judge_answers_from_the_documents(asked):
    collection, subjects = asked
    judge = judge_for("answer", "offline-rewriter")
    campaign = open_campaign(collection, [judge], "a test", budget=None, max_calls=None)
    assert hold_conversations(campaign, subjects[:2], talk_with(judge)).answers == [True, True]
    rows = RetrievalCall.objects.filter(campaign=campaign, role="answer")
    assert json.loads(rows.get(topic="bm25").text) == {"Answer": "bm25 document about wing lift"}


def refusal(status, message, **more):
    return {"status": status, "body": json.dumps({"error": {"message": message}}), **more}


# What the only judge meets at each of thirty subjects, and a part of what ends the run.
OF_ALL = {
    "a setting": (refusal(400, "'temperature' does not support 0"), 'temperature = "default"'),
    "a dead key": (refusal(401, "Incorrect API key"), "401 Incorrect API key"),
    "money that is spent": (refusal(429, "Insufficient balance. Please recharge."), "raise the limit"),
    "moderation": (refusal(403, "Content violates usage guidelines"), "take another judge"),
    "no usable answer": ({"text": "It lifts."}, "none usable"),
}


@pytest.mark.parametrize("case", OF_ALL)
def test_an_account_that_refuses_whatever_it_is_asked_ends_the_run_after_twenty_calls(asked, model_server, case):
    behaviour, words = OF_ALL[case]
    collection, _ = asked
    query = make_query(collection, "wing drag")
    many = [Subject(query.pk, query.text, f"topic {n}") for n in range(30)]
    judge, campaign, _ = scripted(model_server, asked, behaviour)
    with pytest.raises(Incomplete) as caught:
        hold_conversations(campaign, many, talk_with(judge))
    told = str(caught.value)
    assert told.startswith(f"writer, account {judge.account_name}: ") and words in told
    assert len(model_server.requests()) <= 24
    # Once it is mended everything is asked: no refusal stands for an answer, and what was answered in vain stays.
    model_server.script(writer=[{"contains": "Is this answer", "text": '{"correct": true}'}, ANSWER])
    again = hold_conversations(campaign, many, talk_with(judge)).answers
    assert [one for one in again if one is not True and not str(one).startswith("unparsed")] == []
    assert again.count(True) >= (18 if case == "no usable answer" else 30)


def test_one_subject_that_is_refused_is_one_without_an_answer(asked, model_server):
    flagged = refusal(403, "Content violates usage guidelines", contains="bm25 document about wing")
    judge, campaign, subjects = scripted(model_server, asked, flagged)
    first, *others = hold_conversations(campaign, subjects, talk_with(judge)).answers
    assert first.startswith("refused: ") and others == [True] * 3
