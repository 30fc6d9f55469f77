"""``nn-core run nnabla_cli``: every command and option of NNabla 1.39's command line."""

import csv
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import nn_core as nn
from nn_core.__main__ import main

DATA = Path(__file__).with_name("data")
TRAINING = DATA / "training" / "Adam.nnp"
#: The options of each command as ``nnabla_cli COMMAND --help`` lists them.
OPTIONS = {
    "train": "-r --resume -c --config -p --param -o --outdir -O --enable-ooc -m --ooc-gpu-memory-size -C --context -w "
    "--ooc-window-length",
    "infer": "-c --config -o --output -p --param -t --data_type -b --batch_size",
    "forward": "-c --config -p --param -d --dataset -o --outdir -f --outfile --replace_path --result_outdir -b --batch_size",
    "encode_param": "-i --indir -p --param",
    "decode_param": "-p --param -o --outdir",
    "profile": "-c --config -o --outdir",
    "conv_dataset": "-F --force -S --shuffle -N --normalize -t --num_of_threads",
    "compare": "-c --config -c2 --config2 -o --outdir",
    "create_image_classification_dataset": "-i --sourcedir -o --outdir -c --channel -w --width -g --height -m --mode -s "
    "--shuffle -f1 --file1 -r1 --ratio1 -f2 --file2 -r2 --ratio2",
    "dump": "-v --dump-verbose -F --dump-functions -V --dump-variables --dump-limit -n --dump-variable-name -I "
    "--import-format -E --nnp-import-executor-index --nnp-exclude-preprocess --nnp-no-expand-network",
    "nnb_template": "-I --import-format -E --nnp-import-executor-index --nnp-exclude-preprocess --nnp-no-expand-network -b "
    "--batch-size -T --default-variable-type --api",
    "convert": "--outputs --inputs -I --import-format -E --nnp-import-executor-index --nnp-exclude-preprocess "
    "--nnp-no-expand-network -O --export-format -f --force -b --batch-size -S --split -d --define_version "
    "--enable-optimize-pb --channel-last --quantization --dataset --ir_version -c --config --nnp-parameter-h5 "
    "--nnp-parameter-nntxt --nnp-exclude-parameter --nnp-version -T --default-variable-type -s --settings --api",
    "plot_series": "-l --label -o --outfile -x --xlabel -y --ylabel -t --title -T --ylim-max -B --ylim-min -R --xlim-max "
    "-L --xlim-min",
    "plot_timer": "-l --label -o --outfile -x --xlabel -y --ylabel -t --title -T --ylim-max -B --ylim-min -R --xlim-max "
    "-L --xlim-min -e --elapsed -u --time-unit",
    "create_object_detection_dataset": "-i --sourcedir -o --outdir -n --num_class -c --channel -w --width -g --height -a "
    "--num_anchor -d --grid_size -m --mode -s --shuffle -f1 --file1 -r1 --ratio1 -f2 --file2 -r2 --ratio2",
    "function_info": "-o --output -f --all_support -c --config -x --exclude -t --target -q --query "
    "--nnp-no-expand-network --api",
    "draw_graph": "-o --output-dir -n --network -f --format",
}  # fmt: skip


def cli(*args, code=0, how=("run", "nnabla_cli")):
    result = CliRunner().invoke(main, [*how, *(str(arg) for arg in args)])
    assert result.exit_code == code, result.output
    return result.output


@pytest.mark.parametrize("command", OPTIONS)
def test_every_option_is_known(command):
    found = main.get_command(None, command).make_context(command, [], resilient_parsing=True).command
    known = {name for parameter in found.params for name in (*parameter.opts, *parameter.secondary_opts)}
    assert set(OPTIONS[command].split()) - known == set()


def test_commands_run_under_the_name_of_nnabla(tmp_path):
    pytest.importorskip("nn_ext_cpu", reason="the backend that is compared")
    assert "Usage: nnabla_cli train" in cli("train", "--help")
    assert cli("train", "-c", TRAINING, "-o", tmp_path / "out").startswith("epoch 1 of 3 cost=")
    assert (tmp_path / "out" / "results.nnp").exists()
    assert cli("compare_with_cpu", "-c", TRAINING, "-c2", TRAINING, "-o", tmp_path).startswith("12 variables, largest")
    assert cli("version").startswith("nn-core, version ")
    assert "Commands:" in cli()


