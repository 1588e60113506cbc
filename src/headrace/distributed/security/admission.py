"""Who may call the control plane: proved before a byte of a call's body is read.

A call carries, in its metadata, a *ticket*, a number, the size and SHA-256 of its body, and a seal
over all of that and the method, made with the cluster's token. The server checks the seal, then
takes the body, and compares it with what was sealed, then parses it. So

- an observed call is of no use for another method, body or server, and not a second time;
- nobody who does not know the token makes the server read or keep anything of his.

Tickets are the server's own challenges, not times: the clocks of hosts may differ by minutes, and
a window that allows for that allows for repeats, too. A server recognises its tickets by a code
that only it can make, so it keeps nothing for those who ask for one. What it keeps, for a caller
that has used a ticket well, is which of the last numbers came with it.

Where the cluster has no token the seals still are checksums of what travels in clear.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import struct
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from headrace.distributed.security.credentials import Security
from headrace.errors import OpError, PermissionDeniedError

__all__ = ["CALL", "SEAL", "TICKET", "Admitted", "Caller", "Gate", "Stale"]

#: Keys of metadata; "-bin" says that gRPC is to carry any bytes.
TICKET: Final = "headrace-ticket-bin"
CALL: Final = "headrace-call-bin"
SEAL: Final = "headrace-seal-bin"

_ROLE_CALL: Final = b"control call"
_ROLE_ANSWER: Final = b"control answer"
_TICKET: Final = struct.Struct(">16sQ32s")  # random, milliseconds of issue, the server's own code
_CALL: Final = struct.Struct(">QQ32s")  # number, bytes of the body, SHA-256 of the body

#: A ticket is good for so many seconds.
_TICKET_SECONDS: Final = 300.0
#: Calls of one caller may overtake each other by so many places.
_WINDOW: Final = 1024
#: Tickets in use; beyond, the oldest are forgotten, and all that are as old are refused.
_MOST_TICKETS: Final = 4096


class Stale(Exception):
    """The call has no ticket that still counts: come again with `ticket`."""

    def __init__(self, ticket: bytes) -> None:
        super().__init__("the call needs another ticket")
        self.ticket = ticket


class Admitted(NamedTuple):
    """A call that was proved to come from a member of the cluster."""

    method: bytes
    ticket: bytes
    number: int
    nbytes: int
    digest: bytes

    def parts(self) -> tuple[bytes, ...]:
        """What is sealed."""
        return self.method, self.ticket, _CALL.pack(self.number, self.nbytes, self.digest)

    def fits(self, body: bytes) -> bool:
        """Whether this is the body that the caller meant."""
        return len(body) == self.nbytes and hashlib.sha256(body).digest() == self.digest


class _Numbers:
    """Which numbers came with a ticket: the highest, and those shortly below it as bits."""

    __slots__ = ("_highest", "_seen")

    def __init__(self) -> None:
        self._highest = -1
        self._seen = 0

    def take(self, number: int) -> bool:
        """Whether the number is new."""
        if number > self._highest:
            ahead = min(number - self._highest, _WINDOW)
            self._seen = (self._seen << ahead | 1) & ((1 << _WINDOW) - 1)
            self._highest = number
            return True
        back = self._highest - number
        if back >= _WINDOW or self._seen >> back & 1:
            return False
        self._seen |= 1 << back
        return True


class Gate:
    """The server's side: makes tickets, and lets calls in.

    Args:
        clock: seconds, monotonic.
    """

    def __init__(self, security: Security, clock: Callable[[], float] = time.monotonic) -> None:
        self._security = security
        self._clock = clock
        self._secret = os.urandom(32)
        self._lock = threading.Lock()
        self._used: OrderedDict[bytes, _Numbers] = OrderedDict()
        self._too_old = 0  # tickets up to this time of issue are refused

    def ticket(self) -> bytes:
        """A fresh one."""
        head = os.urandom(16) + self._now().to_bytes(8, "big")
        return head + self._code(head)

    def admit(self, method: str, metadata: Mapping[str, bytes]) -> Admitted:
        """Check a call, and remember it.

        Raises:
            Stale: if it has no ticket of ours, or one that is too old, or came before.
            PermissionDeniedError: if the caller has another token.
        """
        ticket, call = metadata.get(TICKET, b""), metadata.get(CALL, b"")
        issued = self._issued(ticket)
        if issued is None or len(call) != _CALL.size:
            raise Stale(self.ticket())
        made = Admitted(method.encode(), ticket, *_CALL.unpack(call))
        seal = metadata.get(SEAL, b"")
        if not self._security.check_seal(seal, _ROLE_CALL, *made.parts()):
            raise _other_token()
        with self._lock:
            if not self._take(ticket, issued, made.number):
                raise Stale(self.ticket())
        return made

    def seal(self, call: Admitted, answer: bytes) -> bytes:
        """What tells the caller that an answer is this server's, to this call, and whole."""
        return self._security.seal(_ROLE_ANSWER, *call.parts(), hashlib.sha256(answer).digest())

    @property
    def remembered(self) -> int:
        """For how many tickets something is kept."""
        return len(self._used)

    def _now(self) -> int:
        return int(self._clock() * 1000)

    def _code(self, head: bytes) -> bytes:
        return hmac.new(self._secret, head, hashlib.sha256).digest()

    def _issued(self, ticket: bytes) -> int | None:
        """When the ticket was made; None if it is none of ours, or too old."""
        if len(ticket) != _TICKET.size:
            return None
        _, issued, code = _TICKET.unpack(ticket)
        if not hmac.compare_digest(code, self._code(ticket[:24])):
            return None
        age = self._now() - issued
        return int(issued) if age <= _TICKET_SECONDS * 1000 else None

    def _take(self, ticket: bytes, issued: int, number: int) -> bool:
        """Whether the number is new. Under the lock."""
        numbers = self._used.get(ticket)
        if numbers is None:
            if issued <= self._too_old:
                return False
            self._forget_old()
            numbers = self._used[ticket] = _Numbers()
        return numbers.take(number)

    def _forget_old(self) -> None:
        """Make room for one more ticket: of a forgotten one it is not known what came with it."""
        now = self._now()
        for ticket in [t for t in self._used if now - _time_of(t) > _TICKET_SECONDS * 1000]:
            del self._used[ticket]
        while len(self._used) >= _MOST_TICKETS:
            oldest = min(self._used, key=_time_of)
            self._too_old = max(self._too_old, _time_of(oldest))
            del self._used[oldest]


