"""Which way imports may go (docs/adr/0001-rooms.md), read from the source with ast: `python -m tests.architecture`.

config -> annotation -> judges -> corpus            views -> forms, services, selectors -> models -> pure modules
config -> benchmark  -> judges -> corpus            urls, tasks and commands are other doors to the same services
config -> training   -> corpus, benchmark
all of them -> jobs, which knows no app
"""

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
BELOW = {
    "config": {"annotation", "benchmark", "training", "judges", "corpus", "jobs"},
    "annotation": {"judges", "corpus", "jobs"},
    "benchmark": {"judges", "corpus", "jobs"},
    "training": {"benchmark", "judges", "corpus", "jobs"},
    "judges": {"corpus", "jobs"},
    "corpus": {"jobs"},
    "jobs": set(),
}
APPS = tuple(BELOW)
PURE = {
    "annotation.agreement.cohen",
    "annotation.agreement.dawid_skene",
    "annotation.agreement.groups",
    "annotation.agreement.measures",
    "annotation.agreement.proportions",
    "annotation.agreement.resampling",
    "annotation.aspects.kappa",
    "annotation.care.matching",
    "annotation.care.placing",
    "annotation.care.telling",
    "annotation.exports.sets.balancing",
    "annotation.exports.sets.choosing",
    "annotation.exports.sets.near",
    "annotation.exports.sets.options",
    "annotation.exports.sets.rows",
    "annotation.exports.sets.splitting",
    "annotation.fairness.flips",
    "annotation.fairness.paired",
    "annotation.fairness.times",
    "annotation.fairness.votes",
    "annotation.money.labels",
    "annotation.policies.crossing",
    "annotation.policies.lara",
    "annotation.policies.lara_replay",
    "annotation.policies.measures",
    "annotation.policies.people",
    "annotation.policies.replay",
    "annotation.policies.rules",
    "annotation.policies.stored",
    "annotation.policies.study",
    "annotation.panels.choosing",
    "annotation.panels.independence",
    "annotation.panels.quality",
    "annotation.panels.subsets",
    "benchmark.hybrids",
    "benchmark.combining",
    "benchmark.interpolated",
    "benchmark.measures",
    "benchmark.nearest",
    "benchmark.pooling",
    "benchmark.report.computing",
    "benchmark.report.curves",
    "benchmark.report.judged",
    "benchmark.report.letters",
    "benchmark.report.measures",
    "benchmark.report.naming",
    "benchmark.report.paired",
    "benchmark.report.shifts",
    "benchmark.report.tabling",
    "benchmark.report.tested",
    "benchmark.report.verdict",
    "benchmark.safety",
    "benchmark.tables",
    "corpus.arms",
    "corpus.aspects.entries",
    "corpus.aspects.passages",
    "corpus.cells",
    "corpus.charts",
    "corpus.charts.bars",
    "corpus.charts.bump",
    "corpus.charts.drawing",
    "corpus.charts.flows",
    "corpus.charts.grids",
    "corpus.charts.intervals",
    "corpus.charts.lines",
    "corpus.charts.plot",
    "corpus.charts.points",
    "corpus.charts.record",
    "corpus.errors",
    "corpus.evidence",
    "corpus.keys",
    "corpus.latex",
    "corpus.phrases",
    "corpus.postings",
    "corpus.rubric",
    "corpus.text",
    "jobs.processes",
    "judges.audits",
    "judges.canary_texts",
    "judges.collapse",
    "judges.debate",
    "judges.ensemble",
    "judges.estimates",
    "judges.injections",
    "judges.listed_prices",
    "judges.money",
    "judges.orderings",
    "judges.outputs",
    "judges.presets",
    "judges.price_keys",
    "judges.prices",
    "judges.progress",
    "judges.prompts",
    "judges.quality",
    "judges.quotes",
    "judges.records",
    "judges.retrievals",
    "judges.routing",
    "judges.unwrapping",
    "judges.verdicts",
    "judges.writings",
    "training.calibration",
    "training.gains",
    "training.metrics",
    "training.publication",
}
"""What computes: no Django, and of the project only each other."""
WORDS = "django.utils.translation."
"""What a pure module may have of Django: the words of its results in the reader's language (docs/adr/0030)."""
HEAVY = {"torch": "training", "sentence_transformers": "training", "peft": "training", "trl": "training"}
"""Belong to one app, and only inside functions, so that no other command pays for them."""
ENGINE = "training.engine"
"""What the trainer's subprocess imports: it may have torch at the top, and is itself imported inside functions."""
SLOW = {"openai", "anthropic", "google", "boto3", "botocore", "transformers", "sklearn", "trafilatura"}
"""Seconds to import: only inside functions, or in a module that is itself imported on first use."""
ON_FIRST_USE = ("judges.providers.", "judges.offline", f"{ENGINE}.")
DOORS = {"urls", "views", "tasks", "management"}


