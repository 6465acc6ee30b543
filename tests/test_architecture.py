"""The rooms of the house: imports go one way, what computes is free of Django, nothing slow is imported early."""

import subprocess
import sys

import pytest

from tests import architecture
from tests.architecture import PURE, ROOT, SLOW, imports_of, violations


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_imports_go_one_way():
    assert violations() == []


def test_the_list_of_pure_modules_names_modules_that_exist():
    assert architecture.missing_pure() == []


@pytest.mark.parametrize(
    ("path", "source", "reason"),
    [
        ("corpus/labels.py", "from judges.models import Work", "corpus must not import judges"),
        ("judges/campaigns.py", "import annotation.models", "judges must not import annotation"),
        ("annotation/queue.py", "from benchmark import runs", "annotation must not import benchmark"),
        ("training/jobs.py", "from annotation import queue", "training must not import annotation"),
        ("judges/models.py", "def late():\n    from judges.campaigns import pause", "models import models"),
        ("annotation/queue.py", "from annotation.views import judging", "only urls and views import views"),
        ("judges/routing.py", "from django.db import models", "must not import django"),
        ("judges/debate.py", "from judges.models import Campaign", "a pure module imports pure modules only"),
        ("judges/engine/calls.py", "import openai", "inside functions"),
        ("judges/engine/calls.py", "def late():\n    import torch", "in training only"),
        ("training/trainer.py", "import torch", "inside functions"),
    ],
)
def test_an_import_against_the_direction_is_found(path: str, source: str, reason: str):
    found = [why for one in imports_of(ROOT / path, source) for rule in architecture.RULES if (why := rule(one))]
    assert any(reason in why for why in found), found


def test_pure_modules_run_without_settings_and_database():
    names = sorted(PURE)
    code = f"import sys; [__import__(name) for name in {names}]; print('django.db' in sys.modules)"
    assert run(code) == "False"


def test_the_site_starts_without_the_slow_libraries():
    slow = SLOW - {"google"} | {"google.genai", "torch", "playwright"}
    code = (
        "import sys, os; os.environ['DJANGO_SETTINGS_MODULE'] = 'config.settings'; import django; django.setup();"
        "from django.urls import get_resolver; get_resolver().url_patterns;"
        f"print(sorted({slow} & sys.modules.keys()))"
    )
    assert run(code) == "[]"


def test_the_keeper_starts_without_django():
    """It runs as long as anybody works: it should stay small and be there at once."""
    code = (
        "import sys; import config.services.keeper; print(sorted({'django', 'psycopg', 'redis'} & sys.modules.keys()))"
    )
    assert run(code) == "[]"