@pytest.mark.parametrize("module", ["nnabla.utils.cli", "nnabla.utils.cli.cli"])
def test_the_module_is_the_command_line_as_well(module):
    assert "Network train: batch size 4" in cli("dump", TRAINING, how=("run", "-m", module))


def test_wrong_options_end_with_2_and_failures_with_1(tmp_path):
    cli("train", "--nothing", code=2)
    cli("nothing", code=2)
    assert "-m must be left out, got it before the command" in cli("-m", "train", code=2)
    (tmp_path / "a.nntxt").write_text("network { colour: 1 }")
    assert "a.nntxt:1: " in cli("dump", tmp_path / "a.nntxt", code=1)


def test_a_script_of_that_name_comes_first(tmp_path):
    (tmp_path / "nnabla_cli").write_text("print('mine')")
    command = [sys.executable, "-m", "nn_core", "run", "nnabla_cli"]
    assert subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout == "mine\n"


@pytest.mark.parametrize(("command", "option", "message"), [
    ("train", ["-O"], "--enable-ooc: values are not moved"),
    ("train", ["-m", "2G"], "--ooc-gpu-memory-size: values are"),
    ("convert", ["-S", "1-2"], "--split: the whole network of an executor is written"),
    ("convert", ["--inputs", "x"], "--inputs: models of TensorFlow"),
    ("convert", ["--ir_version", "8"], "--ir_version: the version of the format follows from the operator set"),
    ("dump", ["--nnp-exclude-preprocess"], "--nnp-exclude-preprocess: functions of preprocessing"),
])  # fmt: skip
def test_options_without_a_use_say_why(command, option, message):
    assert message in " ".join(cli(command, *option, code=2).split())


def test_dump_prints_what_is_asked_for():
    text = cli("dump", "-v", "--dump-limit", 2, DATA / "convnet_protobuf.nnp")
    assert text.count("  Buffer ") == 4 and "Affine" not in text
    assert cli("dump", "-n", "t", DATA / "convnet_protobuf.nnp").count("  Buffer    t") == 1
    only = cli("dump", "-E", 0, DATA / "convnet_protobuf.nnp")
    assert "Network train" not in only and "Optimizer" not in only and "Executor[0]: rt" in only


def test_parameters_may_be_written_into_the_text(tmp_path):
    cli("convert", "--nnp-parameter-nntxt", DATA / "convnet_protobuf.nnp", tmp_path / "a.nnp")
    nn.load_parameters(tmp_path / "a.nnp")
    found = {name: p.d.copy() for name, p in nn.get_parameters(grad_only=False).items()}
    nn.load_parameters(DATA / "convnet_protobuf.nnp")
    for name, parameter in nn.get_parameters(grad_only=False).items():
        np.testing.assert_allclose(found[name], parameter.d, rtol=1e-6)


def test_forward_writes_files_of_results_where_it_is_told(tmp_path):
    text = """network { name: "n" batch_size: 2 variable { name: "x" type: "Buffer" shape { dim: -1 dim: 4 dim: 3 } }
        variable { name: "y" type: "Buffer" shape { dim: -1 dim: 4 dim: 3 } }
        function { name: "f" type: "Exp" input: "x" output: "y" } } dataset { name: "d" uri: "d.csv" }
        executor { name: "e" network_name: "n" data_variable { variable_name: "x" data_name: "x" }
        output_variable { variable_name: "y" data_name: "y" } }"""
    (tmp_path / "n.nntxt").write_text(text)
    values = np.random.default_rng(0).normal(size=(3, 4, 3)).astype(np.float32)
    for number, array in enumerate(values):
        np.save(tmp_path / f"{number}.npy", array)
    (tmp_path / "d.csv").write_text("x\n0.npy\n1.npy\n2.npy\n")
    cli("forward", "-c", tmp_path / "n.nntxt", "-o", tmp_path / "out", "--replace_path", "--result_outdir", "res")
    header, *rows = csv.reader((tmp_path / "out" / "output_result.csv").read_text().splitlines())
    assert header == ["x", "y"]
    for number, (source, result) in enumerate(rows):
        assert source == str((tmp_path / f"{number}.npy").resolve()) and result.startswith("res/y_0000/")
        found = np.loadtxt(tmp_path / "out" / result, delimiter=",")
        np.testing.assert_allclose(found, np.exp(values[number]), rtol=1e-5)
    wrong = cli("forward", "-c", tmp_path / "n.nntxt", "-o", tmp_path / "out", "--result_outdir", "../x", code=1)
    assert "--result_outdir must be a folder in OUTDIR" in wrong