@dataclass(frozen=True)
class Import:
    """One import statement: who imports what, where, and whether at the module's top."""

    source: str
    target: str
    place: str
    top: bool

    def __str__(self) -> str:
        return f"{self.place}: {self.source} imports {self.target}"


def files() -> list[Path]:
    """Source files of the apps, without migrations."""
    found = [path for app in APPS for path in sorted((ROOT / app).rglob("*.py"))]
    return [path for path in found if "migrations" not in path.parts]


def module_name(path: Path) -> str:
    """judges/providers/__init__.py -> judges.providers."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(path: Path, source: str | None = None) -> Iterator[Import]:
    """All imports of a file; `from a import b` counts as a.b, which may be a module or a name in one."""
    tree = ast.parse(path.read_text() if source is None else source)
    inside = {id(node) for function in ast.walk(tree) if is_function(function) for node in ast.walk(function)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            targets = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for target in targets:
            place = f"{path.relative_to(ROOT)}:{node.lineno}"
            yield Import(module_name(path), target, place, id(node) not in inside)


def is_function(node: ast.AST) -> bool:
    """A function, or a block that only type checkers read."""
    if isinstance(node, ast.If):
        return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def between_apps(found: Import) -> str | None:
    """Apps import only what stands below them."""
    own, other = found.source.split(".")[0], found.target.split(".")[0]
    if other == "tests" or (other in BELOW and other != own and other not in BELOW[own]):
        return f"{own} must not import {other}"
    return None


def between_layers(found: Import) -> str | None:
    """Inside the apps: doors are imported by doors alone, models know nothing above them."""
    own, other = found.source.split("."), found.target.split(".")
    if other[0] not in BELOW or own[0] == "config":
        return None
    if len(other) > 1 and other[1].startswith(("urls", "views")) and not own[1].startswith(("urls", "views")):
        return "only urls and views import views"
    if len(other) > 1 and other[1] == "management" and "management" not in own:
        return "only commands import commands"
    if own[1:] == ["models"] and other[1] not in {"models", "errors", "rubric", "text"} and found.target not in PURE:
        return "models import models and pure modules only"
    return None


def purity(found: Import) -> str | None:
    """What computes imports neither Django nor what needs it."""
    if found.source not in PURE and not any(found.source.startswith(f"{name}.") for name in PURE):
        return None
    package = found.target.split(".")[0]
    if found.target.startswith(WORDS):
        return None
    if package in {"django", "celery", "redis", "psycopg", "pgtrigger"}:
        return f"a pure module must not import {package}"
    names = {found.target, found.target.rpartition(".")[0]}
    if package in BELOW and not any(name == pure or name.startswith(f"{pure}.") for name in names for pure in PURE):
        return "a pure module imports pure modules only"
    return None


def weight(found: Import) -> str | None:
    """Libraries that take seconds to import are not imported by those who do not use them."""
    package, app = found.target.split(".")[0], found.source.split(".")[0]
    inside = found.source.startswith(ENGINE)
    if found.target.startswith(ENGINE) and found.top and not inside:
        return f"{ENGINE} is imported inside functions"
    if package in HEAVY and not inside and (app != HEAVY[package] or found.top):
        return f"{package} is imported in {HEAVY[package]} only, inside functions"
    if package in SLOW and found.top and not found.source.startswith(ON_FIRST_USE):
        return f"{package} is imported inside functions"
    return None


RULES = (between_apps, between_layers, purity, weight)


def violations() -> list[str]:
    """One line for each import that goes against a rule."""
    found = [one for path in files() for one in imports_of(path)]
    return [f"{one} ({why})" for one in found for rule in RULES if (why := rule(one))]


def missing_pure() -> list[str]:
    """Names in PURE that are no module any more."""
    known = {module_name(path) for path in files()}
    return sorted(PURE - known)


if __name__ == "__main__":
    wrong = violations() + [f"{name} stands in PURE and does not exist" for name in missing_pure()]
    for line in wrong:
        print(line)
    sys.exit(1 if wrong else 0)
