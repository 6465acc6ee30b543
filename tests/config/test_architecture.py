"""The rooms of the house: imports go one way, what computes is free of Django, nothing slow is imported early."""

import subprocess
import sys
import tomllib
from graphlib import TopologicalSorter

import grimp
import pytest

from config.env import ROOT
from tests import reach

LINTER = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
APPS = LINTER["root_packages"]
CONTRACTS = {contract["name"]: contract for contract in LINTER["contracts"]}
PURE = CONTRACTS["What computes needs no database, no queue and no settings"]["source_modules"]
SLOW = {
    "openai", "anthropic", "google.genai", "boto3", "botocore", "transformers", "sklearn", "trafilatura",
    "torch", "sentence_transformers", "peft", "trl", "playwright",
}  # fmt: skip
"""Seconds to import: only inside functions, or in a module that is itself imported on first use."""
ON_FIRST_USE = (
    "judges.providers.", "judges.offline.judges", "training.trainers.", "training.published.", "training.erank.",
    "training.distillation.",
)  # fmt: skip
STARTED = {"migrations", "celery", "wsgi", "asgi", "__main__"}
"""Parts of the names of modules that something else than the site starts."""


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_no_files_import_each_other_in_a_circle():
    imports = grimp.build_graph(*APPS, cache_dir=None)
    below = {module: imports.find_modules_directly_imported_by(module) for module in imports.modules}
    TopologicalSorter(below).prepare()  # It raises CycleError with the files of a circle.


def test_accounts_reach_no_room_that_reads_labels():
    """The menu's layers let people's rooms import those of quality; sign-in and membership must not."""
    imports, accounts = grimp.build_graph(*APPS, cache_dir=None), "annotation.people.accounts"
    rooms = {f"annotation.quality.{name}" for name in ("costs", "label_errors", "label_quality", "panels", "policies")}
    rooms |= {"annotation.exports", "annotation.home.campaigns", "annotation.home.overview"}
    assert rooms <= imports.modules
    assert [room for room in rooms if imports.find_shortest_chains(accounts, room)] == []


def test_pure_modules_run_without_settings_and_database_and_the_keeper_without_django():
    code = f"import sys; [__import__(name) for name in {PURE}]; print('django.db' in sys.modules)"
    assert run(code) == "False"
    # It runs as long as anybody works: it should stay small and be there at once.
    code = "import sys; import embedded.keeper; print(sorted({'django', 'psycopg', 'redis'} & sys.modules.keys()))"
    assert run(code) == "[]"


@pytest.mark.slow
def test_no_module_that_the_site_may_load_imports_a_slow_library():
    modules = sorted(
        name
        for name in grimp.build_graph(*APPS, cache_dir=None).modules
        if not f"{name}.".startswith(ON_FIRST_USE) and not STARTED & set(name.split("."))
    )
    code = (
        "import sys, os; os.environ['DJANGO_SETTINGS_MODULE'] = 'config.settings'; import django; django.setup();"
        f"[__import__(name) for name in {modules}]; print(sorted({SLOW} & sys.modules.keys()))"
    )
    assert run(code) == "[]"


MOST = 43
"""Project modules that the judging page's view may reach."""


def test_the_judging_page_reaches_few_modules():
    found = reach.reached(reach.JUDGING_PAGE)
    assert 20 < len(found) <= MOST, reach.as_text(found)
