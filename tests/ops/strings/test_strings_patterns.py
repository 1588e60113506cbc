"""Regular expressions of string ops."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as tf
from headrace import errors
from headrace.ops.strings import regex


def run(tensor: tf.Tensor) -> list[object]:
    with tf.Session() as session:
        return session.run(tensor).tolist()


@pytest.mark.parametrize(
    ("pattern", "matches", "does_not"),
    [
        ("a$", "a", "a\n"),
        ("(?m)a$\\nb", "a\nb", "ab"),
        ("x(?i)y(z)", "xYZ", "XYZ"),
        ("((?i)a|b)c", "Bc", "BC"),
        ("x(?i)y|z", "Z", "XY"),
        (r"\Qa.b\Ec", "a.bc", "axbc"),
        (r"\Q(", "(", ""),
        ("[[:digit:]x]", "7", "y"),
        ("[]a]", "]", "b"),
        ("[a[b]", "[", "]"),
        (r"[\d-x]", "-", "y"),
        (r"\x{41}\x42\060", "AB0", "AB"),
        (r"\p{Greek}\pN", "\u03b13", "a3"),
        ("(?U)a+b", "aab", "b"),
        ("(?<n>a)(?P<m>b)", "ab", "a"),
    ],
)
def test_patterns_of_re2(pattern: str, matches: str, does_not: str) -> None:
    assert run(tf.strings.regex_full_match([matches, does_not], pattern)) == [True, False]


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "(.*)*x", "(a?){30}a{30}"])
def test_no_pattern_takes_exponential_time(pattern: str) -> None:
    """Engines that step back need years for each of these."""
    text = "a" * 5000 + "b"
    assert run(tf.strings.regex_full_match([text], pattern)) == [False]
    replaced = run(tf.strings.regex_replace([text], pattern, ""))
    assert replaced[0][-1:] == b"b"


@pytest.mark.parametrize(
    "pattern",
    [
        "(?=a)", "(?!a)", "(?<=a)b", "(?<!a)b", r"(a)\1", "a++", "(a", "a)", "[a", "a\\", r"\p{Xy}",
        r"\y", "*", "a{2,1}", "[[:nothing:]]", "(?x)a", "(?>a)", r"\x{110000}", "(?",
        "[[:", "[b-a]", r"[a-\d]", r"[\b]", "a{1000}{1000}",
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
    assert run(tf.regex_replace(["\u00e9\u4e2d\U0001f600"], "x*", "-")) == [
        "-\u00e9-\u4e2d-\U0001f600-".encode()
    ]
    assert run(tf.regex_replace([b"\xc3\xff\xa9"], "x*", "-")) == [b"-\xc3-\xff-\xa9-"]


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
