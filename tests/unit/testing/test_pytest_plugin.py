"""The cases that the options of the kit select."""

import pytest

pytest_plugins = ("pytester",)

MODULE = """
from nn_core.testing.conformance import *

BACKENDS = ("reference",)
FUNCTIONS = ("Tanh", "Sum")
"""


@pytest.fixture
def collected(pytester):
    """The ids of the tests that options choose, and what pytest prints."""
    pytester.makepyfile(test_kit=MODULE)

    def collect(*options):
        result = pytester.runpytest_inprocess("-p", "nn_core.testing.pytest_plugin", "--collect-only", "-q", *options)
        return [line for line in result.outlines if "::" in line], "\n".join(result.outlines + result.errlines)

    return collect


def test_shards_are_parts_of_the_whole_that_keep_cases_together(collected):
    whole, _ = collected("--backend=reference")
    shards = [collected("--backend=reference", f"--shard={part}/3")[0] for part in (1, 2, 3)]
    assert sorted(name for shard in shards for name in shard) == sorted(whole)
    assert all(len(shard) > len(whole) / 4 for shard in shards)
    case = "[reference-Tanh-float32-"
    names = [{name.partition("[")[2] for name in shard if case in name} for shard in shards]
    assert not names[0] & names[1] | names[0] & names[2] | names[1] & names[2]


def test_tiers_run_few_cases_or_all(collected):
    smoke, core, full = (set(collected("--backend=reference", f"--tier={tier}")[0]) for tier in ("smoke", "core", "full"))
    assert smoke < core < full == set(collected("--backend=reference")[0])
    assert not any("float64" in name for name in core)
    assert any("float64" in name for name in full)


@pytest.mark.parametrize("shard", ["0/3", "4/3", "2", "a/b", "1/-1"])
def test_a_shard_is_a_part_of_a_number_of_parts(collected, shard):
    assert "a shard must be I/N with 1 <= I <= N" in collected(f"--shard={shard}")[1]
