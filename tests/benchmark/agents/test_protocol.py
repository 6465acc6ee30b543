"""Both protocols against scripted models: rounds and their answers, limits, repairs, citations."""

import json

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from benchmark.agents.cutting import describe_tokenizer, open_cut
from benchmark.models import Trace
from corpus.models import Query
from judges.models.retrieval import RetrievalCall
from judges.prompts.agents import agent_prompt, document_fields, render_question, render_round
from judges.providers.anthropic import content_blocks
from judges.records import Inputs, Judge, ModelRequest
from tests.benchmark.agents.scripted import ANSWERING, agent, answer, finish, says, search, start_search, wings
from tests.engine_parts import make_judge
from tests.factories import make_document

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def run(settings, tmp_path, model_server):
    settings.VAR, settings.RETRY_SECONDS = tmp_path, 0.01

    def start(script, protocol="fixed", collection=None, judge=None, **options):
        make_judge(model_server, "reader", **(judge or {}))
        model_server.script(reader=script)
        options = {"retrievers": ["bm25"], "agents": ["reader"], "protocol": protocol, **options}
        job = finish(start_search(collection or wings(), **options))
        return job, Trace.objects.filter(job=job).first()

    return start


def prompts(model_server, *, answers):
    found = [one["user"] for one in model_server.requests()]
    return [one for one in found if (ANSWERING in one) == answers]


def test_an_answer_follows_each_of_three_rounds(run, model_server):
    """C1, figure 4, and what makes a prompt cache work: the prompts of searches and of answers grow at their ends."""
    job, trace = run(agent(search("alpha"), search("beta"), search("gamma")))
    assert job.state == "ready", job.error
    assert [one["search"] for one in trace.rounds] == ["alpha", "beta", "gamma"]
    assert [one["round"] for one in trace.answers] == [1, 2, 3]
    assert (trace.stop, trace.searches, trace.early_answers) == ("rounds", 3, 0)
    first, second, third = prompts(model_server, answers=True)
    assert first.count("alpha-") == 5 and "beta-" not in first
    assert second.count("alpha-") == 5 and second.count("beta-") == 5 and "gamma-" not in second
    assert third.count("gamma-") == 5
    assert third.startswith(second[: second.index("The material ends")].rstrip())
    assert not any(word in one for one in (first, second, third) for word in ('"round"', '"search"'))
    _first, early, late = prompts(model_server, answers=False)
    assert late.startswith(early[: early.index("The material ends")].rstrip()) and '"search": "beta"' in late
    systems = {(one["system"], ANSWERING in one["user"]) for one in model_server.requests()}
    schemas = {json.dumps(one["body"]["response_format"]) for one in model_server.requests()}
    assert len(systems) == 2 and len(schemas) == 1


@pytest.mark.parametrize(("parameters", "sent"), [({}, None), ({"temperature": 0.6}, 0.6)])
def test_agents_are_asked_at_the_temperature_of_their_provider(run, model_server, parameters, sent):
    """BRIGHT-Pro appendix F; the judges file may set another one."""
    run(agent(search("alpha")), rounds=1, judge={"parameters": parameters})
    assert [one["body"].get("temperature") for one in model_server.requests()] == [sent, sent]


def test_an_early_answer_does_not_end_the_fixed_rounds(run):
    _job, trace = run(agent(search("alpha"), answer("Enough [alpha-1].")))
    assert [one["search"] for one in trace.rounds] == ["alpha", "alpha", "alpha"]
    assert trace.early_answers == 2 and len(trace.answers) == 3


def test_a_document_is_cut_marked_and_keeps_its_id(run, model_server):
    """C2: a document of 5,000 tokens."""
    collection = wings()
    make_document(collection, " ".join(["zeta"] * 5000), external_id="[long]")
    _job, trace = run(agent(search("zeta")), collection=collection)
    assert trace.rounds[0]["truncated"] == trace.rounds[0]["returned"] == ["[long]"]
    shown = prompts(model_server, answers=False)[1]
    assert shown.count("zeta") == 2049 and "cut: only its beginning" in shown  # the search, too
    # A text is shown once: the next round names the round that has it.
    assert prompts(model_server, answers=False)[2].count("zeta") == 2050
    # Rounds without a new document ask the same question again, which is answered once.
    assert [one.count("zeta") for one in prompts(model_server, answers=True)] == [2048]
    assert len(trace.answers) == 3


