"""Training sets load in the libraries that people train and measure with: exact fields, and the same bytes again."""

import json
from hashlib import sha256
from io import StringIO

import pytest
from django.core.management import call_command

from annotation.exports.formats import SETS
from corpus.models import Document, Label
from tests.evidence import make_label
from tests.factories import make_document, make_pair
from tests.judged_books import export, lines, write_targets
from tests.stages import first_slow

pytestmark = pytest.mark.django_db


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


def test_the_parquet_folder_loads_as_a_data_set_with_its_card(books, tmp_path, load):
    import yaml

    manifest = export(books, "parquet", tmp_path / "out", teacher="votes")
    found = load(str(tmp_path / "out"))
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


def test_parquet_is_cut_into_shards_that_load_as_one(books, tmp_path, load, monkeypatch):
    monkeypatch.setattr("annotation.exports.sets.parquet.SHARD", 10)
    monkeypatch.setattr("annotation.exports.sets.parquet.GROUP", 4)
    export(books, "parquet", tmp_path / "out")
    names = sorted(path.name for path in (tmp_path / "out" / "data").iterdir())
    assert names == ["dev-00000-of-00001.parquet", *(f"train-0000{n}-of-00003.parquet" for n in range(3))]
    found = load(str(tmp_path / "out"))["train"]
    assert (len(found), len(set(zip(found["query_id"], found["doc_id"], strict=True)))) == (27, 27)


SHAPES = {
    "pair": ("query document label", 27, "BinaryCrossEntropyLoss"),
    "triplet": ("anchor positive negative", 18, "MultipleNegativesRankingLoss"),
    "n-tuple": ("anchor positive negative_1 negative_2", 9, "MultipleNegativesRankingLoss"),
    "list": ("query docs labels", 9, "ListNetLoss"),
}


def shaped(books, tmp_path, load, shape):
    options = {"negatives": 2} if shape == "n-tuple" else {}
    export(books, "sentence-transformers", tmp_path / "out", shape=shape, **options)
    return load(folder=tmp_path / "out")


@pytest.mark.parametrize("shape", SHAPES)
def test_each_shape_of_sentence_transformers_has_its_columns_in_order(books, tmp_path, load, shape):
    columns, rows, _loss = SHAPES[shape]
    found = shaped(books, tmp_path, load, shape)
    assert (found["train"].column_names, len(found["train"])) == (columns.split(), rows)
    assert found["dev"].column_names == columns.split()


STEP = {"max_steps": 1, "per_device_train_batch_size": 2, "report_to": [], "use_cpu": True, "disable_tqdm": True}


@pytest.mark.parametrize("shape", first_slow(SHAPES))
def test_a_cross_encoder_trains_a_step_on_each_shape(books, tmp_path, load, shape):
    from sentence_transformers.cross_encoder import CrossEncoder, CrossEncoderTrainer, losses
    from sentence_transformers.cross_encoder import CrossEncoderTrainingArguments as Arguments

    from training.published.tiny_bases import tiny_encoder

    rows = shaped(books, tmp_path, load, shape)["train"]
    model = CrossEncoder(str(tiny_encoder(tmp_path / "base")), num_labels=1)
    loss = getattr(losses, SHAPES[shape][2])(model)
    arguments = Arguments(output_dir=str(tmp_path / "run"), **STEP)
    trainer = CrossEncoderTrainer(model=model, args=arguments, train_dataset=rows, loss=loss)
    assert trainer.train().training_loss > 0


@pytest.mark.slow
def test_trl_trains_a_step_on_the_completions(books, tmp_path, load):
    from trl import SFTConfig, SFTTrainer

    from tests.tiny_models import tiny

    write_targets(books)
    export(books, "trl", tmp_path / "out")
    found = load(folder=tmp_path / "out")
    base, _, _ = tiny(tmp_path / "base", "qwen3")
    mode = {"max_length": 512, "bf16": False, "activation_checkpointing": False}
    arguments = SFTConfig(output_dir=str(tmp_path / "run"), **STEP, **mode)
    trainer = SFTTrainer(model=str(base), args=arguments, train_dataset=found["train"])
    assert "completion_mask" in trainer.train_dataset.column_names or "labels" in trainer.train_dataset.column_names
    assert trainer.train().training_loss > 0


@pytest.mark.parametrize("name", sorted(SETS.keys() - {"preferences", "erank-sft"}))
def test_the_same_options_give_the_same_bytes(books, tmp_path, name):
    options = {"prism": {"negatives": 1}, "sentence-transformers": {"shape": "list"}}.get(name, {})
    if name in ("prism", "parquet", "flagembedding"):
        options["teacher"] = "votes"
    write_targets(books)
    made = []
    for folder in (tmp_path / "one", tmp_path / "two"):
        export(books, name, folder, **options)
        made.append({str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()})
    assert made[0] == made[1]
    manifest = json.loads(made[0].pop("manifest.json"))
    hashes = {path: sha256(data).hexdigest() for path, data in made[0].items()}
    assert {file["name"]: file["sha256"] for file in manifest["files"]} == hashes


QUERY = "What is thing 0 number0?"
GROUPED = ("rtriever", "flagembedding", "ms-swift", "ms-swift-embedding", "tevatron")


def text_of(place):
    return f"Title {place}\n" + " ".join(f"word0x{place}x{w}" for w in range(20))


def first_line(folder):
    return lines(folder / "train.jsonl")[0]


