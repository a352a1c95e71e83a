"""The folder of files as a store."""

from pathlib import Path

import pytest

from refold.testing import StoreSuite


class TestFolderStore(StoreSuite):
    @pytest.fixture
    def url(self, tmp_path: Path) -> str:
        return str(tmp_path / "runs")
