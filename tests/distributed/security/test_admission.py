"""Who is let in at the control plane: once, for one method, body and server, while it is fresh."""

from __future__ import annotations

import pytest

from headrace.distributed.security import admission
from headrace.distributed.security.admission import CALL, SEAL, TICKET, Caller, Gate, Stale
from headrace.distributed.security.credentials import Security
from headrace.errors import PermissionDeniedError

OURS = Security(token=b"one")


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def gate(clock):
    return Gate(OURS, clock)


def caller_of(gate, security=OURS):
    caller = Caller(security)
    caller.renew(gate.ticket())
    return caller


def call(caller, method="/s/Status", body=b"body"):
    made = caller.call(method, body)
    return made, dict(caller.metadata(made))


def test_a_call_is_let_in_once(gate):
    caller = caller_of(gate)
    for number in range(3):
        made, metadata = call(caller)
        assert (made.number, made.nbytes) == (number, 4)
        assert gate.admit("/s/Status", metadata) == made
        with pytest.raises(Stale):
            gate.admit("/s/Status", metadata)


def test_an_observed_call_is_of_no_use_for_another_method_body_or_server(gate, clock):
    made, seen = call(caller_of(gate))
    with pytest.raises(PermissionDeniedError, match="HEADRACE_CLUSTER_TOKEN"):
        gate.admit("/s/Shutdown", seen)
    other, _ = call(caller_of(gate), body=b"ours")
    with pytest.raises(PermissionDeniedError):
        gate.admit("/s/Status", {**seen, CALL: other.parts()[2]})
    with pytest.raises(Stale):
        Gate(OURS, clock).admit("/s/Status", seen)
    assert gate.admit("/s/Status", seen) == made  # it was let in nowhere before
    assert made.fits(b"body")
    assert not made.fits(b"ours")
    assert not made.fits(b"body and more")


@pytest.mark.parametrize("key", [TICKET, CALL, SEAL])
def test_every_bit_of_a_proof_counts(gate, key):
    _, seen = call(caller_of(gate))
    for place in range(len(seen[key]) * 8):
        changed = bytearray(seen[key])
        changed[place // 8] ^= 1 << place % 8
        with pytest.raises((Stale, PermissionDeniedError)):
            gate.admit("/s/Status", {**seen, key: bytes(changed)})
    for changed in (b"", seen[key][:-1], seen[key] + b"x"):
        with pytest.raises((Stale, PermissionDeniedError)):
            gate.admit("/s/Status", {**seen, key: changed})
    assert gate.remembered == 0  # nothing is kept of those who prove nothing
    gate.admit("/s/Status", seen)


def test_without_a_ticket_there_is_one_to_have(gate):
    with pytest.raises(Stale) as caught:
        gate.admit("/s/Status", {})
    caller = Caller(OURS)
    caller.renew(caught.value.ticket)
    gate.admit("/s/Status", call(caller)[1])


def test_a_ticket_that_the_caller_chose_is_none(gate):
    caller = Caller(OURS)
    for ticket in (b"", b"x" * 16, b"\0" * 56):
        caller.renew(ticket)
        with pytest.raises(Stale):
            gate.admit("/s/Status", call(caller)[1])


def test_tickets_grow_old_by_the_clock_of_the_server(gate, clock):
    caller = caller_of(gate)
    clock.now += 299.0
    gate.admit("/s/Status", call(caller)[1])
    clock.now += 2.0
    with pytest.raises(Stale) as caught:
        gate.admit("/s/Status", call(caller)[1])
    caller.renew(caught.value.ticket)
    gate.admit("/s/Status", call(caller)[1])
    assert gate.remembered == 1  # the old one is forgotten


def test_another_token_is_refused(gate):
    for security in (Security(token=b"two"), Security()):
        with pytest.raises(PermissionDeniedError, match="not that of this cluster"):
            gate.admit("/s/Status", call(caller_of(gate, security))[1])
    unsecured = Gate(Security())
    with pytest.raises(PermissionDeniedError):
        unsecured.admit("/s/Status", call(caller_of(unsecured))[1])
    unsecured.admit("/s/Status", call(caller_of(unsecured, Security()))[1])


def test_calls_may_overtake_each_other(gate):
    caller = caller_of(gate)
    calls = [call(caller)[1] for _ in range(admission._WINDOW + 10)]
    order = [*range(900, 0, -1), *range(1020, 905, -1), 905, 1030]
    for number in order:
        gate.admit("/s/Status", calls[number])
    for number in order:
        with pytest.raises(Stale):
            gate.admit("/s/Status", calls[number])
    with pytest.raises(Stale):
        gate.admit("/s/Status", calls[0])  # too far behind to know
    gate.admit("/s/Status", calls[1031])


def test_what_is_remembered_has_a_limit_and_what_is_forgotten_is_refused(gate, clock, monkeypatch):
    monkeypatch.setattr(admission, "_MOST_TICKETS", 3)
    seen = []
    for _ in range(10):
        clock.now += 0.01
        seen.append(call(caller_of(gate))[1])
        gate.admit("/s/Status", seen[-1])
        assert gate.remembered <= 3
    for metadata in seen:
        with pytest.raises(Stale):
            gate.admit("/s/Status", metadata)


def test_answers_are_sealed_to_their_calls(gate):
    caller = caller_of(gate)
    first, second = caller.call("/s/Status", b"1"), caller.call("/s/Status", b"2")
    seal = gate.seal(first, b"answer")
    assert caller.is_answer(first, b"answer", seal)
    assert not caller.is_answer(second, b"answer", seal)
    assert not caller.is_answer(first, b"answe", seal)
    assert not caller.is_answer(first, b"answer", b"")
    assert not caller.is_answer(first, b"answer", OURS.seal(b"control call", *first.parts()))
