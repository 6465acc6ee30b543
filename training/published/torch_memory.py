"""Memory of torch: releasing it, and recognising the errors of its lack."""

import gc

import torch

# Parts of the messages of torch's RuntimeErrors for lack of memory.
NO_MEMORY = ("out of memory", "not enough memory", "can't allocate memory", "CUBLAS_STATUS_ALLOC_FAILED")


def free_memory() -> None:
    """Release memory that no tensor uses."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error means that the memory of the GPU or the machine ran out."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and any(part in str(error) for part in NO_MEMORY)
