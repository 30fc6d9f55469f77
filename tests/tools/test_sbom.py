"""Bills of materials: what a wheel needs, what it brings of others, and the same bytes for the same wheel."""

import json
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from tools.release.sbom import bill_of_materials, main

METADATA = """\
Metadata-Version: 2.4
Name: Acme_Kernels
Version: 1.2
Summary: Kernels
License-Expression: Apache-2.0
Requires-Dist: nn-core<0.2,>=0.1
Requires-Dist: numpy>=2; python_version >= "3.10"
Requires-Dist: pytest>=8; extra == "test"
Requires-Dist: numpy>=2.1; extra == "test"
"""


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / "acme_kernels-1.2-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("acme_kernels-1.2.dist-info/METADATA", METADATA)
        archive.writestr("acme_kernels/_native.abi3.so", b"ours")
        archive.writestr("acme_kernels.libs/libdnnl-4f1b2a3c.so.3.2", b"theirs")
    return path


def test_the_distribution_is_described(wheel: Path) -> None:
    component = bill_of_materials(wheel)["metadata"]["component"]
    assert (component["name"], component["version"]) == ("acme-kernels", "1.2")
    assert component["purl"] == "pkg:pypi/acme-kernels@1.2?file_name=acme_kernels-1.2-py3-none-any.whl"
    assert component["licenses"] == [{"expression": "Apache-2.0"}]


def test_requirements_and_bundled_libraries_are_components(wheel: Path) -> None:
    bill = bill_of_materials(wheel)
    found = {part["name"]: part for part in bill["components"]}
    assert set(found) == {"libdnnl", "nn-core", "numpy", "pytest"}
    assert (found["libdnnl"]["version"], len(found["libdnnl"]["hashes"])) == ("3.2", 1)
    assert found["nn-core"]["properties"] == [{"name": "nn_core:versions", "value": "<0.2,>=0.1"}]
    assert {name: part["scope"] for name, part in found.items()} == {
        "libdnnl": "required",
        "nn-core": "required",
        "numpy": "required",
        "pytest": "optional",
    }
    refs = {part["bom-ref"] for part in bill["components"]}
    root, *leaves = bill["dependencies"]
    assert set(root["dependsOn"]) == refs == {leaf["ref"] for leaf in leaves}


def test_the_command_writes_the_same_bytes_beside_the_wheel(wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    texts = []
    for _ in range(2):
        result = CliRunner().invoke(main, [str(wheel)])
        assert result.exit_code == 0, result.output
        texts.append(wheel.with_suffix(".cdx.json").read_text(encoding="utf-8"))
    assert texts[0] == texts[1]
    assert json.loads(texts[0])["metadata"]["timestamp"] == "2023-11-14T22:13:20Z"


def test_an_archive_without_metadata_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "empty.whl"
    with zipfile.ZipFile(path, "w"):
        pass
    with pytest.raises(ValueError, match=r"a wheel must have metadata, got .*empty\.whl without"):
        bill_of_materials(path)
