"""Learned sparse retrieval (SPLADE) with sentence-transformers: texts as weights of words."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from scipy.sparse import csr_array

from corpus.errors import BadInput

LIBRARY = ".sparse_encoder."  # Part of the names of modules of sparse encoders.


def is_sparse_encoder(folder: Path) -> bool:
    """Return whether sentence-transformers wrote the folder as a sparse encoder."""
    path = folder / "modules.json"
    try:
        modules = json.loads(path.read_text()) if path.exists() else []
    except ValueError as error:
        raise BadInput(f"{path.name} cannot be read: {error}") from None
    return any(LIBRARY in str(module.get("type", "")) for module in modules)


def open_sparse_encoder(folder: Path, device: str = "cpu", batch_size: int = 32) -> "SparseTexts":
    """Load a sparse encoder. Raises BadInput without the training extra, or if its scores are not dot products."""
    try:
        from sentence_transformers import SparseEncoder
    except ImportError:
        raise BadInput("Sparse encoders need the training extra: run make install-training") from None
    model = SparseEncoder(str(folder), device=device, local_files_only=True, trust_remote_code=False)
    if model.similarity_fn_name != "dot":
        raise BadInput(f"{folder.name} compares by {model.similarity_fn_name}: only dot products are searched here")
    return SparseTexts(model, batch_size)


class SparseTexts:
    """A sparse encoder. The library chooses prompts and modules, which may differ for queries and documents."""

    def __init__(self, model: Any, batch_size: int) -> None:
        self.model, self.batch_size = model, batch_size

    def encode_queries(self, texts: Sequence[str]) -> csr_array:
        """Return the weights of queries, shape (queries, vocabulary), float32."""
        return self._encode(self.model.encode_query, texts)

    def encode_documents(self, texts: Sequence[str]) -> csr_array:
        """Return the weights of documents, shape (documents, vocabulary), float32."""
        return self._encode(self.model.encode_document, texts)

    def _encode(self, encode: Callable[..., Any], texts: Sequence[str]) -> csr_array:
        """Encode in batches, whose size is halved when memory runs out. Raises BadInput if one text is too much."""
        from training.published.torch_memory import free_memory, is_out_of_memory

        while True:
            try:
                # Sparse tensors: as dense ones, a thousand documents would take 120 MB with BERT's vocabulary.
                weights = encode(
                    list(texts), batch_size=self.batch_size, convert_to_sparse_tensor=True, save_to_cpu=True
                ).coalesce()
                break
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
            if self.batch_size == 1:
                raise BadInput("One text alone takes more memory than there is: take a smaller model")
            self.batch_size //= 2
            free_memory()
        rows, terms = weights.indices().numpy()
        return csr_array((weights.values().float().numpy(), (rows, terms)), shape=tuple(weights.shape))
