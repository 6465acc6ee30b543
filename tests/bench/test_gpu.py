"""The parts of `make bench-gpu` at tiny shapes on the CPU (tiny models), and its plan where there is no GPU."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.stages import first_slow  # noqa: E402
from tools.bench import gpu, gpu_parts, vllm_scores  # noqa: E402
from training.recipes import table  # noqa: E402
from training.trainers.training import open_recipe  # noqa: E402

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(bool(gpu.name_gpu()), reason="this machine has a GPU")
def test_without_a_gpu_it_says_what_it_would_do_without_torch_and_ends_well() -> None:
    command = "import sys; sys.modules['torch'] = None; from tools.bench import gpu; sys.exit(gpu.main([]))"
    done = subprocess.run([sys.executable, "-c", command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.startswith("no GPU that nvidia-smi names"), done.stderr
    assert all(f"  {name}: " in done.stdout for name in gpu.PARTS)
    assert all(f"{recipe} (" in done.stdout for recipe in table.RECIPES if recipe != "prism")
    assert all(f"ablation ({loss})" in done.stdout for loss in table.LOSSES["ablation"])


class Parts:
    """Parts that are only counted; those in `fails` end with an error."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
        self.ran, self.fails, self.file = list[str](), set[str](), file
        monkeypatch.setattr(gpu, "run_part", self.run_part)

    def run_part(self, name: str, *_rest: object) -> list[gpu.Figure]:
        self.ran.append(name)
        figure = {"name": name, "case": "c", "value": len(self.ran), "unit": "x"}
        return [figure, *([gpu._failed(name, "out of luck")] if name in self.fails else [])]

    def run(self, *names: str, seconds: float = 1000.0, gpu_name: str = "H200", again: bool = False) -> list[Any]:
        """Which parts were run by a call with these arguments, and the values of all figures."""
        self.ran.clear()
        figures = gpu.run_parts(gpu.TINY, names, seconds, self.file, gpu_name, again=again)
        return [*self.ran, [figure["value"] for figure in figures]]


def test_a_run_continues_with_the_parts_that_have_no_figures(monkeypatch, tmp_path: Path, capsys) -> None:
    parts = Parts(monkeypatch, tmp_path / "kept.jsonl")
    assert parts.run("matrices", "memory", "curve", seconds=50) == ["matrices", "memory", [1, 2]], "no time for curve"
    parts.fails = {"resume"}
    assert parts.run("matrices", "memory", "curve", "resume") == ["curve", "resume", [1, 2, 1, 2, None]]
    with parts.file.open("a") as file:
        file.write('{"name": "cut o')  # A killed run was writing it.
    parts.fails = set()
    assert parts.run("matrices", "resume")[:-1] == ["resume"], "what failed is tried again"
    assert parts.run("matrices", gpu_name="B200")[:-1] == ["matrices"], "another GPU has figures of its own"
    assert parts.run("matrices", again=True)[:-1] == ["matrices"]
    parts.file.unlink()
    assert parts.run("matrices", "curve")[:-1] == ["matrices", "curve"]
    capsys.readouterr()
    assert gpu.main(["--table", "--file", str(parts.file)]) == 0
    assert capsys.readouterr().out.startswith("| `matrices` | c | 1 x | | part: matrices; gpu: H200; date: 20")


VLLM = """#!{python}
import json, sys
from http.server import BaseHTTPRequestHandler, HTTPServer
class Handler(BaseHTTPRequestHandler):
    def answer(self, document):
        self.send_response(200); self.end_headers(); self.wfile.write(json.dumps(document).encode())
    def do_GET(self):
        self.answer({{}})
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with open({log!r}, "a") as log:
            log.write(json.dumps([sys.argv[1:], body]) + "\\n")
        self.answer({{"data": [{{"index": n, "score": 0.5}} for n in range(len(body["text_1"]))]}})
HTTPServer(("127.0.0.1", int(sys.argv[-1])), Handler).serve_forever()
"""


def fake_vllm(folder: Path, text: str = VLLM) -> Path:
    """A program that stands in for vLLM: it writes down its arguments and each request."""
    program = folder / "vllm"
    program.write_text(text.format(python=sys.executable, log=str(folder / "log")))
    program.chmod(0o755)
    return program


