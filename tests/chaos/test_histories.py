"""Histories that objects really had, and histories that they cannot have had."""

import math
import random
import time

from hypothesis import given
from hypothesis import strategies as st

from headrace.chaos.histories import (
    ClientCall,
    counter_complaint,
    counter_step,
    linearisable,
    register_step,
)


@st.composite
def drawn(draw, kinds, most=7):
    """Any history of few calls: begins and ends at few times, some without an end."""
    calls = []
    for _ in range(draw(st.integers(0, most))):
        kind = draw(st.sampled_from(kinds))
        began = draw(st.integers(0, 12))
        ended = began + draw(st.integers(0, 6))
        if kind != "read" and draw(st.integers(0, 3)) == 0:
            ended = math.inf
        calls.append(
            ClientCall(began, ended, kind, draw(st.integers(0, 3)) if kind != "add" else 0)
        )
    return calls


def happened(seed, clients, each, kinds, loses=None):
    """The history of an object that did one call after the other, and when the last call ended.

    ``loses``: the number of an acknowledged addition that it forgets.
    """
    rng = random.Random(seed)
    calls, moments = [], []
    for _ in range(clients):
        now = rng.uniform(0, 1)
        for _ in range(each):
            began, moment, ended = sorted(now + rng.uniform(0, 2) for _ in range(3))
            moments.append((moment, began, ended, rng.choice(kinds)))
            now = ended
    value, count = 0, 0
    for _, began, ended, kind in sorted(moments):
        if kind == "add":
            count += 1
            if rng.random() < 0.1 and count != loses:  # nobody is told; it may have been done
                ended, does = math.inf, rng.random() < 0.5
            else:
                does = count != loses
            value += does
            calls.append(ClientCall(began, ended, "add"))
        elif kind == "write":
            value = rng.randrange(5)
            calls.append(ClientCall(began, ended, "write", value))
        else:
            calls.append(ClientCall(began, ended, "read", value))
    rng.shuffle(calls)
    return calls, max(ended for _, _, ended, _ in moments)


@given(drawn(["add", "read"]), st.integers(0, 1))
def test_both_ways_agree_about_counters(calls, start):
    assert (counter_complaint(calls, start) == "") == linearisable(calls, counter_step, start)


@given(seed=st.integers(0, 10**6), clients=st.integers(1, 4), each=st.integers(1, 5))
def test_what_has_happened_can_have_happened(seed, clients, each):
    calls, _ = happened(seed, clients, each, ["add", "read"])
    assert counter_complaint(calls) == ""
    calls, _ = happened(seed, clients, each, ["write", "read"])
    assert linearisable(calls, register_step, 0)


@given(seed=st.integers(0, 10**6), loses=st.integers(1, 3))
def test_a_counter_that_forgets_is_found_out(seed, loses):
    calls, last = happened(seed, 3, 20, ["add", "read"], loses)
    acknowledged = sum(c.kind == "add" and c.ended < math.inf for c in calls)
    # A read after all: with what it forgot missing, and nothing unknown that could replace it.
    calls = [c for c in calls if c.kind != "add" or c.ended < math.inf]
    calls = [c for c in calls if c.kind == "add"] + [
        ClientCall(last + 9, last + 10, "read", acknowledged - 1)
    ]
    assert "had ended that it does not have" in counter_complaint(calls)


def test_registers():
    write, other = ClientCall(0, 10, "write", 1), ClientCall(0, 10, "write", 2)
    reads = [ClientCall(1, 2, "read", 1), ClientCall(3, 4, "read", 2), ClientCall(5, 6, "read", 1)]
    assert linearisable([write, other, *reads[:2]], register_step, 0)
    assert not linearisable([write, other, *reads], register_step, 0)
    assert linearisable(
        [ClientCall(0, math.inf, "write", 1), ClientCall(99, 100, "read", 0)], register_step, 0
    )


def test_complaints():
    adds = [ClientCall(0, 1, "add"), ClientCall(0, 9, "add")]
    backwards = [ClientCall(2, 3, "read", 2), ClientCall(4, 5, "read", 1)]
    assert (
        counter_complaint([*adds, *backwards])
        == "2 was read at 2 to 3, and later 1 was read at 4 to 5"
    )
    assert counter_complaint([ClientCall(2, 3, "read", 2)], start=3) == (
        "2 was read at 2 to 3, although the counter began with 3"
    )


def test_a_long_history_is_checked_at_once():
    calls, _ = happened(1, 8, 5000, ["add", "read"])
    began = time.process_time()
    assert counter_complaint(calls) == ""
    assert time.process_time() - began < 5
