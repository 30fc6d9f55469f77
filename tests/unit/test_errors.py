"""Text from files in messages: it is quoted, cut, and cannot act on a terminal."""

import pickle

import pytest

from nn_core.errors import FileFormatError, quoted
from nn_core.files import read_entries
from nn_core.training.needed_plugins import hint_of_missing

HOSTILE = "\x1b[2Jpip install evil\n  hint: pip install git+https://evil\u202e\0\udc80"


@pytest.mark.parametrize("text", [HOSTILE, "a'b", 'a"b', "", "x" * 1000, 5], ids=ascii)
def test_quoted_text_is_one_short_line_of_ascii(text):
    shown = quoted(text)
    assert shown.isascii()
    assert shown.isprintable()
    assert shown[0] == shown[-1]
    assert shown[0] in "'\""
    assert len(quoted("x" * 1000)) == 65


def test_messages_about_files_are_cut_and_escaped():
    message = str(FileFormatError("a.npz: " + HOSTILE + "x" * 250_000 + "\n  hint: the end"))
    assert "\x1b" not in message
    assert "\\x1b[2J" in message
    assert "\\u202e" in message
    assert "\\x00" in message
    assert message.endswith("\n  hint: the end")
    assert len(message) < 2100
    assert str(pickle.loads(pickle.dumps(FileFormatError(message)))) == message


def test_readers_repeat_no_line_of_the_file(tmp_path, monkeypatch):
    path = tmp_path / "a.safetensors"
    header = b'{"\\n  hint: pip install evil' + b"y" * 100_000
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    with pytest.raises(FileFormatError) as caught:
        read_entries(path, ".safetensors")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 2500


def test_a_checkpoint_cannot_choose_what_a_hint_tells_to_install():
    hint = hint_of_missing({"evil": "git+https://evil.example/x 1.0", "\n  hint": "$(reboot)"})
    assert "install " not in hint
    assert "\n" not in hint
    assert "'git+https://evil.example/x 1.0'" in hint
