"""The judging page stands on few modules: a change of another feature cannot break where people work all day."""

from pathlib import Path

import pytest

from tests import reach

MOST = 43
"""Project modules that the judging page's view may reach."""


def test_the_judging_page_reaches_few_modules():
    found = reach.reached(reach.JUDGING_PAGE)
    assert len(found) <= MOST, reach.as_text(found)


def test_an_import_inside_a_function_counts_and_one_for_type_checkers_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    files = {
        "corpus/__init__.py": '"""Without content."""\n',
        "corpus/begin.py": "from typing import TYPE_CHECKING\n\n"
        "if TYPE_CHECKING:\n    from corpus import typed\n\n\ndef late():\n    from corpus.models import texts\n",
        "corpus/typed.py": "",
        "corpus/models/__init__.py": "NAME = 1\n",
        "corpus/models/texts.py": "import json\nimport corpus.below\n",
        "corpus/below.py": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(reach, "ROOT", tmp_path)
    assert reach.reached("corpus.begin") == {
        "corpus.below": "corpus.models.texts",
        "corpus.models": "corpus.begin",
        "corpus.models.texts": "corpus.begin",
    }
