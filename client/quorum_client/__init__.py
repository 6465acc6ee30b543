"""Client of Quorum's REST API: collections, judging by models, labels, runs, exports and trainings from a script."""

from quorum_client import records
from quorum_client.collection import Collection
from quorum_client.errors import QuorumError
from quorum_client.site import Quorum
from quorum_client.tables import to_dataset, to_pandas

__all__ = ["Collection", "Quorum", "QuorumError", "records", "to_dataset", "to_pandas"]
