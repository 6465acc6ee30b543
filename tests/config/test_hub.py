"""`hub push`: exports and models as commits of a hub, against a stand-in that answers as huggingface_hub reads it."""

import json
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import call_command
from django.urls import reverse
from huggingface_hub import constants

from annotation.exports.formats import EVERY
from annotation.exports.sets.options import SetOptions
from annotation.exports.snapshots import create_snapshot, write_snapshot
from annotation.models import AuditEntry, Role
from annotation.models.snapshots import Snapshot
from config.hub.cards import list_configs
from corpus.models import Collection
from tests.factories import make_member
from tests.hub_server import READ_ONLY, TOKEN, HubServer, serve_hub
from tests.judged_books import make_books
from training.models import Job, Model

pytestmark = pytest.mark.django_db
CARD = "---\nlicense: unknown\nbase_model: tiny\npipeline_tag: text-ranking\n---\n\n# A model\n"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    with serve_hub() as server:
        monkeypatch.setattr(constants, "ENDPOINT", server.address)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)  # Its protocol has no stand-in.
        # Another test of this process may have imported huggingface_hub while its own network was closed.
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield server


@pytest.fixture
def books(settings: Any, tmp_path: Path) -> Collection:
    settings.VAR = tmp_path / "var"
    return make_books()


def make_export(books: Collection, name: str = "parquet", **options: Any) -> Snapshot:
    asked = SetOptions(**options) if EVERY[name].is_set else None
    return write_snapshot(create_snapshot(collection=books, form=EVERY[name], asked=asked))


def push(*arguments: str) -> tuple[int, dict[str, Any], str]:
    """Exit code, document and messages of `hub push books ...`."""
    out, err = StringIO(), StringIO()
    try:
        call_command("hub", "push", "books", *arguments, "--json", stdout=out, stderr=err)
    except SystemExit as stop:
        assert out.getvalue() == ""
        return int(stop.code or 0), {}, err.getvalue()
    return 0, json.loads(out.getvalue()), err.getvalue()


def head_of(card: bytes) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(card.decode().split("---")[1])
    return found


def test_an_export_is_pushed_with_its_card_and_pushed_again_makes_no_commit(hub: HubServer, books: Collection) -> None:
    made = make_export(books)
    code, told, err = push("team/books", "--export", str(made.number), "--licence", "cc-by-4.0")
    assert code == 0, err
    assert told["changed"] and told["private"] and told["kind"] == "dataset"
    repository = hub.repositories["datasets/team/books"]
    assert repository.private and repository.commits() == ["initial commit", f"Push export {made.number} of books"]
    files, folder = repository.files(), Path(made.folder)
    assert sorted(files) == sorted(
        [".gitattributes", "manifest.json", *(one["name"] for one in made.manifest["files"])]
    )
    assert all(files[name] == (folder / name).read_bytes() for name in files if name[0] not in ".R")
    head, text = head_of(files["README.md"]), files["README.md"].decode()
    assert head["license"] == "cc-by-4.0" and head["language"] == ["en"] and head["size_categories"] == ["n<1K"]
    assert [one["split"] for one in head["configs"][0]["data_files"]] == ["train", "dev"]
    assert "| train | 9 | 27 | 9 |" in text and "| ensemble | 30 |" in text
    assert "- No label comes from people" in text and told["warnings"]
    uploads = hub.uploads
    code, again, _ = push("team/books", "--export", str(made.number), "--licence", "cc-by-4.0")
    assert code == 0 and not again["changed"] and again["commit"] == told["commit"]
    assert len(repository.commits()) == 2 and hub.uploads == uploads
    acts = AuditEntry.objects.filter(act="export.pushed").order_by("pk")
    assert [one.details["changed"] for one in acts] == [True, False] and TOKEN not in str(acts[0].details)


