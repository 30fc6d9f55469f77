"""The command `nn-core`, which most tests of this folder run programs by."""

from collections.abc import Iterator

import pytest

from tests.forked import ForkedCommand, forked_command


@pytest.fixture(scope="session")
def command(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkedCommand]:
    """Run the command in forks of an interpreter that has imported nothing but the package."""
    with forked_command(tmp_path_factory.mktemp("forked")) as command:
        yield command