def test_a_document_is_cut_by_the_tokenizer_that_is_named(run, model_server, tmp_path):
    """A token for each character; the file's own truncation and padding are not what is asked for."""
    collection = wings()
    make_document(collection, "zeta" * 1000, external_id="long")
    tokenizer = Tokenizer(models.WordLevel({"?": 0}, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer.enable_truncation(7)
    tokenizer.enable_padding(length=9)
    (tmp_path / "letters").mkdir()
    tokenizer.save(str(tmp_path / "letters" / "tokenizer.json"))
    make_document(collection, "eta " * 511, external_id="short")
    named = {"collection": collection, "rounds": 1, "tokenizer": str(tmp_path / "letters")}
    job, trace = run(agent(search(f"{'zeta' * 1000} eta")), **named)
    assert (job.state, job.options["tokenizer"]) == ("ready", "letters"), job.error
    assert (sorted(trace.rounds[0]["returned"]), trace.rounds[0]["truncated"]) == (["long", "short"], ["long"])
    assert prompts(model_server, answers=True)[0].count("zeta") == 2048 // 4
    job.state = "waiting"
    job.save()
    tokenizer.no_padding()
    tokenizer.save(str(tmp_path / "letters" / "tokenizer.json"))
    Trace.objects.all().delete()
    assert "changed since" in finish(job).error


def test_a_cut_by_a_tokenizer_is_the_beginning_that_its_first_tokens_make(tmp_path):
    """Held to decoding the first tokens, as the paper cuts."""
    texts = ["Wings lift: the air above is faster. 映射对象 ünïcode 👍🏽 " * 40, "a  b\n\nc " * 90, "short", ""]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(
        texts[:1], trainers.BpeTrainer(vocab_size=300, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    )
    tokenizer.save(str(tmp_path / "bytes.json"))
    cut = open_cut(describe_tokenizer(str(tmp_path / "bytes.json")))
    for text in texts:
        ids = tokenizer.encode(text).ids
        for most in (1, 7, 40, 41, 42, 43, 2048):
            plain = tokenizer.decode(ids[:most]).rstrip("\ufffd").rstrip()
            shown, is_cut = cut(text, most)
            assert (shown if is_cut else shown.rstrip(), is_cut) == (plain, len(ids) > most)


@pytest.mark.parametrize(("repaired", "search_of", "several"), [(None, "alpha", 1), ("beta", "beta", 0)])
def test_two_searches_in_a_turn_are_repaired_once_and_then_the_first_counts(
    run, model_server, repaired, search_of, several
):
    """C2."""
    script = agent(search(["alpha", "beta"]))
    if repaired:
        script.insert(0, says(search(repaired), contains="searches in one turn"))
    job, trace = run(script, rounds=1)
    assert job.state == "ready" and [one["search"] for one in trace.rounds] == [search_of]
    assert trace.several_searches == several
    assert ["2 searches in one turn" in one for one in prompts(model_server, answers=False)] == [False, True]


@pytest.mark.parametrize(("protocol", "rounds", "stop"), [("fixed", 2, "rounds"), ("adaptive", 3, "empty")])
def test_a_turn_that_cannot_be_read_is_an_empty_round(run, protocol, rounds, stop):
    """Three of them in a row end an adaptive agent."""
    options = {"rounds": rounds} if protocol == "fixed" else {}
    job, trace = run(agent("I would search for wings."), protocol, **options)
    assert (job.state, trace.stop, trace.searches) == ("ready", stop, 0)
    assert [(one["search"], one["returned"]) for one in trace.rounds] == [("", [])] * rounds
    unread = RetrievalCall.objects.filter(campaign=job.campaign, outcome="unparsed", role="search")
    assert unread.count() == 2 * rounds  # each once, and once repaired


@pytest.mark.parametrize("rounds", [5, pytest.param(None, marks=pytest.mark.weekly)])
def test_an_adaptive_agent_that_never_answers_has_to_in_the_end(run, rounds):
    """C3: the limit is 100 unless another one is asked for."""
    _job, trace = run(agent(search("alpha")), "adaptive", rounds=rounds)
    limit = rounds or 100
    assert (len(trace.rounds), trace.searches, trace.stop) == (limit, limit, "limit")
    assert [one["round"] for one in trace.answers] == [limit] and trace.answers[0]["answer"]


def test_an_adaptive_agent_may_answer_at_once(run):
    """C3: R counts as 1."""
    _job, trace = run(agent(answer("I know [x9].")), "adaptive")
    assert (trace.rounds, trace.searches, trace.stop) == ([], 0, "answered")
    assert trace.answers[0]["unknown_citations"] == ["x9"]


def test_a_citation_counts_by_what_was_found_until_its_round(run):
    """C9: gamma-5 comes in round 3 and is cited after every round."""
    _job, trace = run(
        agent(search("alpha"), search("beta"), search("gamma"), answers=answer("So [alpha-5] and [gamma-5], [x9]."))
    )
    assert "gamma-5" in trace.rounds[2]["returned"]
    assert [one["citations"] for one in trace.answers] == [["alpha-5"], ["alpha-5"], ["alpha-5", "gamma-5"]]
    assert [one["unknown_citations"] for one in trace.answers] == [["gamma-5", "x9"], ["gamma-5", "x9"], ["x9"]]


def test_documents_that_a_query_excludes_are_never_returned(run):
    collection = wings()
    query = Query.objects.get(collection=collection)
    query.metadata = {"excluded_ids": ["alpha-1", "alpha-2"]}
    query.save()
    _job, trace = run(agent(search("alpha")), collection=collection, rounds=1)
    assert sorted(trace.rounds[0]["returned"]) == [f"alpha-{number}" for number in (3, 4, 5, 6)]


def test_a_provider_that_wants_marks_gets_one_behind_each_of_the_last_two_rounds():
    fences = [render_round(number, f"search {number}", [document_fields("d1", "text")]) for number in (1, 2, 3)]
    users = [agent_prompt(render_question("how?"), fences[:count], answer=False) for count in (2, 3)]
    judge = Judge(name="a", provider="anthropic", model="claude", id=1)
    requests = [ModelRequest(judge, one, {}, Inputs("how?", (), "", ""), "search") for one in users]
    before, after = (content_blocks(one, {"cache_control": {"type": "ephemeral"}}) for one in requests)
    assert "".join(block["text"] for block in after) == users[1].user
    assert ["cache_control" in block for block in after] == [False, False, True, True, False]
    # What was kept up to its last mark stands at the beginning of the next step, cut alike.
    assert [block["text"] for block in before[:3]] == [block["text"] for block in after[:3]]
