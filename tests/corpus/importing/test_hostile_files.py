"""No file costs more than it weighs: each is read within seconds and little memory, or refused by its name."""

import json
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.hostile_files import HOSTILE
from tests.speed import slowness
from tests.stages import first_slow

ROOT = Path(__file__).resolve().parents[3]
SECONDS, MEGABYTES = 5.0, 500
READ = """
import json, resource, sys, time, warnings
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
        toml_files.read_toml(toml_files.TomlTable, read_text(path), name)
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

def taken(path):
    # Of each file: the memory of this process at most, and the seconds and the memory of its children.
    Path("/proc/self/clear_refs").write_text("5")
    began, own_began = resource.getrusage(resource.RUSAGE_CHILDREN), time.process_time()
    try:
        problems = read(path, path.name)
    except BadInput as error:
        problems = [str(error)]
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    (own,) = (int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
    seconds = ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime
    # Settings and judges files are short, and read here.
    seconds += time.process_time() - own_began if path.name.startswith("toml") else 0
    # ru_maxrss is that of the largest child so far: the first file above the limit is the one to blame.
    return {"seconds": seconds, "megabytes": max(own, ended.ru_maxrss) // 1024, "problems": problems[:3]}

for line in sys.stdin:
    print(json.dumps(taken(Path(line.strip()))), flush=True)
"""


@contextmanager
def reader() -> Iterator[Callable[[Path], dict[str, object]]]:
    """Read files as the job of an import does, in one process for all, each in a child of its own; what it cost."""
    with subprocess.Popen(
        [sys.executable, "-c", READ], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin and process.stdout
        to, answers = process.stdin, process.stdout

        def cost_of(path: Path) -> dict[str, object]:
            to.write(f"{path}\n")
            to.flush()
            answer = answers.readline()
            assert answer, f"{path.name}: the process that read it ended"
            return dict(json.loads(answer))

        yield cost_of
        to.close()


QUICK = [("xlsx", "row-10^12"), ("xlsx", "500-sheets-of-one-part"), ("csv", "64000-columns"), ("csv", "100000-columns")]


def test_a_small_file_that_claims_much_is_refused_by_its_name(tmp_path):
    check(tmp_path, QUICK, refused=True)


@pytest.mark.parametrize("kind", first_slow(HOSTILE))
def test_no_file_costs_more_than_it_weighs(tmp_path, kind):
    check(tmp_path, [(kind, name) for name in HOSTILE[kind]])


def check(folder: Path, cases: list[tuple[str, str]], *, refused: bool = False) -> None:
    with reader() as cost_of:
        for kind, name in cases:
            path = folder / f"{kind}-{name}"
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # An archive whose members have one name.
                path.write_bytes(HOSTILE[kind][name]())
            cost, size = cost_of(path), path.stat().st_size
            path.unlink()
            # What a file of megabytes may take grows with it, as ordinary ones of its size do.
            most = SECONDS + 10 * size / 1e6
            assert float(str(cost["seconds"])) <= (most + 1) * slowness(), (path.name, cost)
            assert int(str(cost["megabytes"])) <= MEGABYTES + 100, (path.name, cost)
            problems = cost["problems"]
            assert isinstance(problems, list) and (problems or not refused), path.name
