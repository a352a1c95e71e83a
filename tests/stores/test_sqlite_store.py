"""The SQLite database as a store."""

from pathlib import Path

import pytest

from refold.testing import StoreSuite


class TestSqliteStore(StoreSuite):
    @pytest.fixture
    def url(self, tmp_path: Path) -> str:
        return f"sqlite:///{tmp_path}/runs.db"