def _time_of(ticket: bytes) -> int:
    return int(_TICKET.unpack(ticket)[1])


class Caller:
    """The client's side: one server's ticket, and the numbers that were used with it."""

    def __init__(self, security: Security) -> None:
        self._security = security
        self._lock = threading.Lock()
        self._ticket = b""
        self._number = 0

    @property
    def has_ticket(self) -> bool:
        """Whether there is one; the server may find it too old all the same."""
        return bool(self._ticket)

    def renew(self, ticket: bytes) -> None:
        """The server has given a ticket."""
        with self._lock:
            self._ticket, self._number = ticket, 0

    def call(self, method: str, body: bytes) -> Admitted:
        """The next call."""
        with self._lock:
            number, ticket = self._number, self._ticket
            self._number += 1
        return Admitted(method.encode(), ticket, number, len(body), hashlib.sha256(body).digest())

    def metadata(self, call: Admitted) -> tuple[tuple[str, bytes], ...]:
        """What proves the call to the server."""
        seal = self._security.seal(_ROLE_CALL, *call.parts())
        return (TICKET, call.ticket), (CALL, call.parts()[2]), (SEAL, seal)

    def is_answer(self, call: Admitted, answer: bytes, seal: bytes) -> bool:
        """Whether this is the server's answer to the call, as it was sent."""
        digest = hashlib.sha256(answer).digest()
        return self._security.check_seal(seal, _ROLE_ANSWER, *call.parts(), digest)


def _other_token() -> OpError:
    return PermissionDeniedError(
        None,
        None,
        "The cluster token of the caller is not that of this cluster: set "
        "HEADRACE_CLUSTER_TOKEN or HEADRACE_CLUSTER_TOKEN_FILE as the servers have it.",
    )
