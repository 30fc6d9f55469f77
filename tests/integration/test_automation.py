"""The workflow and the hooks call what the Makefile calls, and pytest takes our options in any folder."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
EXTENSIONS = sorted(ROOT.glob("extensions/*/pyproject.toml"))


def makefiles():
    return "".join(path.read_text(encoding="utf-8") for path in [ROOT / "Makefile", *ROOT.glob("make/*.mk")])


def workflow(name="ci"):
    return yaml.safe_load((ROOT / ".github" / "workflows" / f"{name}.yml").read_text(encoding="utf-8"))["jobs"]


def targets(job):
    """Return the targets of the Makefile that a job of the workflow runs, without their settings."""
    commands = [step["run"] for step in job["steps"] if "run" in step]
    assert all(command.startswith("make ") for command in commands)
    words = [shlex.split(command.replace("${{ matrix.target }}", "TARGETS"))[1] for command in commands]
    found = [target for word in words for target in (job["strategy"]["matrix"]["target"] if word == "TARGETS" else [word])]
    return [target.split()[0] for target in found]


def test_jobs_run_targets_of_the_makefile():
    known = set(re.findall(r"^([a-z][a-z-]*):", makefiles(), re.MULTILINE))
    for name, job in workflow().items():
        assert targets(job), name
        assert set(targets(job)) <= known


def test_a_change_is_tested_as_on_one_machine():
    by_hand = set(
        re.findall(r"[a-z][a-z-]+", " ".join(re.findall(r"^make (.*)$", (ROOT / ".ci" / "run").read_text(), re.MULTILINE)))
    )
    jobs = workflow()
    own = {target for name, job in jobs.items() if name != "nightly" for target in targets(job)}
    assert own <= by_hand
    assert own == {"test", "check", "seeded-lanes", "emulated"}


def test_a_release_builds_and_uploads_without_a_token():
    jobs = workflow("release")
    known = set(re.findall(r"^([a-z][a-z-]*):", makefiles(), re.MULTILINE))
    assert {target for name in ("native", "pure") for target in targets(jobs[name])} == {"cpu-wheels", "pure-wheels"} <= known
    assert jobs["upload"]["needs"] == ["native", "pure"] and jobs["upload"]["permissions"] == {"id-token": "write"}
    assert "secrets." not in str(jobs)


def test_wheels_of_the_cpu_backend_are_built_for_every_python():
    tomllib = pytest.importorskip("tomllib", reason="Python 3.10 has no reader of TOML")
    tools = tomllib.loads((ROOT / "extensions" / "nn_ext_cpu" / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    options = tools["cibuildwheel"]
    assert options["build"].split() == [f"cp3{minor}-*" for minor in range(10, 15)]
    (command,) = re.findall(r"python -m ([\w.]+)", options["repair-wheel-command"])
    assert (ROOT / (command.replace(".", "/") + ".py")).exists()


def test_the_matrix_has_every_python_and_machine():
    matrix = workflow()["tests"]["strategy"]["matrix"]
    assert matrix["python"] == [f"3.{minor}" for minor in range(10, 15)]
    assert matrix["machine"] == ["x86-64", "aarch64"] == [entry["machine"] for entry in matrix["include"]]


def test_hooks_run_what_the_makefile_runs():
    content = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    (repository,) = content["repos"]
    assert repository["repo"] == "local"
    checks = makefiles().replace("$(BIN)", ".venv/bin")
    for hook in repository["hooks"]:
        assert hook["entry"].removesuffix(" --force-exclude") in checks


@pytest.mark.parametrize("path", EXTENSIONS, ids=lambda path: path.parent.name)
def test_tests_of_an_extension_take_the_options_of_the_whole_repository(path):
    """pytest takes those of the first folder that has some, from the tests upwards."""
    assert "[tool.pytest" not in path.read_text(encoding="utf-8")
    assert not list(path.parent.glob("pytest.*")) and not list(path.parent.glob("setup.cfg"))
    assert "-p nn_core.testing.pytest_plugin" in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_options_of_the_kit_are_known_in_any_folder(tmp_path):
    tests = ROOT / "extensions" / "nn_ext_cpu" / "tests" / "test_thread_count.py"
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--collect-only", "--backend=cpu", str(tests)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 tests collected" in done.stdout
