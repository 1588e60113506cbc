"""Regular expressions: what RE2 and Python's engine do not have in common."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf
from headrace import errors
from headrace.ops.kernels import regex


def run(tensor: tf.Tensor) -> list[object]:
    with tf.Session() as session:
        return session.run(tensor).tolist()


@pytest.mark.parametrize(
    ("pattern", "python"),
    [
        ("a$", r"a\Z"),
        ("(?m)a$", "(?m:a$)"),
        ("(?m)a(?-m)b$", r"(?m:a(?-m:b\Z))"),
        ("x(?i)y(z)", "x(?i:y(z))"),
        ("((?i)a|b)c", "((?i:a)|(?i:b))c"),
        ("x(?i)y|z", "x(?i:y)|(?i:z)"),
        (r"\Qa.b\Ec", r"a\.bc"),
        (r"\Q(", r"\("),
        (r"\z", r"\Z"),
        ("[[:digit:]x]", "[0-9x]"),
        ("[]a]", r"[\]a]"),
        ("[^]a]", r"[^\]a]"),
        ("[a[b]", r"[a\[b]"),
        ("[a-c-]", r"[a-c\-]"),
        ("[--/&&]", r"[\--/\&\&]"),
        (r"[\d-x]", r"[\d\-x]"),
        (r"\x{41}\x42\060", "AB0"),
        ("(?<n>a)(?P<m>b)", "(?P<n>a)(?P<m>b)"),
        (r"\-\d", r"\-\d"),
    ],
)
def test_translation(pattern: str, python: str) -> None:
    assert regex.compiled(pattern).pattern == python


@pytest.mark.parametrize(
    "pattern",
    [
        "(?=a)", "(?!a)", "(?<=a)b", "(?<!a)b", r"(a)\1", "a++", "(a", "a)", "[a", "a\\", r"\p{L}",
        r"\y", "*", "a{2,1}", "[[:nothing:]]", "(?U)a", "(?x)a", "(?>a)", r"\x{110000}", "(?",
        "[[:", "[b-a]", r"[a-\d]", r"[\b]", "(" * 5000 + ")" * 5000,
    ],
)  # fmt: skip
def test_what_is_no_pattern(pattern: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="Invalid pattern"):
        regex.compiled(pattern)


def test_a_bad_pattern_names_the_op() -> None:
    for match in (
        tf.strings.regex_full_match(["a"], "(b", name="check"),
        tf.strings.regex_full_match(["a"], tf.constant("(b"), name="check"),
    ):
        with pytest.raises(errors.InvalidArgumentError, match=r"Invalid pattern: \(b") as caught:
            run(match)
        assert caught.value.op is match.op


def test_bad_rewrites() -> None:
    for rewrite in (r"\1", r"a\q", "a\\"):
        with pytest.raises(errors.InvalidArgumentError, match="Invalid rewrite"):
            run(tf.regex_replace(["a"], "a", rewrite))


def test_empty_matches_behind_a_match_do_not_count() -> None:
    assert run(tf.regex_replace(["abc"], "b*", "-")) == [b"-a-c-"]


def test_classes_are_ascii_and_characters_utf8() -> None:
    match = tf.strings.regex_full_match
    assert run(match(["é", "e"], r"\w")) == [False, True]
    assert run(match(["é", "éé"], ".")) == [True, False]
    assert run(match(["\u0661", "1"], r"\d")) == [False, True]


def test_bytes_that_are_no_text_survive() -> None:
    assert run(tf.regex_replace([b"a\xffa"], "a", "b")) == [b"b\xffb"]


def test_pattern_must_be_a_scalar() -> None:
    with pytest.raises(ValueError, match="pattern must be a scalar"):
        tf.strings.regex_full_match(["a"], ["a", "b"])
    fed = tf.placeholder(tf.string)
    with (
        tf.Session() as session,
        pytest.raises(errors.InvalidArgumentError, match="Pattern must be scalar"),
    ):
        session.run(tf.regex_replace(["a"], fed, "b"), {fed: ["a", "b"]})


def test_random_patterns_compile_or_are_invalid() -> None:
    rng = np.random.RandomState(0)
    pieces = ["a", "b", "(", ")", "[", "]", "-", "^", "$", "|", "*", "+", "?", ".", "\\", "{1,2}"]
    pieces += ["(?i)", "(?:", "(?P<x>", "[:alpha:]", "\\d", "\\Q", "\\E", "é", "0", "{", "}", "&&"]
    valid = 0
    for _ in range(3000):
        pattern = "".join(rng.choice(pieces, rng.randint(1, 9)))
        try:
            expression = regex.compiled(pattern)
        except errors.InvalidArgumentError:
            continue
        valid += 1
        rewrite = regex.parsed_rewrite(r"<\0>", expression.groups)
        text = regex.replace(expression, rewrite, "ab-é^0", True).decode()
        assert text.replace("<", "").replace(">", "") == "ab-é^0"
    assert valid > 500
