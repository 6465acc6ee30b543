"""Two stages without a teacher (Prism 6.3): `prism` learns to rank by labels and few texts, `prism-extend` to write."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from scipy.stats import spearmanr  # noqa: E402
from sklearn.metrics import roc_auc_score as auc  # noqa: E402

from corpus.errors import BadInput  # noqa: E402
from tests.training.trainers.learnable import OTHER, RELEVANT, RULE  # noqa: E402
from tests.training_sets import ask, write_export, write_set  # noqa: E402
from training.published.opening import open_scorer  # noqa: E402
from training.published.protocol import ServingRequest  # noqa: E402
from training.published.tiny_bases import tiny_base  # noqa: E402
from training.recipes import data, table  # noqa: E402
from training.recipes.data import SFT, thin_texts  # noqa: E402
from training.recipes.rendering import PROMPTS  # noqa: E402
from training.trainers.prism import PrismRecipe  # noqa: E402
from training.trainers.recipe import TrainingTask  # noqa: E402
from training.trainers.training import train_model  # noqa: E402

torch.set_num_threads(1)
TARGET = "<contribution>what is returned</contribution>\n<evidence>it returns</evidence>"
MOST = 6  # Words of each document that say what is returned, or what is raised.


def test_a_share_of_the_texts_is_learned_the_same_ones_each_time_and_every_score(tmp_path: Path) -> None:
    rows = data.read_training_set(write_set(tmp_path / "set", queries=100)).train
    thin = thin_texts(rows, 0.1, seed=0)
    texts = [row.doc_id for row in thin if SFT in row.losses]
    assert 20 <= len(texts) <= 76  # 48 expected of 480; outside with a chance below 1e-4
    assert thin == thin_texts(rows, 0.1, seed=0) != thin_texts(rows, 0.1, seed=1)
    assert [row.doc_id for row in thin_texts(rows[:40], 0.1, seed=0) if SFT in row.losses] == [
        name for name in texts if name in {row.doc_id for row in rows[:40]}
    ]
    assert all(data.POINT in row.losses for row in thin)
    assert thin_texts(rows, 1.0, seed=0) == rows and not any(SFT in row.losses for row in thin_texts(rows, 0, seed=0))
    with pytest.raises(BadInput, match=r"sft_share .* 0 to 1"):
        table.recipe_options("prism", {"sft_share": 1.5})
    with pytest.raises(BadInput, match="'sft_share'"):
        table.recipe_options("cross-encoder", {"sft_share": 0.5})


def test_the_recipe_learns_the_share(tmp_path: Path) -> None:
    found = data.read_training_set(write_set(tmp_path / "set", queries=30))
    chosen = table.recipe_options("prism", {"preset": "tiny", "max_length": 384, "lora_rank": 4, "sft_share": 0.2})
    base = tiny_base(tmp_path / "base", hidden=32)
    recipe = PrismRecipe(TrainingTask("prism", base, "tiny", found, chosen, "cpu", True))
    counts = recipe.counts(range(len(recipe.rows)))
    assert counts["point"] == 144 and 10 <= counts["sft"] <= 50


def graded_rows(queries: range) -> list[dict[str, Any]]:
    """Documents in which 0 to 6 words say what is returned: so much is their score; from 4 on they are relevant."""
    draw, rows = random.Random(queries.start), []
    for query in queries:
        for count in range(MOST + 1):
            words = [draw.choice(RELEVANT) for _ in range(count)] + [draw.choice(OTHER) for _ in range(MOST - count)]
            draw.shuffle(words)
            label = count > MOST / 2
            rows.append(
                {
                    "query": f"what does it return {query}", "document": " ".join(words), "instruction": RULE,
                    "loss_type": "point-wise;sft", "annotated_label": "yes" if label else "no",
                    "revised_score": float(label), "contribution_evidence": TARGET if label else "",
                    "query_id": f"q{query}", "doc_id": f"d{count}",
                }
            )  # fmt: skip
    return rows


@pytest.mark.weekly
def test_a_base_learns_to_rank_from_labels_and_then_to_write_without_losing_its_order(tmp_path: Path) -> None:
    splits = (graded_rows(queries) for queries in (range(50), range(1000, 1020)))
    rows = write_export(tmp_path / "set", "prism", *splits, options={"teacher": "labels"})
    base = tiny_base(tmp_path / "base")
    first = {"prompt": "qwen3-reranker", "sft_share": 0.1, "epochs": 4, "learning_rate": 0.003}
    train_model(ask(tmp_path / "rank", "prism", rows, str(base), **first), lambda: False)
    ranker = tmp_path / "rank" / "out"
    second = {"epochs": 6, "learning_rate": 0.003}
    train_model(ask(tmp_path / "write", "prism-extend", rows, str(ranker), **second), lambda: False)
    # G4: the card has the hashes of both prompts, and the base as it was asked: with its own.
    record = json.loads((tmp_path / "write" / "out" / "reranker.json").read_text())
    ours, theirs = record["prompt_sha256"], record["teacher_prompt_sha256"]
    assert (ours, theirs) == (PROMPTS["quorum"].sha256, PROMPTS["qwen3-reranker"].sha256)
    card = (tmp_path / "write" / "out" / "README.md").read_text()
    assert f"| teacher prompt | {theirs} |" in card and f"| student prompt | {ours} |" in card
    assert record["teacher"] == "base" and record["evaluation"]["base"]["auc"] > 0.95
    dev = data.read_training_set(rows).dev
    stages = [open_scorer(folder) for folder in (base, ranker, tmp_path / "write" / "out")]
    margins = [[one.margins(row.query, [row.document], row.instruction)[0] for row in dev] for one in stages]
    labels = [row.label for row in dev]
    found = [auc(labels, some) for some in margins]
    kept = spearmanr(margins[1], margins[2]).statistic
    relevant = [row for row in dev if row.doc_id == f"d{MOST}"][:5]
    requests = [ServingRequest(row.query, [row.document], row.instruction) for row in relevant]
    written = [sum(one.write(request, 40)[0].text == f"yes\n{TARGET}" for request in requests) for one in stages]
    print(f"AUC {found}, order of both stages {kept:.3f}, written {written} of 5")
    assert found[1] > 0.95 and found[1] > found[0] + 0.2, found
    assert found[2] > found[1] - 0.02 and kept > 0.8, (found, kept)
    assert written[2] >= 3 and written[0] == 0, written
