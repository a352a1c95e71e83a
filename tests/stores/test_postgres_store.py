"""The PostgreSQL database as a store."""

import pytest

from refold.testing import StoreSuite


class TestPostgresStore(StoreSuite):
    BOUNDARIES = 2

    @pytest.fixture
    def url(self, postgres_url: str) -> str:
        return postgres_url

    def beside(self, url: str, number: int) -> str:
        return f"{url}_{number}"
