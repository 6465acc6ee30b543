"""Training sets: what enters, how it is split, and that every format loads in the library that reads it."""

import json
from io import StringIO

import pytest
from django.core.management import call_command

from corpus.errors import BadInput
from tests.training_sets import export, lines, make_books

pytestmark = pytest.mark.django_db


@pytest.fixture
def books():
    return make_books()


def test_prism_has_the_fields_of_the_released_data_and_where_each_row_comes_from(books, tmp_path):
    manifest = export(books, "prism", tmp_path / "out", teacher="votes")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["dev.jsonl", "manifest.json", "train.jsonl"]
    train, dev = (lines(tmp_path / "out" / f"{split}.jsonl") for split in ("train", "dev"))
    assert (len(train), len(dev)) == (27, 3)
    first = train[0]
    assert first == {
        "query": "What is thing 0 number0?",
        "document": "Title 0\n" + " ".join(f"word0x0x{w}" for w in range(20)),
        "loss_type": "point-wise",
        "revised_score": 0.8,
        "annotated_label": "yes",
        "contribution_evidence": "",
        **{f"judge-{n}_annotated_label": "yes" if n < 5 else "no" for n in range(1, 6)},
        "annotated_score": 0.8,
        "query_id": "q0",
        "doc_id": "d0-0",
        "instruction": "Holds the answer.",
        "source": "books",
        "origin": "ensemble",
        "assumed": False,
    }
    assert (train[1]["annotated_label"], train[1]["revised_score"], train[1]["loss_type"]) == (
        "no",
        0.2,
        "point-wise;sft",
    )
    assert manifest["options"]["teacher"] == "votes"
    assert manifest["counts"]["splits"]["dev"] == {"rows": 3, "queries": 1, "relevant": 1}
    assert [file["name"] for file in manifest["files"]] == ["train.jsonl", "dev.jsonl"]


def test_prism_without_scores_is_refused_with_what_to_do(books, tmp_path):
    with pytest.raises(BadInput, match=r"30 of 30 pairs have no teacher score .* teacher_scores, or choose --teacher"):
        export(books, "prism", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_command_exports_a_training_set(books, tmp_path):
    out = StringIO()
    options = ("--teacher", "labels", "--split", "1", "--seed", "7", "--out", str(tmp_path / "out"))
    call_command("export", "books", "--format", "prism", *options, "--json", stdout=out, stderr=StringIO())
    manifest = json.loads(out.getvalue())
    assert [file["name"] for file in manifest["files"]] == ["train.jsonl"]
    assert {row["revised_score"] for row in lines(tmp_path / "out" / "train.jsonl")} == {0.0, 1.0}
    assert (manifest["options"]["seed"], manifest["options"]["split"]) == (7, 1.0)
