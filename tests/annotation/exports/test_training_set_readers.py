"""Training sets load in the libraries that people train and measure with, and the same options give the same bytes."""

import json
from io import StringIO

import pytest
from django.core.management import call_command

from tests.evidence import make_label
from tests.factories import make_pair
from tests.judged_books import export, lines, make_books, write_targets
from tests.stages import first_slow

pytestmark = pytest.mark.django_db


@pytest.fixture
def books():
    return make_books()


def load(tmp_path, *args, **options):
    """A data set by the real library, from local files alone."""
    import datasets

    datasets.disable_progress_bars()
    return datasets.load_dataset(*args, **options, cache_dir=str(tmp_path / "cache"))


def json_files(folder):
    return {split: str(folder / f"{split}.jsonl") for split in ("train", "dev")}


def test_beir_qrels_load_in_ir_measures_and_hold_the_grades(books, tmp_path):
    import ir_measures

    export(books, "beir", tmp_path / "out")
    out = tmp_path / "out"
    assert [line["_id"] for line in lines(out / "corpus.jsonl")] == [f"d{q}-{d}" for q in range(10) for d in range(3)]
    assert set(lines(out / "corpus.jsonl")[0]) == {"_id", "title", "text"}
    queries = {line["_id"]: line for line in lines(out / "queries.jsonl")}
    assert queries["q3"] == {"_id": "q3", "text": "What is thing 3 number3?", "answers": ["Thing 3."]}
    rows = {}
    for split in ("train", "dev"):
        header, *found = (out / "qrels" / f"{split}.tsv").read_text().splitlines()
        assert header == "query-id\tcorpus-id\tscore"
        rows[split] = [ir_measures.Qrel(q, d, int(score)) for q, d, score in (line.split("\t") for line in found)]
    assert len(rows["train"]) + len(rows["dev"]) == 30
    first = rows["train"][0].query_id
    run = [ir_measures.ScoredDoc(first, f"d{first[1:]}-{d}", 3.0 - d) for d in range(3)]
    found = list(ir_measures.iter_calc([ir_measures.nDCG @ 10], rows["train"], run))
    assert {metric.query_id: metric.value for metric in found}[first] == 1.0
    assert not {row.query_id for row in rows["train"]} & {row.query_id for row in rows["dev"]}


def test_a_benchmark_keeps_all_judgments_and_says_how_many_share_a_document_with_another_split(books, tmp_path):
    document = books.document_set.get(external_id="d0-0")
    for query in books.query_set.exclude(external_id="q0"):
        make_label(make_pair(books, query, document), 0)
    out = StringIO()
    call_command("export", "books", "--format", "mteb", "--out", str(tmp_path / "whole"), stdout=out)
    rows = [line for split in ("train", "dev") for line in lines(tmp_path / "whole" / "qrels" / f"{split}.jsonl")]
    assert len(rows) == 39 and "9 pairs of train share a document with dev" in out.getvalue()
    manifest = export(books, "mteb", tmp_path / "apart", near_duplicates=0.8)
    assert "shared_documents" not in manifest and sum(manifest["counts"]["left_out"].values()) >= 9


def test_the_parquet_folder_loads_as_a_data_set_with_its_card(books, tmp_path):
    import yaml

    manifest = export(books, "parquet", tmp_path / "out", teacher="votes")
    found = load(tmp_path, str(tmp_path / "out"))
    assert {split: len(rows) for split, rows in found.items()} == {"train": 27, "dev": 3}
    first = found["train"][0]
    assert (first["query_id"], first["grade"], first["relevant"], first["score"]) == ("q0", 2, True, 0.8)
    assert (first["yes_votes"], first["votes"], first["source"], first["assumed"]) == (4, 5, "books", False)
    assert first["labelled_at"] is None and "`labelled_at`" in (tmp_path / "out" / "README.md").read_text()
    card = (tmp_path / "out" / "README.md").read_text()
    header = yaml.safe_load(card.split("---")[1])
    assert header["task_categories"] == ["text-ranking"]
    assert header["configs"][0]["data_files"][0] == {"split": "train", "path": "data/train-*"}
    assert header["size_categories"] == ["n<1K"]
    assert [file["name"] for file in manifest["files"]] == [
        "README.md",
        "data/train-00000-of-00001.parquet",
        "data/dev-00000-of-00001.parquet",
    ]


