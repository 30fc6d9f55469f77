"""The certificate that a package ships, as ``nn-core doctor`` shows it."""

import sys

import pytest

from nn_core.cli.findings import as_text
from nn_core.engine.dispatch.doctor import CERTIFICATE, findings
from nn_core.engine.dispatch.plugin_manager import Plugins
from nn_core.testing.checkup import Certificate, Check

WRONG = "certificate: conformance.json must be written by nn-core check-extension --json"
PLUGIN = """
from nn_core.ext import SolverInfo, hookimpl
PLUGIN_API, REQUIRES_CORE = 1, ">=0.1"
@hookimpl
def nn_core_solvers():
    return [SolverInfo(name="Certified", target="decimal:Decimal")]
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package with a plugin called certified, found as if it were installed."""
    folder = tmp_path / "nn_ext_certified"
    metadata = tmp_path / "nn_ext_certified-1.0.dist-info"
    folder.mkdir()
    metadata.mkdir()
    (folder / "__init__.py").touch()
    (folder / "plugin.py").write_text(PLUGIN)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: nn-ext-certified\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[nn_core.extensions]\ncertified = nn_ext_certified.plugin\n")
    monkeypatch.syspath_prepend(tmp_path)
    from nn_core.engine.runtime import installed

    installed.forget()
    yield folder
    monkeypatch.undo()
    installed.forget()
    for name in [name for name in sys.modules if name.startswith("nn_ext_certified")]:
        del sys.modules[name]


def certificate(package="nn-ext-certified 1.0", *, ok=True):
    made = Certificate("certified", package, "0.1.0", [Check("kit", "conformance", ok)])
    made.operators["certified.Cube"] = {"passed": 150, "failed": int(not ok), "skipped": 1}
    return made


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (certificate().to_json(), "certificate: conforms, 150 checks, checked by nn-core 0.1.0"),
        (certificate(ok=False).to_json(), "certificate: does not conform (conformance), checked by nn-core 0.1.0"),
        (certificate("nn-ext-certified 0.9").to_json(), "certificate: of nn-ext-certified 0.9, which is another version"),
        ("[", f"{WRONG}, got JSONDecodeError"),
        ('{"ok": true}', f"{WRONG}, got KeyError"),
        ("[]", f"{WRONG}, got TypeError"),
    ],
)
def test_the_doctor_shows_the_certificate(package, text, shown):
    (package / CERTIFICATE).write_text(text)
    (row,) = findings("certified", Plugins(), watched=False)
    assert row.certificate == shown
    assert " ".join(as_text([row]).split()).endswith(f"solvers: Certified {shown}")


def test_a_package_without_one_is_shown_without(package):
    (row,) = findings("certified", Plugins(), watched=False)
    assert as_text([row]).endswith("solvers: Certified")
