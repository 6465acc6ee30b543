"""docs/index.md, "Then close the loop": its commands, read and run with a tiny base on the CPU."""

import json
import re
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("torch")

from config.env import ROOT
from tests.config.test_readme import PYTHON, START, Reader
from tests.instances import Instance
from tests.training.jobs.test_browser_training import BESIDE, TOPICS

LOOP = re.findall(
    r"^    (\S+ manage\.py .+)$", START.partition("Then close the loop.")[2].partition("\n\nEvery")[0], re.M
)
# What the test has instead of a GPU, a base from the hub, and hours.
TINY = {"Qwen/Qwen3-0.6B": "tiny:qwen3 --preset tiny --max-steps 4 --max-length 512", "--device cuda": "--device cpu"}


def write_collection(folder: Path) -> None:
    """Questions about animals, each with passages that answer and passages on other things."""
    texts, asked = [], []
    for topic, (food, *others) in TOPICS.items():
        passages = [f"{topic.title()} eat {food}.", f"What {topic} do at dusk: they eat {food} and rest."]
        passages += [text.format(other) for text, other in zip(BESIDE, others, strict=True)]
        asked.append({"_id": f"q-{topic}", "text": f"what do {topic} eat"})
        texts += [{"_id": f"{topic}-{n}", "text": text} for n, text in enumerate(passages)]
    pairs = [{"query_id": f"q-{one['_id'].split('-')[0]}", "doc_id": one["_id"]} for one in texts]
    for name, rows in (("corpus", texts), ("queries", asked), ("pairs", pairs)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.weekly
def test_from_labels_to_a_served_model_as_printed(make_instance: Callable[..., Instance], tmp_path: Path) -> None:
    instance = make_instance(QUORUM_LOOPBACK_ONLY="1", OMP_NUM_THREADS="1")
    reader = Reader(instance, tmp_path, "")
    write_collection(tmp_path)
    before = (
        "import_collection mine --corpus corpus.jsonl --queries queries.jsonl --pairs pairs.jsonl",
        "judge mine --wait --workers 1",
        "export mine --format qrels --out qrels",
    )
    words = [command.removeprefix(PYTHON).split()[0] for command in LOOP]
    assert words == ["export", "train", "retrieve", "runs", "rerank", "evaluate", "serve_model"]
    assert all(any(old in command for command in LOOP) for old in TINY)
    *commands, serve = LOOP
    for command in [*(PYTHON + one for one in before), *commands]:
        for old, new in TINY.items():
            command = command.replace(old, new)
        done = reader.run(command)
        assert done.returncode == 0, f"{command}: {done.stderr}"
    assert "nDCG@10" in done.stdout
    serve = serve.removeprefix(PYTHON).replace("reranker", str(tmp_path / "reranker"))
    served = instance.start(str(ROOT / "manage.py"), *serve.split(), "--port", "0")
    assert served.stdout is not None
    url = json.loads(served.stdout.readline())["url"]
    asked = json.dumps({"query": "what do owls eat", "documents": ["Owls eat voles.", "Old ropes rust."]})
    request = urllib.request.Request(url, asked.encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert len(json.loads(answer.read())["results"]) == 2