def test_parquet_is_cut_into_shards_that_load_as_one(books, tmp_path, monkeypatch):
    monkeypatch.setattr("annotation.exports.sets.parquet.SHARD", 10)
    monkeypatch.setattr("annotation.exports.sets.parquet.GROUP", 4)
    export(books, "parquet", tmp_path / "out")
    names = sorted(path.name for path in (tmp_path / "out" / "data").iterdir())
    assert names == ["dev-00000-of-00001.parquet", *(f"train-0000{n}-of-00003.parquet" for n in range(3))]
    found = load(tmp_path, str(tmp_path / "out"))["train"]
    assert (len(found), len(set(zip(found["query_id"], found["doc_id"], strict=True)))) == (27, 27)


SHAPES = {
    "pair": (["query", "document", "label"], 27),
    "triplet": (["anchor", "positive", "negative"], 18),
    "n-tuple": (["anchor", "positive", "negative_1", "negative_2"], 9),
    "list": (["query", "docs", "labels"], 9),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_each_shape_of_sentence_transformers_has_its_columns_in_order(books, tmp_path, shape):
    columns, rows = SHAPES[shape]
    negatives = 2 if shape == "n-tuple" else None
    export(books, "sentence-transformers", tmp_path / "out", shape=shape, negatives=negatives)
    found = load(tmp_path, "json", data_files=json_files(tmp_path / "out"))
    assert (found["train"].column_names, len(found["train"])) == (columns, rows)
    assert found["dev"].column_names == columns


@pytest.mark.parametrize("shape", first_slow(SHAPES))
def test_a_cross_encoder_trains_a_step_on_each_shape(books, tmp_path, shape):
    from sentence_transformers.cross_encoder import CrossEncoder, CrossEncoderTrainer, losses
    from sentence_transformers.cross_encoder import CrossEncoderTrainingArguments as Arguments

    from training.published.tiny_bases import tiny_encoder

    negatives = 2 if shape == "n-tuple" else None
    export(books, "sentence-transformers", tmp_path / "out", shape=shape, negatives=negatives)
    found = load(tmp_path, "json", data_files=json_files(tmp_path / "out"))
    model = CrossEncoder(str(tiny_encoder(tmp_path / "base")), num_labels=1)
    loss = {
        "pair": losses.BinaryCrossEntropyLoss,
        "triplet": losses.MultipleNegativesRankingLoss,
        "n-tuple": losses.MultipleNegativesRankingLoss,
        "list": losses.ListNetLoss,
    }[shape](model)
    arguments = Arguments(
        output_dir=str(tmp_path / "run"),
        max_steps=1,
        per_device_train_batch_size=2,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
    )
    trainer = CrossEncoderTrainer(model=model, args=arguments, train_dataset=found["train"], loss=loss)
    assert trainer.train().training_loss > 0


@pytest.mark.slow
def test_trl_trains_a_step_on_the_completions(books, tmp_path):
    from trl import SFTConfig, SFTTrainer

    from tests.tiny_models import tiny

    write_targets(books)
    export(books, "trl", tmp_path / "out")
    found = load(tmp_path, "json", data_files=json_files(tmp_path / "out"))
    base, _, _ = tiny(tmp_path / "base", "qwen3")
    arguments = SFTConfig(
        output_dir=str(tmp_path / "run"),
        max_steps=1,
        per_device_train_batch_size=2,
        max_length=512,
        report_to=[],
        use_cpu=True,
        bf16=False,
        activation_checkpointing=False,
        disable_tqdm=True,
    )
    trainer = SFTTrainer(model=str(base), args=arguments, train_dataset=found["train"])
    assert "completion_mask" in trainer.train_dataset.column_names or "labels" in trainer.train_dataset.column_names
    assert trainer.train().training_loss > 0


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("prism", {"teacher": "votes", "negatives": 1}),
        ("beir", {}),
        ("parquet", {"teacher": "votes"}),
        ("sentence-transformers", {"shape": "list"}),
        ("trl", {}),
        ("rtriever", {}),
        ("flagembedding", {"teacher": "votes"}),
        ("ms-swift", {}),
        ("ms-swift-embedding", {}),
        ("tevatron", {}),
        ("mteb", {}),
    ],
)
def test_the_same_options_give_the_same_bytes(books, tmp_path, name, options):
    from hashlib import sha256

    write_targets(books)
    for folder in ("one", "two"):
        export(books, name, tmp_path / folder, **options)
    made = {path.relative_to(tmp_path / "one"): path.read_bytes() for path in sorted_files(tmp_path / "one")}
    again = {path.relative_to(tmp_path / "two"): path.read_bytes() for path in sorted_files(tmp_path / "two")}
    assert made == again
    listed = json.loads((tmp_path / "one" / "manifest.json").read_text())["files"]
    hashes = {str(path): sha256(data).hexdigest() for path, data in made.items() if path.name != "manifest.json"}
    assert {file["name"]: file["sha256"] for file in listed} == hashes


def sorted_files(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())
