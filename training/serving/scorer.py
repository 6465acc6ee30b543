"""Scoring pairs with a model folder: ours (its prompt checked), one of others by its own template, or an encoder."""

import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from corpus.errors import BadInput, BadOption
from training.recipes import rendering
from training.recipes.calibration import Calibration
from training.recipes.rendering import RenderedPair, RerankPrompt
from training.serving.protocol import NEW_TOKENS, ServingRequest
from training.serving.publication import describe_setup

if TYPE_CHECKING:
    from training.trainers.margins import PromptTokens
    from training.trainers.tokens import EncodedRow

PRECISIONS = ("auto", "fp32", "tf32", "bf16")
# Tokens of one forward pass. A CPU gains nothing from more: documents of like length pad each other little.
BUDGETS = {"cpu": 1536, "cuda": 16_384}
OWN_TEMPLATE, NO_PROMPT = "its own template", "no prompt"


class Score(NamedTuple):
    """A pair's score: l_yes - l_no or an encoder's logit, raw in fp32; was the pair cut?"""

    margin: float
    is_cut: bool = False


def read_reranker_json(folder: Path) -> dict[str, Any]:
    """Return reranker.json of a published model; {} for a base. Raises BadInput for a prompt that is not known."""
    path = folder / "reranker.json"
    if not path.exists():
        return {}
    try:
        found: dict[str, Any] = json.loads(path.read_text())
    except ValueError:
        raise BadInput(f"{path.name} is not JSON: train or copy the model again") from None
    # A prompt that differs by a blank gives other scores than those that calibration and threshold
    # were fitted on, so the card's own text must be the prompt too, to the byte.
    if found.get("kind") == "causal" and recorded_prompt(found) is None:
        raise other_prompt(folder, found, rendering.QUORUM.sha256)
    return found


def other_prompt(folder: Path, found: dict[str, Any], ours: str) -> BadInput:
    """Return the refusal of a model whose record names another prompt than ours."""
    prompts = f"sha256 {str(found.get('prompt_sha256'))[:12]}, ours is {ours[:12]}"
    return BadInput(
        f"{folder.name} was trained with another prompt ({prompts}): score it with the version of Quorum that "
        "trained it, or train it again"
    )


def recorded_prompt(found: dict[str, Any]) -> RerankPrompt | None:
    """Return the prompt that a model's record names by text and hash; None if not ours."""
    named = (found.get("prompt"), found.get("prompt_sha256"))
    return next((one for one in rendering.PROMPTS.values() if (one.text, one.sha256) == named), None)


def choose_prompt(folder: Path, wanted: str = "", option: str = "prompt") -> str:
    """Return the name of a causal model's prompt: the one it was trained with, its own template, or the wanted (S9).

    Raises BadInput where a model says nothing and nobody else does: scores of a guessed prompt would mean nothing.
    """
    known = recorded_prompt(read_reranker_json(folder))
    if known is not None:
        return known.name
    template = own_template(folder)
    # Templates of rerankers name both roles; those of chat models do not.
    if all(f'"{role}"' in template or f"'{role}'" in template for role in ("query", "document")):
        return OWN_TEMPLATE
    if wanted in rendering.PROMPTS:
        return wanted
    if json.loads((folder / "config.json").read_text()).get("quorum_tiny"):  # Made here, of our own prompt's words.
        return rendering.QUORUM.name
    raise BadOption(
        option,
        f"{folder.name} says nowhere how it is asked about a pair (no reranker.json, and no template with the roles "
        f"query and document): choose one of {', '.join(rendering.PROMPTS)}.",
    )


def choose_seq2seq(folder: Path, wanted: str = "") -> str:
    """Return a sequence-to-sequence model's prompt name. BadInput unless named."""
    if wanted not in rendering.SEQ2SEQ_ANSWERS:
        known = " or ".join(rendering.SEQ2SEQ_ANSWERS)
        raise BadOption(
            "prompt", f"{folder.name} is a sequence-to-sequence model and does not say what it answers: use {known}."
        )
    return wanted


