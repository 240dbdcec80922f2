"""What a token's file may hold."""

import pytest

from crosswind import DescriptionError
from crosswind.access import read_token


def test_space_around_a_token_counts_for_nothing(tmp_path):
    file = tmp_path / "token"
    file.write_text("  one line of some length \n\n")
    assert read_token(file) == "one line of some length"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "has 0 lines"),
        (b" \n", "has 0 lines"),
        (b"a" * 76 + b"\n" + b"b" * 12 + b"\n", "has 2 lines"),  # what base64 makes of 64 bytes
        (b"\xff" * 32, "can't decode"),
        (None, "No such file"),
    ],
)
def test_what_is_no_token_is_said_with_how_to_make_one_and_not_shown(tmp_path, content, said):
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(DescriptionError, match=said) as refused:
        read_token(file)
    assert "bbbb" not in str(refused.value)
    assert "base64 > token" in str(refused.value.hint)
