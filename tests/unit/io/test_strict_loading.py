"""Loading when file and program do not have the same parameters."""

import numpy as np
import pytest

import nn_core as nn
import nn_core.parameter
import nn_core.parametric_functions as PF
from nn_core.errors import ArgumentError, ShapeError


def variables(**shapes):
    return {name.replace("__", "/"): nn.Variable.from_numpy_array(np.ones(s), need_grad=True) for name, s in shapes.items()}


@pytest.fixture
def path(tmp_path):
    """A file with a parameter that fits, one of another shape, and one that is not there."""
    nn.save_parameters(tmp_path / "p.h5", variables(same__W=(2, 3), other__W=(4,), extra__W=(1,)))
    return tmp_path / "p.h5"


@pytest.fixture
def scope(clean_scope):
    for name, variable in variables(same__W=(2, 3), other__W=(5,), lacking__W=(2,)).items():
        variable.d = 0
        nn.parameter.set_parameter(name, variable)
    return nn.get_parameters(grad_only=False)


@pytest.fixture
def clean_scope():
    with nn.parameter_scope("", scope={}) as scope:
        yield scope


def test_an_empty_scope_gets_all_parameters(path, clean_scope, caplog):
    report = nn.load_parameters(path)
    assert sorted(report.created) == sorted(nn.get_parameters()) == ["extra/W", "other/W", "same/W"]
    assert not (report.loaded or report.missing or report.unexpected or report.reshaped or caplog.records)
    assert nn.load_parameters(path, strict=True).is_exact


def test_strict_says_everything_and_changes_nothing(path, scope):
    with pytest.raises(ArgumentError) as caught:
        nn.load_parameters(path, strict=True)
    for text in (
        "p.h5 must have exactly the parameters that there are, in their shapes, got 2 loaded",
        "1 of them new: extra/W; 1 missing: lacking/W; 1 reshaped: other/W (5,) (file: (4,))",
        "hint: strict=False takes what fits",
    ):
        assert text in str(caught.value)
    assert list(nn.get_parameters()) == list(scope)
    assert not scope["same/W"].d.any()


def test_strict_about_shapes_alone_is_a_shape_error(tmp_path, clean_scope):
    nn.save_parameters(tmp_path / "p.npz", variables(w=(2,)))
    nn.parameter.set_parameter("w", nn.Variable((3,), need_grad=True))
    with pytest.raises(ShapeError, match=r"1 reshaped: w \(3,\) \(file: \(2,\)\)"):
        nn.load_parameters(tmp_path / "p.npz", strict=True)


def test_the_default_refuses_another_shape_and_changes_nothing(path, scope):
    with pytest.raises(ShapeError, match=r"parameter 'other/W' must keep its shape \(5,\), got \(4,\) in .*p.h5"):
        nn.load_parameters(path)
    assert list(nn.get_parameters()) == list(scope) and not scope["same/W"].d.any()


def test_not_strict_takes_what_fits(path, scope, caplog):
    report = nn.load_parameters(path, strict=False)
    assert report.loaded == ("same/W",) and report.created == ("extra/W",) and report.missing == ("lacking/W",)
    assert report.reshaped == {"other/W": ((5,), (4,))} and not report.is_exact
    assert scope["same/W"].d.all() and not scope["other/W"].d.any() and not scope["lacking/W"].d.any()
    assert not caplog.records


def test_names_that_may_be_misspelt_are_logged(tmp_path, clean_scope, caplog):
    nn.save_parameters(tmp_path / "p.npz", variables(conv1__W=(2,)))
    nn.parameter.set_parameter("conv_1/W", nn.Variable((2,), need_grad=True))
    nn.load_parameters(tmp_path / "p.npz")
    (record,) = caplog.records
    assert "1 of them new: conv1/W; 1 missing: conv_1/W (hint: strict=True" in record.message


def test_a_file_for_a_part_of_the_parameters_is_loaded_in_silence(tmp_path, scope, caplog):
    nn.save_parameters(tmp_path / "p.npz", variables(same__W=(2, 3)))
    assert nn.load_parameters(tmp_path / "p.npz").missing == ("other/W", "lacking/W")
    assert not caplog.records


class Net(nn.Module):
    def __init__(self, maps=3):
        self.body = Affine(maps)

    def call(self, x):
        return PF.affine(self.body(x), 2)


class Affine(nn.Module):
    def __init__(self, maps):
        self.maps = maps

    def call(self, x):
        return PF.affine(x, self.maps)


def built(maps=3):
    net = Net(maps)
    net(nn.Variable((1, 4)))
    return net


def saved(tmp_path, parameters):
    nn.save_parameters(tmp_path / "net.npz", parameters)
    return tmp_path / "net.npz"


def test_a_module_that_was_not_called_takes_all(tmp_path):
    net = Net()
    report = net.load_parameters(saved(tmp_path, built().get_parameters()))
    assert list(report.created) == list(net.get_parameters()) and len(report.created) == 4


def test_a_module_gets_no_parameters_under_wrong_names(tmp_path):
    net = built()
    names = list(net.get_parameters())
    given = {name.replace("affine", "fc"): w for name, w in net.get_parameters().items()}
    path = saved(tmp_path, given)
    with pytest.raises(ArgumentError, match=r"must be a parameter '@body/fc/W' to load, got none"):
        net.load_parameters(path)
    for report in (net.load_parameters(path, strict=False), net.load_parameters(path, raise_if_missing=False)):
        assert list(report.unexpected) == list(given) and list(report.missing) == names and not report.loaded
    assert list(net.get_parameters()) == names


def test_a_module_reports_what_the_file_does_not_have(tmp_path, caplog):
    net = built()
    path = saved(tmp_path, {name: w for name, w in net.get_parameters().items() if not name.startswith("@")})
    report = net.load_parameters(path)
    assert report.missing == ("@body/affine/W", "@body/affine/b")
    assert "2 missing: @body/affine/W, @body/affine/b" in caplog.records[0].message
    with pytest.raises(ArgumentError, match="2 loaded; 2 missing: @body/affine/W, @body/affine/b"):
        net.load_parameters(path, strict=True)


def test_a_module_refuses_other_shapes_as_a_whole(tmp_path):
    net = built(3)
    before = {name: w.d.copy() for name, w in net.get_parameters().items()}
    path = saved(tmp_path, built(5).get_parameters())
    with pytest.raises(ShapeError, match=r"'@body/affine/W' must keep its shape \(4, 3\), got \(4, 5\)"):
        net.load_parameters(path)
    assert all((before[name] == w.d).all() for name, w in net.get_parameters().items())
    report = net.load_parameters(path, strict=False)
    assert report.loaded == ("affine/b",) and len(report.reshaped) == 3


def test_a_shared_module_is_loaded_by_any_of_its_names(tmp_path):
    class Twice(nn.Module):
        def __init__(self):
            self.a = self.b = Affine(3)

        def call(self, x):
            return self.a(x)

    twice = Twice()
    twice(nn.Variable((1, 4)))
    given = {name.replace("@a", "@b"): nn.Variable.from_numpy_array(w.d + 1) for name, w in twice.get_parameters().items()}
    report = twice.load_parameters(saved(tmp_path, given), strict=True)
    assert report.loaded == ("@b/affine/W", "@b/affine/b")
    np.testing.assert_array_equal(twice.get_parameters()["@a/affine/W"].d, given["@b/affine/W"].d)
