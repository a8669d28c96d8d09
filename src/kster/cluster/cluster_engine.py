"""What is behind the APIs of a replica: its own models; memories, keys and jobs of the cluster."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import mkdtemp

from kster.cluster.catalogue_service import RemoteDatabase
from kster.cluster.cluster_catalogue import ClusterCatalogue
from kster.cluster.remote_jobs import RemoteJobs
from kster.server.database import ServerDatabase
from kster.server.settings import ServerSettings
from kster.server.work.catalogue import Catalogue
from kster.server.work.engine import Engine
from kster.server.work.jobs import Jobs


class ClusterEngine(Engine):
    """settings name all models; shared: ids of the memories that serve everybody."""

    def __init__(self, settings: ServerSettings, shared: Sequence[int]) -> None:
        self._shared = shared
        settings.data.mkdir(parents=True, exist_ok=True)
        super().__init__(settings.model_copy(update={"memories": []}))

    def _open_database(self) -> ServerDatabase:
        return RemoteDatabase()

    def _open_catalogue(self) -> Catalogue:
        assert isinstance(self.database, RemoteDatabase)
        return ClusterCatalogue(self.settings.data, self.database, self.models, self._shared)

    def _start_jobs(self) -> Jobs:
        self.uploads = Path(mkdtemp(prefix="kster-uploads-"))  # on their way to who does the jobs
        return RemoteJobs(self.uploads)

    def _sweep_uploads(self) -> None:
        """They are with the jobs."""
