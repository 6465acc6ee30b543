"""The loop in the browser, by votes and watched (issue 3, check 1); every recipe from an export to a served model."""

import json
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

pytest.importorskip("torch")

from annotation.models import Role
from corpus.models import Collection, Label, Target
from tests.conftest import Manage
from tests.engine_parts import FAST, make_judge
from tests.factories import make_collection, make_document, make_member, make_pair, make_query
from tests.instances import PATIENCE
from tests.looks import check_looks
from tests.modelserver.fixtures import LocalModels
from tests.stages import first_slow
from tests.training.serving.served import serve_model
from training.models import Model
from training.recipes.table import RECIPES

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
WORDS = "tiny model, CPU"
TOPICS = {
    "owls": ("voles", "anchors", "bicycles", "clocks"),
    "foxes": ("beetles", "drums", "engines", "fences"),
    "bats": ("midges", "gates", "hammers", "kettles"),
    "frogs": ("slugs", "ladders", "mirrors", "nails"),
    "moths": ("nectar", "ovens", "pianos", "ropes"),
    "hares": ("clover", "sails", "tables", "umbrellas"),
    "crows": ("carrion", "violins", "wagons", "boilers"),
    "newts": ("larvae", "candles", "desks", "flutes"),
}
"""What eats, what it eats, and three things that have nothing to do with it."""
BESIDE = [
    "Old {} rust quickly beside salt water.",
    "Cheap {} break after one summer.",
    "Painted {} hang above that door.",
]


