"""Scoring pairs with a model folder: ours (with its prompt checked), a base with our prompt, or an encoder."""

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from corpus.errors import BadInput
from training.recipes import rendering
from training.recipes.calibration import Calibration
from training.recipes.rendering import RenderedPair
from training.serving.protocol import ServingRequest
from training.serving.publication import describe_setup

DEFAULT_LENGTH = 4096
# Tokens that an answer may have: evidence condenses its document, so the document's own and some besides are room.
LEAST_ROOM, MOST_ROOM, BESIDES = 512, 4096, 256


def read_reranker_json(folder: Path) -> dict[str, Any]:
    """Return reranker.json of a published model; {} for a base. Raises BadInput for another prompt than ours."""
    path = folder / "reranker.json"
    if not path.exists():
        return {}
    try:
        found: dict[str, Any] = json.loads(path.read_text())
    except ValueError:
        raise BadInput(f"{path} is not JSON: train or copy the model again") from None
    if found.get("kind") == "causal":
        # A model scores with the prompt that it learned, to the byte; its card's own text must be that prompt, too.
        ours = rendering.prompt_sha256()
        kept = sha256(f"{found.get('prompt', '')}\0{rendering.DEFAULT_INSTRUCTION}".encode()).hexdigest()
        if not found.get("prompt_sha256") == kept == ours:
            theirs = str(found.get("prompt_sha256"))[:12]
            raise BadInput(
                f"{folder.name} was trained with another prompt (sha256 {theirs}, ours is {ours[:12]}): score it with "
                "the version of Quorum that trained it, or train it again"
            )
    return found


class Scorer(ABC):
    """A model that scores documents for a query."""

    def __init__(self, folder: Path, found: dict[str, Any], config: dict[str, Any], device: str) -> None:
        self.folder, self.about, self.device = folder, found, device
        # What stands beside its figures, such as "tiny model, CPU".
        self.words = describe_setup(bool(config.get("quorum_tiny") or found.get("tiny")), device)
        known = found.get("calibration") or {}
        self.calibration = Calibration(a=known.get("a", 1.0), b=known.get("b", 0.0))
        self.threshold = float(found.get("threshold", 0.5))  # The score from which on it says yes.

    @abstractmethod
    def margins(self, query: str, documents: Sequence[str], instruction: str = "") -> list[float]:
        """Return raw fp32 margins in the order of the documents: l_yes - l_no, or an encoder's logit."""

    @abstractmethod
    def margins_of(self, asked: Sequence[ServingRequest]) -> list[list[float]]:
        """Return the same for many queries at once, in their order."""

    @abstractmethod
    def generate(self, query: str, document: str, instruction: str = "", max_new_tokens: int = 0) -> RenderedPair:
        """Return what the model writes for a pair. 0 tokens: as many as evidence of this document can need."""

    def score(self, margin: float) -> float:
        """Return the calibrated probability of "relevant" for a margin."""
        return self.calibration.probability(margin)


