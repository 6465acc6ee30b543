"""The rooms of the house: imports go one way, what computes is free of Django, nothing slow is imported early."""

import subprocess
import sys
import tomllib
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from shutil import copytree, ignore_patterns

import grimp
import pytest

from config.env import ROOT

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


def run(code: str, *, where: Path = ROOT) -> str:
    done = subprocess.run([sys.executable, "-c", code], cwd=where, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def lint(where: Path) -> str:
    code = "from importlinter.cli import lint_imports; lint_imports(no_cache=True)"
    return run(f"import sys; sys.path.insert(0, '.'); {code}", where=where)


def test_imports_keep_the_contracts():
    told = lint(ROOT)
    assert "BROKEN" not in told, told
    assert f"{len(CONTRACTS)} kept" in told


def test_an_import_against_each_contract_is_found(tmp_path: Path):
    for app in APPS:
        copytree(ROOT / app, tmp_path / app, ignore=ignore_patterns("__pycache__", "migrations", "*.mo"))
    (tmp_path / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    pure = next(path for name in PURE if (path := tmp_path / f"{name.replace('.', '/')}.py").exists())
    pure.write_text(pure.read_text() + "\n\nimport corpus.models\n")
    wrong = {
        "corpus": "import judges.models",
        "annotation": "import benchmark.models",
        "annotation/work/queue": "import annotation.work.judging.page",
        "annotation/work/judging": "import annotation.exports.rows",
        "judges": "import tests",
        "judges/domain": "import judges.engine.calls",
        "benchmark": "def late():\n    import torch",
        "training": "import training.jobs.views",
        "training/recipes": "import training.serving.app",
        "config": "import corpus.management.commands",
        "jobs": "import embedded",
        "api": "import annotation.exports.api",
    }
    for folder, line in wrong.items():
        (tmp_path / folder / "added.py").write_text(f"{line}\n")
    told = lint(tmp_path)
    assert [name for name in CONTRACTS if f"{name} BROKEN" not in told] == []


def graph() -> grimp.ImportGraph:
    return grimp.build_graph(*APPS, cache_dir=None)


def circle(imports: grimp.ImportGraph) -> list[str]:
    """The files of a circle, each of which imports the one before; [] where there is none."""
    below = {module: imports.find_modules_directly_imported_by(module) for module in imports.modules}
    try:
        TopologicalSorter(below).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_files_import_each_other_in_a_circle():
    imports = graph()
    assert circle(imports) == []
    imports.add_import(importer="corpus.search.text", imported="judges.prompts.render")
    assert {"corpus.search.text", "judges.prompts.render"} <= set(circle(imports))


def test_accounts_reach_no_room_that_reads_labels():
    """The menu's layers let people's rooms import those of quality; sign-in and membership must not."""
    imports, accounts = graph(), "annotation.people.accounts"
    rooms = {f"annotation.quality.{name}" for name in ("costs", "label_errors", "label_quality", "panels", "policies")}
    rooms |= {"annotation.exports", "annotation.home.campaigns", "annotation.home.overview"}

    def reached() -> list[str]:
        return sorted(room for room in rooms if imports.find_shortest_chains(accounts, room))

    assert rooms <= imports.modules and reached() == []
    imports.add_import(importer=f"{accounts}.members", imported="annotation.quality.policies.reading")
    assert "annotation.quality.policies" in reached()


def test_pure_modules_run_without_settings_and_database():
    code = f"import sys; [__import__(name) for name in {PURE}]; print('django.db' in sys.modules)"
    assert run(code) == "False"


@pytest.mark.slow
def test_no_module_that_the_site_may_load_imports_a_slow_library():
    modules = sorted(
        name
        for name in graph().modules
        if not f"{name}.".startswith(ON_FIRST_USE) and not STARTED & set(name.split("."))
    )
    code = (
        "import sys, os; os.environ['DJANGO_SETTINGS_MODULE'] = 'config.settings'; import django; django.setup();"
        f"[__import__(name) for name in {modules}]; print(sorted({SLOW} & sys.modules.keys()))"
    )
    assert run(code) == "[]"


def test_the_keeper_starts_without_django():
    """It runs as long as anybody works: it should stay small and be there at once."""
    code = "import sys; import embedded.keeper; print(sorted({'django', 'psycopg', 'redis'} & sys.modules.keys()))"
    assert run(code) == "[]"


def test_the_list_of_pure_modules_names_modules_that_exist():
    paths = [ROOT / name.replace(".", "/") for name in sorted(PURE)]
    assert [path for path in paths if not (path.with_suffix(".py").exists() or path.is_dir())] == []
