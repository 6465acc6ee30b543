"""Client of Quorum's REST API: `Quorum` waits for each answer, `AsyncQuorum` is the same for asyncio."""

from quorum_client import models
from quorum_client._async.client import AsyncCollection, AsyncQuorum
from quorum_client._sync.client import Collection, Quorum
from quorum_client.errors import QuorumError

__all__ = ["AsyncCollection", "AsyncQuorum", "Collection", "Quorum", "QuorumError", "models"]
