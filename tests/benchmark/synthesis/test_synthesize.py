"""`synthesize` against a scripted server: bundles, what is dropped, budget, and going on."""

import json
from pathlib import Path

import pytest

from benchmark.models import Synthesis, SyntheticBundle
from benchmark.synthesis import files, lifecycle
from benchmark.synthesis.bundles import draw_personas
from benchmark.synthesis.importing import import_bundles
from benchmark.synthesis.lifecycle import SYNTHESES, describe_synthesis
from benchmark.synthesis.seeds import bundled_personas
from corpus.errors import BadInput
from corpus.models import Document, Pair, Query
from jobs import leases
from judges.models.retrieval import RetrievalCall
from judges.prompts import templates
from judges.prompts.render import prompt_versions
from tests.engine_parts import make_judge
from tests.factories import make_collection, make_document, make_query
from tests.synthesis_script import FACTUAL, NEGATIVES, OTHERS, PERSONA, POSITIVES, TEXTS, numbered_script, script

pytestmark = pytest.mark.django_db(transaction=True)
GOLDEN = Path(__file__).with_name("golden_bundle.json")


@pytest.fixture
def steel(settings, tmp_path):
    settings.VAR, settings.RETRY_SECONDS = tmp_path, 0.01
    collection = make_collection("steel")
    make_query(collection, "why do slabs crack", external_id="q1", answers=["a secret answer"])
    return collection


def start(collection, **options):
    return SYNTHESES.start_or_join(collection, {"source": "queries", "judge": "writer", **options})


def work(synthesis, stopped=lambda: False):
    SYNTHESES.perform(leases.claim(Synthesis, pk=synthesis.pk), stopped)
    synthesis.refresh_from_db()
    return synthesis


def make(collection, model_server, *, more=(), **changes):
    make_judge(model_server, "writer")
    model_server.script(writer=[*more, *script(**changes)])
    return work(start(collection))


def add_numbered_queries(collection, count):
    """Queries q1, q2, ... that the numbered script tells apart."""
    for number in range(2, count + 1):
        make_query(collection, f"why does slab number {number:02d} crack in the mill", external_id=f"q{number}")
    Query.objects.filter(external_id="q1").update(text="why does slab number 01 crack in the mill")


def steps(model_server):
    """How often each step was asked, by the beginning of its question."""
    return [one["user"].split("\n")[0] for one in model_server.requests()]


def test_an_analytical_seed_becomes_the_golden_bundle(steel, model_server):
    synthesis = make(steel, model_server)
    assert (synthesis.state, synthesis.error, synthesis.done, synthesis.total) == ("ready", "", 1, 1)
    (bundle,) = files.read_bundles(synthesis)
    known = prompt_versions()
    assert bundle.pop("prompts") == {
        f"synth-{step}": known[f"synth-{step}"][0]
        for step in ("blueprint", "classify", "compose", "decompose", "negatives", "outline", "persona")
    }
    assert bundle == json.loads(GOLDEN.read_text())
    assert (len(bundle["positives"]), len(bundle["negatives"])) == (2, 2)
    requests = model_server.requests()
    assert len(requests) == 8 and "secret" not in json.dumps([one["body"] for one in requests])

    # Negatives are planned from titles and summaries, and written without what is missing.
    sent = {one["user"].split("\n")[0] + str("must not provide" in one["user"]): one["body"] for one in requests}
    planned = json.dumps(sent["Plan the passages that do not help with this query.False"])
    assert all(one["title"] in planned and one["summary"] in planned for one in POSITIVES)
    assert not any(text in planned or one["rationale"] in planned for text, one in zip(TEXTS, POSITIVES, strict=True))
    positive, negative = (json.dumps(sent[f"Write the passages of these plans.{is_not}"]) for is_not in (False, True))
    assert all(one["rationale"] in positive for one in POSITIVES)
    assert all(one["missing_aspect"] in negative and one["missing_aspect"] not in positive for one in NEGATIVES)
    assert not any(text in negative for text in TEXTS)

    # Imported, bundles are marked and tell nobody which passage was planned as relevant.
    make_document(steel, "An older document.", external_id="d1")
    assert import_bundles(synthesis) == {"queries": 1, "documents": 4, "pairs": 4}
    assert import_bundles(synthesis) == {"queries": 0, "documents": 0, "pairs": 0}
    query = Query.objects.get(collection=steel, metadata__synthetic=True)
    assert (query.metadata["seed_query"], query.answers) == ("q1", [])
    written = Document.objects.filter(collection=steel, metadata__synthetic=True)
    assert {one.text for one in written} == {*TEXTS, *OTHERS}
    assert all(set(one.metadata) == {"synthetic", "query_id"} for one in written)
    assert Pair.objects.filter(query=query, is_candidate=True).count() == 4
    assert start(steel).pk == synthesis.pk, "a synthetic query is no seed"


