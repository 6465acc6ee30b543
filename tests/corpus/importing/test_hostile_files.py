"""No file costs more than it weighs: each is read within seconds and little memory, or refused by its name."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hostile_files import HOSTILE
from tests.speed import slowness

ROOT = Path(__file__).resolve().parents[3]
SECONDS, MEGABYTES = 5.0, 500
READ = """
import json, resource, sys, warnings
from pathlib import Path
from django.conf import settings
settings.configure(USE_I18N=False)
import openpyxl, pyarrow.parquet
from corpus.errors import BadInput
from corpus.formats.files import FileSource, read_text
from corpus.importing import grades, records, run_lines, toml_files
from corpus.importing.confinement import confine, confined
from corpus.importing.detection import HOLDS, detect, list_sources

warnings.simplefilter("ignore")
READERS = {
    "documents": records.read_documents,
    "queries": lambda source: records.read_queries(source, by_position=False),
    "pairs": lambda source: records.read_pairs(source, 3),
    "qrels": lambda source: grades.read_grades(source, 3),
    "judgments": lambda source: grades.read_grades(source, 3),
    "runs": lambda source: run_lines.top_of_run(source, 10),
}

def look(path, name):
    for source in list_sources(path, name):
        yield source.member, detect(source)

def read(path, name):
    problems = []
    if name.startswith("toml"):
        toml_files.read_toml(toml_files.Table, read_text(path), name)
        return problems
    with confined():
        found = list(confine(path, name, lambda: look(path, name)))
        for member, holds in found:
            if holds.problem:
                problems.append(holds.problem)
            for part in HOLDS.get(holds.kind, ()):
                try:
                    for _row in READERS[part](FileSource(path, name=name, member=member, fields=holds.fields)):
                        pass
                except BadInput as error:
                    problems.append(str(error))
                    break
    return problems

path = Path(sys.argv[1])
try:
    problems = read(path, path.name)
except BadInput as error:
    problems = [str(error)]
children = resource.getrusage(resource.RUSAGE_CHILDREN)
# ru_maxrss of this process would be that of the one that started it, if that one is larger.
(own,) = (int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(json.dumps({"seconds": children.ru_utime + children.ru_stime,
                  "megabytes": max(own, children.ru_maxrss) // 1024, "problems": problems[:3]}))
"""


def cost_of(path: Path) -> dict[str, object]:
    """Read a file as the job of an import does, in a process of its own; what it cost, and why it was refused."""
    done = subprocess.run(
        [sys.executable, "-c", READ, str(path)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{path.name}: {done.stderr[-2_000:]}"
    return dict(json.loads(done.stdout))


QUICK = [("xlsx", "row-10^12"), ("xlsx", "500-sheets-of-one-part"), ("csv", "64000-columns"), ("csv", "100000-columns")]


@pytest.mark.parametrize(("kind", "name"), QUICK)
def test_a_small_file_that_claims_much_is_refused_by_its_name(tmp_path: Path, kind: str, name: str) -> None:
    check(tmp_path, kind, name, refused=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind, cases in HOSTILE.items() for name in cases if (kind, name) not in QUICK]
)
def test_no_file_costs_more_than_it_weighs(tmp_path: Path, kind: str, name: str) -> None:
    check(tmp_path, kind, name)


def check(folder: Path, kind: str, name: str, *, refused: bool = False) -> None:
    path = folder / f"{kind}-{name}"
    path.write_bytes(HOSTILE[kind][name]())
    cost = cost_of(path)
    # What a file of megabytes may take grows with it, as ordinary ones of its size do.
    most = SECONDS + 10 * path.stat().st_size / 1e6
    assert float(str(cost["seconds"])) <= (most + 1) * slowness(), cost
    assert int(str(cost["megabytes"])) <= MEGABYTES + 100, cost
    problems = cost["problems"]
    assert isinstance(problems, list) and (problems or not refused)
