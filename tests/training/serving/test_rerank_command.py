"""`runs NAME export RUN F` and `rerank`: a stored run to a file, scored anew, killed and continued."""

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="needs the training extra: make install-training")

from benchmark.runs.files import read_run
from config.env import ROOT
from corpus.models import Document
from tests.called import call
from tests.rankings import make_wings, start_run, work_on
from tests.tiny_models import tiny
from training.jobs.reranking import PartialRun

pytestmark = pytest.mark.django_db(transaction=True)
TEXTS = ["A wing has lift.", "A wing in a slipstream has more lift. " * 20, "Heat flows through a wing."]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny(tmp_path_factory.mktemp("rerank") / "model", "qwen3")[0]


@pytest.fixture
def exported(tmp_path: Path, settings: Any) -> Path:
    """A stored BM25 run of six queries as a file."""
    settings.VAR = tmp_path / "var"
    wings = make_wings(TEXTS, [f"wing {place}" for place in range(6)])
    run = start_run(wings, depth=3)
    path = tmp_path / "bm25.run"
    early = call("runs", "wings", "export", "bm25", path)
    assert early.code == 2 and "is not ready" in early.err
    work_on(run)
    done = call("runs", "wings", "export", "bm25", path, "--json")
    assert (done.code, json.loads(done.out)) == (0, {"out": str(path), "run": "bm25", "lines": 18})
    return path


def rerank(model: Path, run: Path, out: Path, *more: str) -> Any:
    return call("rerank", "--model", model, "--run", run, "--collection", "wings", "--out", out, "--json", *more)


def test_a_stored_run_is_written_as_others_read_it_and_another_text_is_no_continuation(exported, model, tmp_path):
    found = read_run(exported)
    assert list(found) == [f"q{place}" for place in range(6)] and {len(one) for one in found.values()} == {3}
    again = call("runs", "wings", "export", "bm25", exported)
    assert again.code == 2 and "exists: " in again.err
    unknown = call("runs", "wings", "export", "dense", exported.with_name("other"))
    assert unknown.code == 2 and "'dense'; there are: bm25" in unknown.err
    with PartialRun(tmp_path / "out.run", "another"):
        busy = rerank(model, exported, tmp_path / "out.run")
        assert busy.code == 2 and "another rerank" in busy.err
    Document.objects.filter(external_id="d0").update(text="Another text.")
    found = rerank(model, exported, tmp_path / "out.run")
    assert found.code == 2 and "another model, run, " in found.err


def test_the_first_page_exports_the_run_that_it_reranks():
    lines = (ROOT / "docs" / "index.md").read_text().splitlines()
    example = [line.split("manage.py ")[1] for line in lines if line.startswith("    .venv/bin/python manage.py ")]
    assert example.index("runs mine export bm25 bm25.run") < next(
        place for place, line in enumerate(example) if line.startswith("rerank ") and "--run bm25.run" in line
    )


def test_an_interrupted_rerank_goes_on_where_it_stopped(model, exported, tmp_path, monkeypatch):
    whole = json.loads(rerank(model, exported, tmp_path / "whole.run").out)
    assert (whole["pairs"], whole["queries"], whole["resumed_after"]) == (18, 6, 0)
    assert (whole["precision"], whole["prompt"], whole["model"]) == ("fp32", "quorum", "tiny model, CPU")
    out, add = tmp_path / "out.run", PartialRun.add

    def killed(self: PartialRun, line: dict[str, Any]) -> None:
        if len(self.scored) == 2:
            self.file.write('{"query_id": "torn')
            self.file.flush()
            raise KeyboardInterrupt
        add(self, line)

    monkeypatch.setattr(PartialRun, "add", killed)
    assert rerank(model, exported, out).code == 130
    monkeypatch.setattr(PartialRun, "add", add)
    part = tmp_path / "out.run.part"
    assert not out.exists() and len(part.read_text().splitlines()) == 4
    # Other options would make one ranking of two.
    other = rerank(model, exported, out, "--precision", "bf16")
    assert other.code == 2 and "another model" in other.err
    done = rerank(model, exported, out)
    assert done.code == 0 and json.loads(done.out)["resumed_after"] == 2
    assert "2 of 6 queries" in done.err
    assert out.read_text() == (tmp_path / "whole.run").read_text().replace("whole", "out") and not part.exists()


def test_documents_that_were_cut_are_counted(model, exported, tmp_path):
    about = json.loads((model / "tokenizer_config.json").read_text())
    short = tmp_path / "short"
    short.mkdir()
    for path in model.iterdir():
        (short / path.name).write_bytes(path.read_bytes())
    (short / "tokenizer_config.json").write_text(json.dumps(about | {"model_max_length": 330}))
    done = rerank(short, exported, tmp_path / "out.run")
    assert json.loads(done.out)["cut"] == 6 and "6 documents cut" in done.err