def test_a_factual_seed_has_one_positive_and_one_negative_and_neither_answer_nor_aspects(steel, model_server):
    synthesis = make(steel, model_server, **FACTUAL)
    (bundle,) = files.read_bundles(synthesis)
    assert (bundle["type"], bundle["answer"], bundle["aspects"]) == ("factual", "", [])
    assert [one["aspect"] for one in bundle["positives"]] == [""] and len(bundle["negatives"]) == 1
    asked = steps(model_server)
    assert len(asked) == 6 and not any("apart" in one or "Write the answer" in one for one in asked)


def test_three_examples_of_personas_are_shown_and_none_of_them_is_taken(steel, model_server):
    shown = draw_personas(bundled_personas(), 0, "q1")
    assert shown == draw_personas(bundled_personas(), 0, "q1") and len(set(shown)) == 3
    synthesis = make(steel, model_server, more=[{**script(persona=PERSONA | {"persona": shown[1]})[0], "times": 1}])
    first, second = (one["user"] for one in model_server.requests()[:2])
    assert all(one in first for one in shown) and sum(one in first for one in bundled_personas()) == 3
    assert second.startswith(first) and "personas" in second.removeprefix(first)
    assert files.read_bundles(synthesis)[0]["persona"] == PERSONA["persona"]


FOUR = {"aspects": [{"aspect": f"part {n}", "rationale": "It carries a part."} for n in range(4)]}
TWICE = {"blueprints": [POSITIVES[0], POSITIVES[1] | {"title": "Stress, in a COOLING slab!"}]}
LONG = {"blueprints": [POSITIVES[0], POSITIVES[1] | {"summary": "One. Two is here. Three is here. Four is here."}]}
LACKING = {"blueprints": [{key: NEGATIVES[0][key] for key in NEGATIVES[0] if key != "missing_aspect"}, NEGATIVES[1]]}
FOREIGN = {"blueprints": [NEGATIVES[0] | {"title": "Brittle ranges of STEEL"}, NEGATIVES[1]]}


@pytest.mark.parametrize(
    ("step", "bad", "problem"),
    [
        ("decompose", FOUR, "aspects"),
        ("blueprint", TWICE, "two titles are the same"),
        ("blueprint", LONG, "4 sentences, not exactly 3"),
        ("blueprint", {"blueprints": POSITIVES[:1]}, "there are 1, not 2"),
        ("negatives", LACKING, 'it lacks "blueprints.0.missing_aspect"'),
        ("negatives", FOREIGN, "two titles are the same"),
    ],
)
def test_a_bad_answer_is_repaired_once_and_then_the_bundle_is_dropped_with_its_reason(
    steel, model_server, step, bad, problem
):
    synthesis = make(steel, model_server, **{step: bad})
    assert (synthesis.state, files.read_bundles(synthesis)) == ("ready", [])
    (row,) = files.dropped_rows(synthesis)
    assert (row["step"], row["reason"], row["synthetic"]) == (step, "unparsed", True) and problem in row["problem"]
    assert row["seed"] == {"query_id": "q1", "query": "why do slabs crack"}
    assert RetrievalCall.objects.filter(campaign=synthesis.campaign, role=step).count() == 2
    manifest = json.loads((synthesis.folder / "manifest.json").read_text())
    assert manifest["counts"]["dropped"] == {f"{step}: unparsed": 1}
    assert (synthesis.folder / "dropped.jsonl").read_text() == files.lines_of([row])


@pytest.mark.parametrize(
    ("others", "kept"), [([OTHERS[0], TEXTS[1].replace("cracks along", "breaks along")], 1), (TEXTS, 0)]
)
def test_a_negative_that_says_what_a_positive_says_is_dropped_and_counted(steel, model_server, others, kept):
    """Without any negative left the bundle is dropped."""
    synthesis = make(steel, model_server, others={"passages": others})
    bundles = files.read_bundles(synthesis)
    assert [negative["text"] for bundle in bundles for negative in bundle["negatives"]] == OTHERS[:kept]
    counts = json.loads((synthesis.folder / "manifest.json").read_text())["counts"]
    assert (counts["dropped_negatives"], counts["dropped_bundles"]) == (kept, 1 - kept)
    (row,) = files.dropped_rows(synthesis)
    what, step = ("negative", row["step"]) if kept else ("bundle", "compose")
    assert (row["what"], row["step"], row["reason"]) == (what, step, "near-duplicate")


def test_another_judge_writes_the_passages_alone(steel, model_server):
    make_judge(model_server, "writer")
    make_judge(model_server, "pen")
    model_server.script(writer=script(), pen=script())
    synthesis = work(start(steel, writer="pen"))
    by_model = {one["model"]: set() for one in model_server.requests()}
    for one in model_server.requests():
        by_model[one["model"]].add(one["user"].split("\n")[0])
    assert len(by_model["pen"]) == 1 and not by_model["pen"] & by_model["writer"]
    (bundle,) = files.read_bundles(synthesis)
    assert {name: one["name"] for name, one in bundle["models"].items()} == {"judge": "writer", "writer": "pen"}