def test_the_score_endpoint_is_asked_for_all_pairs_of_a_published_model(tmp_path: Path) -> None:
    from training.published.tiny_bases import tiny_base

    base = tiny_base(tmp_path / "model")
    (base / "reranker.json").write_text(json.dumps({"no_id": 5, "yes_id": 7}))
    pairs = [("query 1 ", "document 1."), ("query 2 ", "document 2.")]
    with vllm_scores.serve(str(fake_vllm(tmp_path)), base) as address:
        rate, scores = vllm_scores.measure_pairs(address, pairs)
    assert math.isfinite(rate) and rate > 0 and scores == [0.5, 0.5]
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert len(lines) == 1 + vllm_scores.ROUNDS
    arguments, body = lines[0]
    assert body["text_1"] == ["query 1 ", "query 2 "] and body["text_2"] == ["document 1.", "document 2."]
    assert arguments[:2] == ["serve", str(base)]
    words = json.loads(arguments[arguments.index("--hf-overrides") + 1])["classifier_from_token"]
    assert len(words) == 2 and all(isinstance(word, str) for word in words)
    broken = fake_vllm(tmp_path, "#!/bin/sh\necho no CUDA here; exit 3\n")
    failure = pytest.raises(RuntimeError, match=r"vllm: the server ended with status 3: no CUDA here")
    with failure, vllm_scores.serve(str(broken), base):
        pass


def test_a_missing_vllm_is_said_and_no_failure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(vllm_scores, "OWN", tmp_path / "nowhere")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("VLLM", raising=False)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    (figure,) = gpu_parts.ask_vllm(gpu.TINY, tmp_path)
    assert figure["value"] is None and "error" not in figure
    assert figure["skipped"].startswith("vllm is not installed")


PYTHON = """#!/bin/sh
echo "$@" >> {log}
case "$*" in *"import torch"*) echo {torch} ;; esac
"""


@pytest.mark.parametrize(("torch_build", "replaced"), [("False", True), ("True", False)])
def test_a_cpu_build_of_torch_is_replaced_where_nvidia_smi_answers(tmp_path, torch_build: str, replaced: bool) -> None:
    """`install.sh gpu` with programs that stand in for Python and for nvidia-smi."""
    programs = tmp_path / "venv" / "bin"
    programs.mkdir(parents=True)
    version = (ROOT / "requirements-torch.txt").read_text().split("torch==")[1].split()[0]
    (programs / "python").write_text(PYTHON.format(log=tmp_path / "log", torch=f"{version} {torch_build}"))
    (programs / "nvidia-smi").write_text("#!/bin/sh\nexit 0\n")
    for program in programs.iterdir():
        program.chmod(0o755)
    environment = {**os.environ, "VENV": str(tmp_path / "venv"), "PATH": f"{programs}:/usr/bin:/bin"}
    environment["PYTHON"] = sys.executable
    done = subprocess.run(["sh", "config/install.sh", "gpu"], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    calls = (tmp_path / "log").read_text()
    assert ("pip uninstall --quiet --yes torch" in calls) is replaced
    assert any("-r requirements-torch.txt" in line for line in calls.splitlines()) is replaced
    assert "flash-linear-attention" in calls and "--only-binary :all:" in calls
    assert (tmp_path / "venv" / ".gpu").exists()


def test_its_parts_are_done_within_nine_minutes_each_in_its_time() -> None:
    assert gpu.main(["teleport"]) == 2, "a part that is unknown"
    assert gpu.WHOLE_S <= 540
    assert all(0 < seconds <= 120 for _, seconds, _ in gpu.PARTS.values())


def test_operations_of_a_token_by_hand() -> None:
    shape = {"hidden": 2, "layers": 1, "intermediate": 3, "heads": 1, "head": 2, "kv": 1}
    frozen = 4 * (2 * 2) + 3 * (2 * 3)
    adapter = 16 * (4 * (2 + 2) + 3 * (2 + 3))
    assert gpu_parts.operations_per_token(shape, [4, 4]) == 4 * frozen + 6 * adapter + 6 * 4 * 2


@pytest.mark.parametrize(("recipe", "loss"), first_slow(gpu_parts.other_recipes(), 2))
def test_what_a_gpu_is_asked_for_fits_each_recipe_its_base_and_its_set(recipe, loss, tmp_path, monkeypatch) -> None:
    """With the options of a GPU, opened on the CPU: nothing is refused."""
    asked = gpu_parts.own_options(recipe, "cuda")
    monkeypatch.setattr(gpu_parts, "own_options", lambda *given: asked)
    task = gpu_parts.make_task(recipe, gpu.TINY, tmp_path, {"max_steps": 3, "loss": loss})
    assert task.options.preset == "paper" and open_recipe(task)


@pytest.mark.weekly
@pytest.mark.parametrize("part", sorted(gpu.PARTS))
def test_each_part_runs_at_tiny_shapes_on_the_cpu(part: str, tmp_path: Path) -> None:
    figures = gpu.run_part(part, gpu.TINY, tmp_path, 500)
    assert figures and [one for one in figures if one.get("error")] == []
    assert all(isinstance(one["value"], int | float) or "skipped" in one for one in figures)
    if part == "recipes":
        cases = {f"{recipe}, loss {loss}" for recipe, loss in gpu_parts.other_recipes()}
        assert {one["case"] for one in figures} == cases
    if part == "resume":
        assert figures[0]["value"] <= 1e-6
