"""Memory of torch: released, and told apart from other errors where it runs out."""

import gc

import torch

NO_MEMORY = ("out of memory", "not enough memory", "can't allocate memory", "CUBLAS_STATUS_ALLOC_FAILED")


def free_memory() -> None:
    """Release memory that no tensor uses any more."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether torch says that memory ran out, of a GPU or of the machine."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and any(mark in str(error) for mark in NO_MEMORY)