def test_a_budget_that_ends_keeps_what_is_whole_and_the_same_start_goes_on(steel, model_server):
    add_numbered_queries(steel, 4)
    make_judge(model_server, "writer")
    model_server.script(writer=[one for n in range(1, 5) for one in numbered_script(n, 0 if n > 2 else 2)])
    synthesis = work(start(steel, max_calls=20))
    assert synthesis.state == "failed" and "Stopped by" in synthesis.error
    assert not synthesis.folder.exists()
    sent = len(model_server.requests())
    assert sent <= 20

    again = start(steel, max_calls=100)
    assert (again.pk, again.state) == (synthesis.pk, "waiting")
    work(again)
    assert (again.state, again.done) == ("ready", 4)
    asked = [one["user"] for one in model_server.requests()]
    assert len(asked) == len(set(asked)) == 2 * 8 + 2 * 6
    assert len(files.read_bundles(again)) == 4


def test_seeds_without_a_response_wait_and_are_retried(steel, model_server, monkeypatch):
    make_judge(model_server, "writer")
    model_server.script(writer={"fault": "500"})
    synthesis = work(start(steel))
    assert synthesis.state == "failed" and "1 of 1" in synthesis.error
    assert SyntheticBundle.objects.get().step == "", "it is not dropped"
    again, sent = start(steel), len(model_server.requests())
    with monkeypatch.context() as changed:
        changed.setattr(lifecycle, "prompts_digest", lambda kind: "other")
        assert "prompts have changed" in work(again).error and len(model_server.requests()) == sent
    model_server.script(writer=script())
    assert work(start(steel)).state == "ready" and len(files.read_bundles(synthesis)) == 1


def test_changed_prompts_make_another_synthesis_and_the_old_bundle_keeps_its_hash(
    steel, model_server, tmp_path, monkeypatch
):
    synthesis = make(steel, model_server)
    (before,) = files.read_bundles(synthesis)
    sent = len(model_server.requests())
    assert start(steel).pk == synthesis.pk

    changed = tmp_path / "prompts"
    changed.mkdir()
    for path in templates.FOLDER.glob("*.txt"):
        (changed / path.name).write_text(path.read_text())
    outline = changed / "synth-outline-system.txt"
    outline.write_text(outline.read_text().replace("You are an expert", "You are a careful expert"))
    monkeypatch.setattr(templates, "FOLDER", changed)
    try:
        clear_prompts()
        other = work(start(steel))
        assert other.pk != synthesis.pk
        (after,) = files.read_bundles(other)
    finally:
        monkeypatch.undo()
        clear_prompts()
    assert {name for name, digest in after["prompts"].items() if digest != before["prompts"][name]} == {"synth-outline"}
    # Only the changed step is asked anew: its answer is the same, and so is what depends on it.
    assert len(model_server.requests()) == sent + 1
    assert files.read_bundles(synthesis) == [before]


def clear_prompts():
    templates.text.cache_clear()
    prompt_versions.cache_clear()


def test_an_estimate_is_near_what_it_costs(steel, model_server):
    add_numbered_queries(steel, 20)
    make_judge(model_server, "writer")
    found = SYNTHESES.estimate_cost(steel, {"source": "queries", "judge": "writer", "limit": 20})
    # Of twenty seeds fourteen are analytical, with two or three aspects, as estimates expect.
    aspects = dict.fromkeys(range(1, 9), 2) | dict.fromkeys(range(9, 15), 3) | dict.fromkeys(range(15, 21), 0)
    model_server.script(writer=[one for number in aspects for one in numbered_script(number, aspects[number])])
    synthesis = work(start(steel, limit=20))
    told = describe_synthesis(synthesis)
    assert (told["bundles"], told["calls"], told["calls_cached"]) == (20, 14 * 8 + 6 * 6, 0)
    assert found.calls.expected == told["calls"]
    assert found.cost.low <= told["cost"] <= found.cost.upper
    assert found.cost.expected == pytest.approx(told["cost"], rel=0.25)


def test_seeds_come_from_a_file_too(steel, model_server, tmp_path):
    path = tmp_path / "seeds.jsonl"
    path.write_text('{"_id": "s1", "text": "why does a plate crack"}\n{"_id": "s2", "text": "cold skin"}\n')
    make_judge(model_server, "writer")
    model_server.script(writer=script())
    synthesis = work(start(steel, source=str(path)))
    assert [one["seed"]["query_id"] for one in files.read_bundles(synthesis)] == ["s1", "s2"]
    assert sorted(RetrievalCall.objects.values_list("query", "topic").distinct()) == [(-2, "s2"), (-1, "s1")]
    path.write_text('{"_id": "s1", "text": "a"}\n{"_id": "s1", "text": "b"}\n')
    with pytest.raises(BadInput, match=r'line 2: the id "s1".* line 1'):
        start(steel, source=str(path))