def test_rtriever_has_each_query_with_its_positives_and_its_marked_negatives(books, tmp_path):
    Document.objects.filter(external_id="d0-2").update(title="", text="Unjudged.")
    Label.objects.filter(pair__document__external_id="d0-2").delete()
    (tmp_path / "a.run").write_text("q0 Q0 d0-2 1 9.0 system\n")
    manifest = export(books, "rtriever", tmp_path / "out", split=1, run=str(tmp_path / "a.run"), ranks="1-5")
    assert first_line(tmp_path / "out") == {
        "query_id": "q0", "query": QUERY, "synthetic": False, "instruction": "Holds the answer.", "labelled_at": None,
        "positives": [{"doc_id": "d0-0", "text": text_of(0)}],
        "negatives": [
            {"doc_id": "d0-1", "text": text_of(1), "assumed": False},
            {"doc_id": "d0-2", "text": "Unjudged.", "assumed": True},
        ],
    }  # fmt: skip
    assert (manifest["format"], manifest["counts"]["rows"], manifest["counts"]["pairs"]) == ("rtriever", 10, 30)


def test_flagembedding_has_the_teachers_scores_where_one_is_asked_for_and_tevatron_title_and_text_apart(
    books, tmp_path
):
    export(books, "flagembedding", tmp_path / "labels", split=1)
    plain = {"query": QUERY, "pos": [text_of(0)], "neg": [text_of(1), text_of(2)]}
    assert first_line(tmp_path / "labels") == plain | {"prompt": "Holds the answer."}
    export(books, "flagembedding", tmp_path / "votes", split=1, teacher="votes")
    line = first_line(tmp_path / "votes")
    assert (line["pos_scores"], line["neg_scores"]) == ([0.8], [0.2, 0.2])
    export(books, "tevatron", tmp_path / "tevatron", split=1)
    line = first_line(tmp_path / "tevatron")
    assert list(line) == ["query_id", "query", "positive_passages", "negative_passages"]
    assert line["positive_passages"] == [{"docid": "d0-0", "title": "Title 0", "text": text_of(0).split("\n")[1]}]
    assert [passage["docid"] for passage in line["negative_passages"]] == ["d0-1", "d0-2"]


@pytest.mark.parametrize(("name", "role"), [("ms-swift", "assistant"), ("ms-swift-embedding", "user")])
def test_ms_swift_has_messages_with_a_list_of_turns_for_each_document(books, tmp_path, name, role):
    export(books, name, tmp_path / "out", split=1)
    assert first_line(tmp_path / "out") == {
        "messages": [{"role": "user", "content": QUERY}],
        "positive_messages": [[{"role": role, "content": text_of(0)}]],
        "negative_messages": [[{"role": role, "content": text_of(1)}], [{"role": role, "content": text_of(2)}]],
    }


@pytest.mark.parametrize("name", [*GROUPED, "prism", "trl"])
def test_every_line_loads_with_one_type_a_column(books, tmp_path, load, name):
    write_targets(books)
    export(books, name, tmp_path / "out", teacher="votes" if name in ("flagembedding", "prism") else "labels")
    found = load(folder=tmp_path / "out")
    assert found["train"].features == found["dev"].features
    assert (len(found["train"]), len(found["dev"])) == ((9, 1) if name in GROUPED else (27, 3))


def test_queries_without_a_side_and_negatives_with_the_text_of_a_positive_are_left_out_and_counted(books, tmp_path):
    original = Document.objects.get(external_id="d0-0")
    copy = make_document(books, original.text, title=original.title, external_id="copy")
    make_label(make_pair(books, books.query_set.get(external_id="q0"), copy), 0)
    counts = export(books, "rtriever", tmp_path / "out", split=1, near_duplicates=0)["counts"]
    assert list(counts["left_out"].values()) == [1] and "same text" in str(counts["left_out"])
    line = first_line(tmp_path / "out")
    assert not {one["text"] for one in line["positives"]} & {one["text"] for one in line["negatives"]}
    copy.pair_set.get().labels.all().delete()
    for query, grade in (("q3", 0), ("q4", 2)):
        Label.objects.filter(pair__query__external_id=query).update(grade=grade)
    counts = export(books, "rtriever", tmp_path / "sides", split=1)["counts"]
    assert (counts["rows"], counts["pairs"]) == (8, 24)
    assert list(counts["left_out"].values()) == [6] and "too few relevant" in str(counts["left_out"])


def test_mteb_loads_as_the_three_configurations_that_its_loader_asks_for(books, tmp_path, load):
    """As mteb's own loader: the configurations by name, a split where there is one, else the only one, then a cast."""
    import datasets

    manifest = export(books, "mteb", tmp_path / "out")
    folder = str(tmp_path / "out")
    assert manifest["documents"] == 30
    splits = {
        name: datasets.get_dataset_split_names(folder, name) for name in datasets.get_dataset_config_names(folder)
    }
    assert splits == {"corpus": ["corpus"], "queries": ["queries"], "qrels": ["train", "dev"]}
    corpus, queries, qrels = (load(folder, name, split=splits[name][-1]) for name in ("corpus", "queries", "qrels"))
    assert (corpus.column_names, len(corpus)) == (["_id", "title", "text"], 30)
    assert (queries.column_names, len(queries)) == (["_id", "text"], 10)
    text, whole = datasets.Value("string"), datasets.Value("int32")
    rows = qrels.cast(datasets.Features({"query-id": text, "corpus-id": text, "score": whole})).to_list()
    assert sorted(row["score"] for row in rows) == [0, 0, 2]
    assert {row["query-id"] for row in rows} <= set(queries["_id"])
    assert {row["corpus-id"] for row in rows} <= set(corpus["_id"])
