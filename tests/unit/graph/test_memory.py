"""The arena: blocks that fit are used again, those given back last first."""

import gc

import numpy as np
import pytest

from nn_core.engine.arrays.synced import HOST, Space, host_empty
from nn_core.engine.graph.memory import MAX_SLACK, Arena, plan_memory

OTHER = Space("other", host_empty, lambda array: array, lambda array: array)


@pytest.fixture
def arena():
    return Arena()


def test_a_block_that_was_given_back_is_taken_again(arena):
    block = arena.take(HOST, 4096)
    arena.give(block)
    assert arena.take(HOST, 4096) is block
    assert arena.take(HOST, 4096) is not block
    assert arena.n_bytes == 2 * 4096


def test_the_smallest_block_that_fits_is_taken(arena):
    blocks = [arena.take(HOST, n_bytes) for n_bytes in (6000, 1000, 4000)]
    for block in blocks:
        arena.give(block)
    assert arena.take(HOST, 3000) is blocks[2]
    assert arena.take(HOST, 3000) is blocks[0]
    assert arena.take(HOST, 3000) not in blocks


def test_a_much_larger_block_is_left_alone(arena):
    arena.give(arena.take(HOST, MAX_SLACK * 1000 + 1))
    arena.take(HOST, 1000)
    assert arena.n_bytes == MAX_SLACK * 1000 + 1 + 1000


def test_the_block_given_back_last_is_taken_first(arena):
    first, last = arena.take(HOST, 512), arena.take(HOST, 512)
    arena.give(first)
    arena.give(last)
    assert [arena.take(HOST, 512), arena.take(HOST, 512)] == [last, first]


def test_blocks_of_other_spaces_do_not_serve(arena):
    block = arena.take(OTHER, 512)
    arena.give(block)
    assert arena.take(HOST, 512) is not block


def test_free_blocks_of_another_arena_are_borrowed(arena):
    other = Arena()
    block = other.take(HOST, 512)
    other.give(block)
    arena.borrow(other)
    assert arena.take(HOST, 512) is block
    assert arena.n_bytes == 0


def test_memory_of_plans_is_counted_by_device_as_long_as_they_exist(arena):
    first, second = (Space(f"Counted:{number}", host_empty, np.array, np.asarray) for number in (1, 2))
    assert plan_memory("Counted", "1") == []
    block = arena.take(first, 1000)
    arena.take(second, 10)
    arena.give(block)
    arena.take(first, 900)  # in the same block
    other = Arena()
    other.borrow(arena)
    other.take(first, 5000)
    assert plan_memory("Counted", "1") == [5000, 1000]
    assert plan_memory("Counted", "2") == [10]
    del other
    gc.collect()
    assert plan_memory("Counted", "1") == [1000]
