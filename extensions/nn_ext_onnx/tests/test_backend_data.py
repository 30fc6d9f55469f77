"""The models that ONNX keeps as files for backends: those that PyTorch wrote give the expected results."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.backend.test.loader import load_model_tests

from nn_core.ext import NNCoreError
from nn_ext_onnx.backend import prepare

#: The number of models of each kind that are computed: one that is lost makes the test fail. The others are refused.
PASSED = {"pytorch-converted": 82, "pytorch-operator": 35, "simple": 7}


def value_of(path, type_proto):
    """The value in a file of the type that the model declares."""
    content = Path(path).read_bytes()
    if type_proto.HasField("sequence_type"):
        return onnx.numpy_helper.to_list(onnx.SequenceProto.FromString(content))
    if type_proto.HasField("optional_type"):
        return onnx.numpy_helper.to_optional(onnx.OptionalProto.FromString(content))
    return onnx.numpy_helper.to_array(onnx.TensorProto.FromString(content))


def values_of(folder, prefix, declared):
    return [value_of(folder / f"{prefix}_{index}.pb", value.type) for index, value in enumerate(declared)
            if (folder / f"{prefix}_{index}.pb").exists()]  # fmt: skip


def outcome(case):
    """ "passed", "refused", or what is different."""
    folder = Path(case.model_dir)
    model = onnx.load(folder / "model.onnx")
    data_sets = sorted(folder.glob("test_data_set_*"))
    try:
        prepared = prepare(model)
        for data in data_sets:
            found = prepared.run(values_of(data, "input", model.graph.input))
            for value, wanted in zip(found, values_of(data, "output", model.graph.output), strict=True):
                assert np.asarray(value).dtype == np.asarray(wanted).dtype
                np.testing.assert_allclose(value, wanted, rtol=case.rtol, atol=case.atol)
    except NNCoreError:
        return "refused"
    except AssertionError as error:
        return str(error)
    return "passed" if data_sets else "no data"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize(("kind", "n_passed"), PASSED.items())
def test_stored_models_give_the_expected_results(kind, n_passed):
    found = {case.name: outcome(case) for case in load_model_tests(kind=kind)}
    wrong = {name: text for name, text in found.items() if text not in ("passed", "refused")}
    assert wrong == {}
    assert sum(text == "passed" for text in found.values()) >= n_passed
