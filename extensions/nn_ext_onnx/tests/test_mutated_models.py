"""The models that tools.lanes.mutations changes: as they are they are computed right, and a wrong result is found."""

import nn_core.functions as F
from tools.lanes import damaged_models


def test_the_models_themselves_are_computed_right():
    assert {damaged_models.outcome(data) for data in damaged_models.models()} <= {"equal", "unjudged"}


def test_a_wrong_result_is_found(monkeypatch):
    dense = damaged_models.models()[0]
    monkeypatch.setattr(F, "softmax", lambda x, axis: F.sigmoid(x))
    assert damaged_models.outcome(dense).startswith("another result")
