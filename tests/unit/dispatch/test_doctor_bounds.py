"""The doctor examines a bounded number of plugins of one package, and says that there are more."""

import pytest

from nn_core.engine.dispatch import doctor
from nn_core.engine.dispatch.doctor import MOST_OF_A_PACKAGE, Finding
from nn_core.engine.dispatch.plugin_record import State
from nn_core.engine.runtime import installed

COUNT = MOST_OF_A_PACKAGE + 20


@pytest.fixture
def many(tmp_path, monkeypatch):
    """Install a package with more plugins than are examined."""
    folder = tmp_path / "many-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: many\nVersion: 1.0\n")
    lines = [f"many{number:03} = many.m{number}" for number in range(COUNT)]
    (folder / "entry_points.txt").write_text("\n".join(["[nn_core.extensions]", *lines]))
    monkeypatch.syspath_prepend(str(tmp_path))
    installed.forget()
    yield
    monkeypatch.undo()
    installed.forget()


def test_many_plugins_of_a_package_are_not_all_examined(many, monkeypatch):
    monkeypatch.setattr(doctor, "_examined", lambda name: [Finding(name, "", State.LOADED)])
    rows = doctor.examine([f"many{COUNT - 1:03}"])
    examined = [row.name for row in rows if row.name.startswith("many")]
    assert examined == [*(f"many{number:03}" for number in range(MOST_OF_A_PACKAGE)), f"many{COUNT - 1:03}"]
    (rest,) = [row for row in rows if row.name == f"{COUNT} plugins"]
    assert rest.package.startswith("many") and rest.state is State.IGNORED
    assert f"only the first {MOST_OF_A_PACKAGE} were examined" in rest.reason
    assert any(row.name == "cpu" for row in rows)


def test_the_plugins_are_listed_once_however_many_there_are(many, monkeypatch):
    listed = []
    names = doctor.PLUGINS.names
    monkeypatch.setattr(doctor, "_examined", lambda name: [])
    monkeypatch.setattr(doctor.PLUGINS, "names", lambda: listed.append(1) or names())
    doctor.examine()
    assert len(listed) == 1