def make_prompt(folder: Path, tokenizer: Any, name: str) -> "PromptTokens":
    """Return how a causal model is asked by what choose_prompt named, read to its own length and in its own words."""
    from transformers import AutoConfig

    from training.trainers.base import answer_ids, longest_prompt
    from training.trainers.causal import chat_messages
    from training.trainers.margins import PromptTokens

    def render_template(query: str, document: str, instruction: str) -> str:
        """Render a pair by the model's own chat template, whose roles CrossEncoder gives a pair."""
        return str(tokenizer.apply_chat_template(chat_messages(query, document, instruction), tokenize=False))

    about = read_reranker_json(folder)
    path = folder / "1_LogitScore" / "config.json"
    if not about and path.exists():  # A reranker of others names its answers beside its modules.
        named = json.loads(path.read_text())
        yes_id, no_id = int(named["true_token_id"]), int(named["false_token_id"])
    else:
        yes_id, no_id = answer_ids(tokenizer)
    length = int(about.get("max_length") or longest_prompt(tokenizer, AutoConfig.from_pretrained(folder)))
    render = render_template if name == OWN_TEMPLATE else rendering.PROMPTS[name].render
    return PromptTokens(render, yes_id, no_id, length)


def check_prompt(folder: Path, wanted: str = "") -> None:
    """Raise BadInput where a model cannot be asked, or not by the prompt that somebody wants."""
    config = json.loads((folder / "config.json").read_text())
    names = config.get("architectures") or []
    if read_reranker_json(folder).get("kind") == "encoder" or any(map(is_classifier, names)):
        name = NO_PROMPT
    elif is_seq2seq(config):
        name = choose_seq2seq(folder, wanted)
    else:
        name = choose_prompt(folder, wanted)
    if wanted and name != wanted:
        raise BadOption("prompt", f"{folder.name} is asked by {name}: leave this out.")


def is_classifier(architecture: str) -> bool:
    """Return whether a model of this name scores pairs by a head of its own."""
    return architecture.endswith("ForSequenceClassification")


def is_seq2seq(config: dict[str, Any]) -> bool:
    """Return whether a model reads with an encoder and writes with a decoder."""
    return bool(config.get("is_encoder_decoder"))


def own_template(folder: Path) -> str:
    """Return the chat template that a folder brings; "" for none."""
    path = folder / "chat_template.jinja"
    if path.exists():
        return path.read_text(encoding="utf-8")
    path = folder / "tokenizer_config.json"
    return str(json.loads(path.read_text()).get("chat_template") or "") if path.exists() else ""


class Scorer(ABC):
    """A model that scores documents. Tokens in any thread, passes in one."""

    prompt_name = NO_PROMPT  # How pairs are asked: the name of a prompt, OWN_TEMPLATE or NO_PROMPT.
    middle = 0.0  # The margin at which a document is as likely relevant as not.

    def __init__(
        self, folder: Path, found: dict[str, Any], config: dict[str, Any], device: str, precision: str, prompt: str
    ) -> None:
        from training.trainers.base import choose_precision

        self.folder, self.device = folder, device
        self.precision = choose_precision(precision, device)
        # What stands beside its figures, such as "tiny model, CPU".
        self.words = describe_setup(bool(config.get("quorum_tiny") or found.get("tiny")), device, self.precision)
        known = found.get("calibration") or {}
        self.calibration = Calibration(a=known.get("a", 1.0), b=known.get("b", 0.0))
        self.threshold = float(found.get("threshold", 0.5))  # The score from which on it says yes.
        self.budget = BUDGETS.get(device.split(":")[0], BUDGETS["cuda"])
        self.lock = threading.Lock()  # A tokenizer serves one thread at a time.
        self.load(found, prompt)

    def load(self, found: dict[str, Any], prompt: str) -> None:
        """Load a folder's model and tokenizer. `found`: reranker.json; `prompt`: wanted."""
        raise NotImplementedError

    @abstractmethod
    def encode(self, request: ServingRequest) -> "list[EncodedRow]":
        """Return a row of tokens for each document."""

    @abstractmethod
    def score_rows(self, rows: "Sequence[EncodedRow]") -> list[float]:
        """Return the margins of rows of any requests, in their order."""

    def write(self, request: ServingRequest, max_new_tokens: int = NEW_TOKENS) -> list[RenderedPair]:
        """Return what the model writes for each document; empty for models that do not write."""
        return [RenderedPair("") for _ in request.documents]

    def score(self, requests: Sequence[ServingRequest], together: int = 0) -> list[list[Score]]:
        """Return many queries' scores, in order; `together`: pairs at a time, 0 for all."""
        encoded = [self.encode(request) for request in requests]
        every = [row for rows in encoded for row in rows]
        size = together or max(1, len(every))
        # A generator, so that scores of one part are there before the next one is made.
        margins = (one for at in range(0, len(every), size) for one in self.score_rows(every[at : at + size]))
        return [[Score(next(margins), row.is_cut) for row in rows] for rows in encoded]

    def margins(self, query: str, documents: Sequence[str], instruction: str = "", together: int = 0) -> list[float]:
        """Return raw fp32 margins in the order of the documents; `together` as in `score`."""
        return [one.margin for one in self.score([ServingRequest(query, documents, instruction)], together)[0]]

    def own_probability(self, margin: float) -> float:
        """Return what the model itself says, uncalibrated: sigmoid(margin)."""
        return Calibration().probability(margin - self.middle)

    def probability(self, margin: float) -> float:
        """Return the calibrated probability of "relevant" for a margin."""
        return self.calibration.probability(margin - self.middle)

    def describe_margins(self, margins: Sequence[float]) -> str:
        """Return what must be said beside these margins; "" for nothing."""
        return ""


