"""Paths below VAR in the database: each machine reads its own, and what is no path of ours stays as it is."""

from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import override_settings
from hypothesis import given
from hypothesis import strategies as st

from store import paths
from tests.factories import make_collection
from training.models import Job, Model

TEXTS = st.text(max_size=20) | st.sampled_from(["$QUORUM_VAR", "$QUORUM_VAR/x", "$QUORUM_VAR$/x", "/v", "/v/", "/v/x"])


@given(st.recursive(TEXTS | st.integers() | st.none(), lambda part: st.lists(part) | st.dictionaries(TEXTS, part)))
def test_whatever_is_stored_comes_back(document: object) -> None:
    with override_settings(VAR=Path("/v")):
        stored = paths.change_texts(document, paths.encode_path)
        assert paths.change_texts(stored, paths.decode_path) == document


def test_a_path_moves_with_var_and_a_text_with_the_mark_does_not(settings: Any) -> None:
    settings.VAR = Path("/one")
    stored = [paths.encode_path(text) for text in ("/one/models/m", "/one", "/oneself/x", "$QUORUM_VAR/etc", "a/b")]
    assert stored == ["$QUORUM_VAR/models/m", "/one", "/oneself/x", "$QUORUM_VAR$/etc", "a/b"]
    settings.VAR = Path("/two")
    decoded = [paths.decode_path(text) for text in stored]
    assert decoded == ["/two/models/m", "/one", "/oneself/x", "$QUORUM_VAR/etc", "a/b"]
    names = [paths.name_below_var(Path(path)) for path in ("/two/x/../../etc", "/two", "/elsewhere/x", "relative")]
    assert names == [None] * 4 and paths.name_below_var(Path("/two/a/b")) == "a/b", "only paths below VAR have a name"


@pytest.mark.django_db
def test_rows_name_var_by_its_mark_and_are_found_by_their_path(settings: Any, tmp_path: Path) -> None:
    settings.VAR = tmp_path
    job = Job.objects.create(
        collection=make_collection("birds"),
        folder=str(tmp_path / "jobs" / "one"),
        options={"data": str(tmp_path / "exports" / "x"), "models": {"tuned": f"{tmp_path}/models/m"}, "base": "a/b"},
    )
    folder = f"{tmp_path}/models/m"
    Model.objects.create(job=job, name="m", recipe="prism", base="tiny:qwen3", folder=folder)
    with connection.cursor() as cursor:
        cursor.execute("SELECT folder, options FROM training_job")
        ((stored, options),) = cursor.fetchall()
    assert stored == "$QUORUM_VAR/jobs/one" and str(tmp_path) not in str(options)
    assert Model.objects.filter(folder=folder).exists() and Model.objects.filter(folder__in=[folder]).exists()
    assert Job.objects.filter(options__models__tuned=folder).exists()
    assert list(Job.objects.values_list("options__models__tuned", flat=True)) == [folder]
    settings.VAR = tmp_path / "other"
    again = Job.objects.get()
    assert again.folder == f"{tmp_path}/other/jobs/one"
    assert again.options["models"]["tuned"] == f"{tmp_path}/other/models/m" and again.options["base"] == "a/b"
