"""The bundled collection: cut from this Python, with gold that names the passages it was read from."""

import os
import subprocess
import sys
from pathlib import Path
from pydoc_data.topics import topics

from corpus.bundled import build
from corpus.bundled.passages import content_hash, cut_passages, cut_topic
from tests.judged_books import lines


def test_passages_have_about_130_words_and_ids_of_their_own():
    found = cut_passages(topics)
    words = [len(passage.text.split()) for passage in found]
    assert len(found) > 350
    assert 100 < sum(words) / len(words) < 150
    assert len({passage.id for passage in found}) == len(found) == len({passage.sha256 for passage in found})


def test_a_passage_never_crosses_a_heading_and_loses_no_word():
    paragraphs = "\n\n".join(f"Paragraph {n} " + "word " * 50 for n in range(6))
    topic = f"Loops\n*****\n\n{paragraphs}\n\nElse\n====\n\n{'other ' * 60}"
    found = list(cut_topic(topic))
    assert [title for title, _ in found][-1] == "Loops: Else"
    assert all("other" not in text for title, text in found if title == "Loops")
    assert sum(len(text.split()) for _, text in found) == 6 * 52 + 60


def test_the_same_python_builds_the_same_files_whose_gold_names_passages_that_exist(tmp_path: Path):
    built, again = build(tmp_path / "a"), build(tmp_path / "b")
    assert built == again
    files = ("corpus.jsonl", "queries.jsonl", "pairs.jsonl")
    assert all((tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes() for name in files)
    corpus, questions, gold = (lines(tmp_path / "a" / name) for name in files)
    documents = {row["_id"] for row in corpus}
    assert len(questions) >= 40
    assert all(question["answers"] for question in questions)
    assert built["pairs"] + built["dropped"] == 83
    assert built["pairs"] >= 60
    assert {row["doc_id"] for row in gold} <= documents
    assert {row["query_id"] for row in gold} <= {row["_id"] for row in questions}
    assert 20 < sum(row["gold"] for row in gold) < 60


def test_gold_of_a_passage_that_is_worded_differently_is_dropped_and_counted(tmp_path: Path):
    text = next(passage for passage in cut_passages(topics) if passage.id.startswith("assert-")).text
    changed = {**topics, "assert": topics["assert"].replace("convenient", "handy")}
    assert content_hash(text) not in {passage.sha256 for passage in cut_passages(changed)}
    before, after = build(tmp_path / "a"), build(tmp_path / "b", changed)
    assert after["dropped"] == before["dropped"] + 1


def test_the_texts_are_read_without_django_as_the_trainer_does():
    command = "import sys, corpus.bundled.passages; sys.exit('corpus.models' in sys.modules)"
    environment = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    assert subprocess.run([sys.executable, "-c", command], env=environment, check=False).returncode == 0