class CausalScorer(Scorer):
    """A causal model asked with our prompt."""

    def __init__(self, folder: Path, found: dict[str, Any], config: dict[str, Any], device: str) -> None:
        super().__init__(folder, found, config, device)
        from training.trainers.base import answer_ids, check_causal, load_tokenizer
        from training.trainers.causal import load_causal
        from training.trainers.margins import PromptTokens

        check_causal(folder)
        self.tokenizer = load_tokenizer(folder)
        yes_id, no_id = self._named_ids(folder) or answer_ids(self.tokenizer)
        length = int(found.get("max_length") or min(DEFAULT_LENGTH, self.tokenizer.model_max_length))
        render = rendering.render_prompt if found or not self._has_own_prompt() else self._rendered
        self.prompt = PromptTokens(render, yes_id, no_id, length)
        self.model = load_causal(folder, device)

    def _has_own_prompt(self) -> bool:
        """Whether a reranker of others has a template with the roles that CrossEncoder gives a pair (SPEC S9)."""
        template = str(self.tokenizer.chat_template or "")
        return all(f'"{role}"' in template or f"'{role}'" in template for role in ("query", "document"))

    def _rendered(self, query: str, document: str, instruction: str) -> str:
        """Render a pair by the model's own chat template."""
        from training.trainers.causal import chat_messages

        return str(self.tokenizer.apply_chat_template(chat_messages(query, document, instruction), tokenize=False))

    def _named_ids(self, folder: Path) -> tuple[int, int] | None:
        """Return the answers' ids as a reranker of others names them, beside its modules."""
        path = folder / "1_LogitScore" / "config.json"
        if self.about or not path.exists():
            return None
        named = json.loads(path.read_text())
        return int(named["true_token_id"]), int(named["false_token_id"])

    def margins(self, query: str, documents: Sequence[str], instruction: str = "") -> list[float]:
        from training.trainers.margins import causal_margins
        from training.trainers.prefixed import can_share, prefixed_margins

        if not documents:
            return []
        measure = prefixed_margins if can_share(self.model.config) else causal_margins
        texts = [self.prompt.render(query, one, instruction) for one in documents]
        return measure(self.model, self.tokenizer, self.prompt, texts)

    def margins_of(self, asked: Sequence[ServingRequest]) -> list[list[float]]:
        return [self.margins(one.query, one.documents, one.instruction) for one in asked]

    def generate(self, query: str, document: str, instruction: str = "", max_new_tokens: int = 0) -> RenderedPair:
        from training.trainers.margins import generate_answers

        texts = [self.prompt.render(query, document, instruction)]
        room = max_new_tokens or self.room_for(document)
        return generate_answers(self.model, self.tokenizer, self.prompt, texts, max_new_tokens=room)[0]

    def room_for(self, document: str) -> int:
        """Return how many tokens an answer about this document may have."""
        size = len(self.tokenizer(document, add_special_tokens=False, verbose=False)["input_ids"])
        return min(max(size + BESIDES, LEAST_ROOM), MOST_ROOM)


class EncoderScorer(Scorer):
    """A sequence classifier with one logit; it has no place for an instruction."""

    def __init__(self, folder: Path, found: dict[str, Any], config: dict[str, Any], device: str) -> None:
        super().__init__(folder, found, config, device)
        from training.trainers.base import load_tokenizer
        from training.trainers.encoder import load_encoder, longest_input

        self.tokenizer = load_tokenizer(folder)
        self.model = load_encoder(folder, device)
        self.length = longest_input(folder, self.tokenizer, found.get("max_length"))

    def margins(self, query: str, documents: Sequence[str], instruction: str = "") -> list[float]:
        return self.margins_of([ServingRequest(query, documents, instruction)])[0]

    def margins_of(self, asked: Sequence[ServingRequest]) -> list[list[float]]:
        from training.trainers.margins import encoder_margins

        pairs = [(one.query, document) for one in asked for document in one.documents]
        found = iter(encoder_margins(self.model, self.tokenizer, pairs, max_length=self.length))
        return [[next(found) for _ in one.documents] for one in asked]

    def generate(self, query: str, document: str, instruction: str = "", max_new_tokens: int = 0) -> RenderedPair:
        return RenderedPair("")


def open_scorer(folder: Path, device: str = "cpu") -> Scorer:
    """Load a model folder for scoring. Raises BadInput for what is no model, and for another prompt."""
    if not (folder / "config.json").exists():
        raise BadInput(f"{folder} has no config.json: name the folder of a model")
    found = read_reranker_json(folder)
    config = json.loads((folder / "config.json").read_text())
    names = config.get("architectures") or []
    if found.get("kind") == "encoder" or any(name.endswith("ForSequenceClassification") for name in names):
        return EncoderScorer(folder, found, config, device)
    return CausalScorer(folder, found, config, device)