def import_and_judge(manage: Manage, folder: Path) -> None:
    """Each question has passages of its own, so none is left out of train: two that answer, three on other things."""
    texts, queries = {}, {}
    for topic, (food, *others) in TOPICS.items():
        passages = [f"{topic.title()} eat {food}.", f"What {topic} do at dusk: they eat {food} and rest."]
        passages += [text.format(other) for text, other in zip(BESIDE, others, strict=True)]
        queries[f"q-{topic}"] = f"what do {topic} eat"
        texts |= {f"{topic}-{n}": text for n, text in enumerate(passages)}
    for name, content in (("corpus", texts), ("queries", queries)):
        rows = (json.dumps({"_id": key, "text": text}) + "\n" for key, text in content.items())
        (folder / f"{name}.jsonl").write_text("".join(rows))
    pairs = ({"query_id": f"q-{name.split('-')[0]}", "doc_id": name} for name in texts)
    (folder / "pairs.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    files = [part for name in ("corpus", "queries", "pairs") for part in (f"--{name}", folder / f"{name}.jsonl")]
    manage("import_collection", "night", *files)
    manage("judge", "night", "--wait", "--workers", 1)


def finishes(page: Any, what: str) -> None:
    """The page of a job, which is on its way, tells by itself that it is over."""
    page.wait_for_url("**/training/jobs/*/")
    page.wait_for_function("() => /^(Finished|Failed|Refused)/.test(document.querySelector('main h2').innerText)",
                           timeout=400_000)  # fmt: skip
    page.reload()
    text = page.inner_text("main")
    assert page.inner_text("main h2").startswith("Finished"), f"{what}: {text}"
    assert WORDS in text


@pytest.mark.weekly
def test_labels_become_a_model_and_the_page_says_what_it_gained(
    manage, new_page, clicks, violations, console, worker, tmp_path
):
    import_and_judge(manage, tmp_path)
    alice = make_member(Collection.objects.get(name="night"), "alice", Role.ADMIN)
    page = clicks(new_page(user=alice.user))
    page.goto("/c/night/")
    page.click("text=Create a training set")
    page.select_option("[name=teacher]", "votes")
    page.fill("[name=split]", "0.5")
    page.click("button:has-text('Create export')")
    page.wait_for_selector(".snapshot .badge.good")  # leaving earlier would cut the making off

    page.click("text=Train a reranker on this export")
    page.wait_for_selector("button:has-text('Start training')")
    assert clicks.of(page) == 3, "one more click starts the training"
    page.click("summary:has-text('Options')")
    page.fill("[name=max_steps]", "12")
    page.click("button:has-text('Start training')")
    page.wait_for_url("**/training/jobs/*/")
    page.wait_for_selector("figure.chart")
    finishes(page, "training")
    assert "Loss from" in page.inner_text("main") and "adapter and merged" in page.inner_text("main")
    training = page.url

    page.click("text=Show model")
    model = page.url
    assert WORDS in page.inner_text("main") and "gain" in page.inner_text(".notice").lower()
    page.click("button:has-text('Rerank all queries')")
    finishes(page, "reranking")
    with page.expect_download() as saved:
        page.click("text=the run as a TREC file")
    lines = saved.value.path().read_text().splitlines()
    assert len({line.split()[0] for line in lines}) == len(TOPICS) and len(lines[0].split()) == 6

    page.goto(model)
    page.click("button:has-text('Compare before and after')")
    finishes(page, "evaluation")
    text = page.inner_text("main")
    assert "tuned vs base" in text and "BM25" in text and "nDCG@10" in text
    check_looks(new_page, violations, alice.user, (page.url, training, model, "/c/night/training/"))
    assert console == []


# The bases of each kind that the form offers, and what else is filled in to be over soon.
BASES = {"causal": "tiny:qwen3", "encoder": "tiny:encoder", "embedder": "tiny:encoder"}
SHORT = {"erank-grpo": {"batch": "22", "mini_batch": "22", "group": "2", "max_response": "16"}}


def label_animals() -> Collection:
    """Two passages that answer each question, with their contribution and evidence, and nine on other things."""
    night = make_collection("night")
    for topic, (food, *others) in TOPICS.items():
        query = make_query(night, f"what do {topic} eat", external_id=f"q-{topic}")
        answers = [f"{topic.title()} eat {food}.", f"What {topic} do at dusk: they eat {food} and rest."]
        for place, text in enumerate([*answers, *(line.format(other) for line in BESIDE for other in others)]):
            pair = make_pair(night, query, make_document(night, text, external_id=f"{topic}-{place}"))
            Label.objects.create(pair=pair, grade=int(place < 2), origin="people")
            if place < 2:
                words = {"contribution": f"It says what {topic} eat.", "evidence": f"eat {food}"}
                Target.objects.create(pair=pair, version=1, kind="judge", writer="judge-1", good=True, **words)
    return night


def synthesize(manage: Manage, models: LocalModels) -> None:
    """A teacher's chain and score for some documents of each query."""
    said = {"thought": "It says what they eat.", "reasoning": 12, "score": 9, "contains": "dusk"}
    models.script(teacher=[said, {"thought": "It says something else.", "reasoning": 12, "score": 2}])
    make_judge(models, "teacher", parameters={"scale": "0-10", "temperature": 0.8, "max_output_tokens": 4096})
    manage("synthesize_scores", "night", "--judge", "teacher", "--documents", 11, "--k", 1, "--chains",
           environment=FAST)  # fmt: skip


def export(page: Any, form: str) -> None:
    """Make an export of a format; half of the queries are measured."""
    page.goto(f"/c/night/exports/?format={form}")
    page.check(f"[name=format][value={form}]")
    page.select_option("[name=teacher]", "labels")
    page.fill("[name=split]", "0.5")
    page.click("button:has-text('Create export')")
    page.wait_for_selector(".snapshot .badge.good")


def train(page: Any, recipe: str, base: str, **filled: str) -> Model:
    """Train by the form, go to the model's page, and return its model."""
    page.goto("/c/night/training/")
    page.select_option("[name=recipe]", recipe)
    page.select_option("[name=base]", base)
    page.click("summary:has-text('Options')")
    for name, value in filled.items():
        page.fill(f"[name={name}]", value)
    page.click("button:has-text('Start training')")
    finishes(page, recipe)
    assert "training rows" in page.inner_text("main")
    page.click("text=Show model")
    page.wait_for_url("**/training/models/*/")
    model = Model.objects.latest("pk")
    assert json.loads((Path(model.folder) / "reranker.json").read_text())["row_lengths"]["rows"] > 0
    assert model.recipe == recipe and "tiny model, CPU" in page.inner_text("main")
    return model


def ask(address: str, body: dict[str, Any]) -> Any:
    request = Request(address, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urlopen(request, timeout=PATIENCE) as answer:
        return json.loads(answer.read())


@pytest.mark.parametrize("recipe", first_slow(RECIPES))
def test_a_recipe_goes_from_an_export_to_a_served_model(
    recipe, manage, new_page, console, instance, model_server, worker
):
    night = label_animals()
    entry = RECIPES[recipe]
    if entry.format == "erank-sft":
        synthesize(manage, model_server)
    page = new_page(user=make_member(night, "alice", Role.ADMIN).user)
    export(page, entry.format)
    base = BASES[entry.base]
    if recipe == "erank-grpo":  # It begins with what erank-sft made.
        base = train(page, "erank-sft", base, max_steps="2").folder
    model = train(page, recipe, base, max_steps="2", **SHORT.get(recipe, {}))
    assert "serve_model --model VAR/models/night/" in page.inner_text("main")
    texts = ["Owls eat voles.", "Old ropes rust."]
    with serve_model(model.folder, instance) as said:
        address = said["url"]
        if entry.base == "embedder":
            assert address.endswith("/v1/embeddings")
            vectors = [one["embedding"] for one in ask(address, {"model": "m", "input": texts})["data"]]
            assert len(vectors) == 2 and vectors[0] != vectors[1]
        else:
            results = ask(address, {"query": "what do owls eat", "documents": texts})["results"]
            assert sorted(one["index"] for one in results) == [0, 1]
            assert all(0 <= one["relevance_score"] <= 1 for one in results)
    assert console == []