class CausalScorer(Scorer):
    """A causal model, asked with the prompt it was trained with."""

    def load(self, found: dict[str, Any], prompt: str) -> None:
        from training.trainers.base import check_causal, load_tokenizer
        from training.trainers.causal import load_causal
        from training.trainers.margins import AnswerHead
        from training.trainers.prefixed import can_share

        self.shares = can_share(check_causal(self.folder))
        self.tokenizer = load_tokenizer(self.folder)
        self.prompt_name = choose_prompt(self.folder, prompt)
        self.prompt = make_prompt(self.folder, self.tokenizer, self.prompt_name)
        self.model = load_causal(self.folder, self.device, self.precision)
        self.head = AnswerHead(self.model, self.prompt.yes_id, self.prompt.no_id)

    def encode(self, request: ServingRequest) -> "list[EncodedRow]":
        rows = [(request.query, one, request.instruction) for one in request.documents]
        with self.lock:
            return self.prompt.encode(self.tokenizer, rows, document_tokens=request.document_tokens)

    def score_rows(self, rows: "Sequence[EncodedRow]") -> list[float]:
        from training.trainers.margins import causal_margins
        from training.trainers.prefixed import prefixed_margins

        return (prefixed_margins if self.shares else causal_margins)(self.head, rows, self.budget)

    def write(self, request: ServingRequest, max_new_tokens: int = NEW_TOKENS) -> list[RenderedPair]:
        from training.trainers.margins import generate_answers

        rows = self.encode(request)
        return generate_answers(self.model, self.tokenizer, rows, max_new_tokens=max_new_tokens)


class EncoderScorer(Scorer):
    """A sequence classifier with one logit; it takes no instruction and writes nothing."""

    def load(self, found: dict[str, Any], prompt: str) -> None:
        from training.trainers.base import load_tokenizer
        from training.trainers.encoder import load_encoder, longest_input

        self.tokenizer = load_tokenizer(self.folder)
        self.model = load_encoder(self.folder, self.device, precision=self.precision)
        self.length = longest_input(self.folder, self.tokenizer, found.get("max_length"))

    def encode(self, request: ServingRequest) -> "list[EncodedRow]":
        from training.trainers.margins import encode_pairs

        pairs = [(request.query, document) for document in request.documents]
        with self.lock:
            return encode_pairs(self.tokenizer, pairs, max_length=self.length, document_tokens=request.document_tokens)

    def score_rows(self, rows: "Sequence[EncodedRow]") -> list[float]:
        from training.trainers.margins import score_encoded

        return score_encoded(self.model, self.tokenizer, rows)