def test_what_was_pushed_loads_with_its_splits(hub: HubServer, books: Collection, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    made = make_export(books)
    push("team/books", "--export", str(made.number))
    for name, content in hub.repositories["datasets/team/books"].files().items():
        (tmp_path / "got" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "got" / name).write_bytes(content)
    found = datasets.load_dataset(str(tmp_path / "got"), cache_dir=str(tmp_path / "cache"))
    assert {split: len(rows) for split, rows in found.items()} == {"train": 27, "dev": 3}


def test_a_branch_is_made_and_files_that_are_gone_are_deleted(hub: HubServer, books: Collection) -> None:
    push("team/books", "--export", str(make_export(books, "prism", teacher="votes").number))
    code, told, _ = push(
        "team/books",
        "--export",
        str(make_export(books, "prism", teacher="votes", split=1.0).number),
        "--revision",
        "v2",
    )
    assert code == 0 and told["deleted"] == ["dev.jsonl"] and told["address"].endswith("/tree/v2")
    repository = hub.repositories["datasets/team/books"]
    assert "dev.jsonl" in repository.files() and "dev.jsonl" not in repository.files("v2")
    assert ".gitattributes" in repository.files("v2")


def test_each_format_says_how_it_loads(books: Collection) -> None:
    wanted = {
        "prism": [{"config_name": "default", "data_files": [
            {"split": "train", "path": "train.jsonl"}, {"split": "dev", "path": "dev.jsonl"}]}],
        "csv": [{"config_name": "default", "data_files": [{"split": "labels", "path": "labels.csv"}]}],
        "qrels": [],
    }  # fmt: skip
    for name, configs in wanted.items():
        options = {"teacher": "votes"} if name == "prism" else {}
        assert list_configs(make_export(books, name, **options).manifest) == configs
    corpus, queries, qrels = list_configs(make_export(books, "beir").manifest)
    assert (corpus["data_files"], queries["data_files"], qrels["sep"]) == ("corpus.jsonl", "queries.jsonl", "\t")


def test_a_model_is_pushed_with_all_its_files(hub: HubServer, books: Collection, tmp_path: Path) -> None:
    folder = tmp_path / "var" / "models" / "books" / "one"
    folder.mkdir(parents=True)
    for name, text in {"README.md": CARD, "reranker.json": "{}", "config.json": "{}", ".lock": ""}.items():
        (folder / name).write_text(text)
    (folder / "model.safetensors").write_bytes(b"weights" * 100)
    job = Job.objects.create(collection=books, folder=str(tmp_path), state=Job.State.FINISHED)
    model = Model.objects.create(collection=books, job=job, name="one", recipe="prism", base="tiny", folder=str(folder))
    code, told, _ = push("team/model", "--model", str(model.pk), "--license", "mit", "--language", "en,zh", "--public")
    assert code == 0 and told["kind"] == "model" and not told["private"]
    files = hub.repositories["models/team/model"].files()
    assert set(files) == {".gitattributes", "README.md", "reranker.json", "config.json", "model.safetensors"}
    assert head_of(files["README.md"]) == {
        "license": "mit", "base_model": "tiny", "pipeline_tag": "text-ranking", "language": ["en", "zh"],
    }  # fmt: skip
    assert (
        push("team/model", "--folder", str(folder), "--license", "mit", "--language", "en,zh", "--public")[1]["changed"]
        is False
    )


def test_private_data_never_goes_to_a_repository_that_everybody_reads(hub: HubServer, books: Collection) -> None:
    made = str(make_export(books, "csv").number)
    push("team/books", "--export", made)
    repository = hub.repositories["datasets/team/books"]
    repository.private = False
    code, _, err = push("team/books", "--export", made)
    assert code == 2 and "team/books is public" in err and len(repository.commits()) == 2
    assert push("team/books", "--export", made, "--public")[0] == 0


def test_what_fails_is_one_line_and_exit_2(
    hub: HubServer, books: Collection, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = str(make_export(books, "csv").number)
    for arguments, words in (
        (("others/books", "--export", made), "refused to take others/books (403)"),
        (("books", "--export", made), "name it OWNER/REPO"),
        (("team/books", "--export", "999"), "books has no export 999"),
        (("team/books", "--model", "999"), "books has no model 999"),
        (("team/books", "--folder", str(tmp_path / "no")), "is not there any more"),
        (("team/books", "--folder", str(tmp_path)), "is no export and no published model"),
        (("team/books", "--export", made, "--licence", "My own"), "as the hub spells it"),
        (("team/books", "--export", made, "--language", "English"), "give codes such as en"),
    ):
        code, _, err = push(*arguments)
        assert code == 2 and words in err and err.count("\n") == 1, err
    monkeypatch.setenv("HF_TOKEN", "hf_unknown")
    assert "(401): it does not know the token" in push("team/books", "--export", made)[2]
    monkeypatch.setenv("HF_TOKEN", READ_ONLY)
    assert "(403): the token in HF_TOKEN may not write there" in push("team/books", "--export", made)[2]
    monkeypatch.delenv("HF_TOKEN")
    code, _, err = push("team/books", "--export", made)
    assert code == 2 and err.startswith("HF_TOKEN is not set")
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:1")
    code, _, err = push("team/books", "--export", made)
    assert code == 2 and "http://127.0.0.1:1 cannot be reached" in err and err.count("\n") == 1
    assert not hub.repositories and not AuditEntry.objects.filter(act="export.pushed").exists()


def test_the_pages_show_the_command(books: Collection, client: Any) -> None:
    made = make_export(books, "csv")
    client.force_login(make_member(books, "alice", Role.ADMIN).user)
    page = client.get(reverse("exports", args=["books"])).content.decode()
    assert f"manage.py hub push books OWNER/NAME --export {made.number}" in page
