"""The exceptions of Headrace: one tree, with TensorFlow's names and codes.

    Exception
    └── OpError                       any failure of a running step
        ├── CancelledError            1   the step, queue or iterator was cancelled or closed
        ├── UnknownError              2   a failure without a better class
        ├── InvalidArgumentError      3   a value that can never be right for the op
        ├── DeadlineExceededError     4   the time limit of the step passed
        ├── NotFoundError             5   no such file, variable or key
        ├── AlreadyExistsError        6   the thing to create exists
        ├── PermissionDeniedError     7   known caller, not allowed
        ├── UnauthenticatedError     16   unknown caller
        ├── ResourceExhaustedError    8   out of memory, disk, quota
        ├── FailedPreconditionError   9   right call, wrong state (uninitialised variable)
        ├── AbortedError             10   lost a race; trying again may work
        ├── OutOfRangeError          11   the end of the input
        ├── UnimplementedError       12   not supported here
        ├── InternalError            13   an invariant of Headrace broke: a bug
        ├── UnavailableError         14   a task is gone for now; retry
        └── DataLossError            15   a file is torn or corrupt

Errors found while a graph is built are Python's own ValueError, TypeError and KeyError.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

OK = 0
CANCELLED = 1
UNKNOWN = 2
INVALID_ARGUMENT = 3
DEADLINE_EXCEEDED = 4
NOT_FOUND = 5
ALREADY_EXISTS = 6
PERMISSION_DENIED = 7
RESOURCE_EXHAUSTED = 8
FAILED_PRECONDITION = 9
ABORTED = 10
OUT_OF_RANGE = 11
UNIMPLEMENTED = 12
INTERNAL = 13
UNAVAILABLE = 14
DATA_LOSS = 15
UNAUTHENTICATED = 16


class SiteSummary(NamedTuple):
    """The line of the user's program that made an operation, with its text.

    >>> import pickle
    >>> error = tf.errors.InvalidArgumentError(None, tf.constant(1).op, "no")
    >>> site = pickle.loads(pickle.dumps(error)).op.site
    >>> site.function
    '<module>'
    """

    filename: str
    lineno: int
    function: str
    line: str


class OpSummary(NamedTuple):
    """What an error keeps of its operation when it is pickled or copied.

    An operation holds its whole graph, which neither crosses a process border nor should be kept
    alive by an error; these fields are what the message needs.

    >>> import pickle
    >>> error = tf.errors.InvalidArgumentError(None, tf.constant(1, name="one").op, "no")
    >>> op = pickle.loads(pickle.dumps(error)).op
    >>> op.name, op.type
    ('one', 'Const')
    """

    name: str
    type: str
    device: str
    site: SiteSummary | None

    @classmethod
    def of(cls, op: Any) -> OpSummary:
        """Takes name, type, device and site from anything that has them; absent ones are empty."""
        site = getattr(op, "site", None)
        if site is not None:
            # The text is read now: where the error arrives, the source file may not exist.
            site = SiteSummary(site.filename, site.lineno, site.function, site.line)
        return cls(
            str(getattr(op, "name", "")),
            str(getattr(op, "type", "")),
            str(getattr(op, "device", None) or ""),
            site,
        )


def _describe(op: Any, device: str) -> str:
    """The lines under a message that say which op failed and where the user made it."""
    name, kind, constraint, site = OpSummary.of(op)
    device = device or constraint
    where = f" on device '{device}'" if device else ""
    lines = f"\n  Op: '{name}' (type {kind}){where}"
    if site is not None:
        lines += f'\n  Made by: File "{site.filename}", line {site.lineno}, in {site.function}'
        if site.line:
            lines += f"\n    {site.line.strip()}"
    return lines


class OpError(Exception):
    """A failed operation: the message, a code, and the op that failed where it is known.

    `str(error)` is the message followed by the op, its device and the user's line that made it;
    `error.message` is the message alone. Errors pickle and copy; the copy holds an `OpSummary`
    in place of the operation.

    Attributes:
        device: where the op ran, with its task; empty where it is not known.
        stages: for errors in datasets, lines that say which element of which stage it was.

    >>> try:
    ...     tf.Session().run(tf.check_numerics(1.0 / tf.zeros([]), "not finite", name="check"))
    ... except tf.OpError as error:
    ...     error.op.name, error.error_code == tf.errors.INVALID_ARGUMENT
    ('check', True)
    """

    device = ""
    #: The dataset stages it went through, the innermost first, each with the element's index.
    stages: tuple[str, ...] = ()

    def __init__(self, node_def: Any, op: Any, message: str, error_code: int) -> None:
        super().__init__(message)
        self._node_def = node_def
        self._op = op
        self._message = message
        self._error_code = error_code

    @property
    def message(self) -> str:
        """The message without the lines about the op."""
        return self._message

    @property
    def op(self) -> Any:
        """The operation that failed, or None where the failure belongs to no op of the graph."""
        return self._op

    @property
    def node_def(self) -> Any:
        """The NodeDef of the failed op, or None."""
        if self._node_def is None and self._op is not None:
            return getattr(self._op, "node_def", None)
        return self._node_def

    @property
    def error_code(self) -> int:
        """The code of this class of error, one of the constants of this module."""
        return self._error_code

    def __str__(self) -> str:
        if self._op is None:
            return self._message + "".join(self.stages)
        return self._message + _describe(self._op, self.device) + "".join(self.stages)

    def add_stage(self, op: Any, index: int, order: str = "") -> None:
        """Tell that it happened at element ``index`` (from 0) of the dataset that ``op`` makes.

        An error without an operation gets this one. ``order`` says of what order the index is.
        """
        if self._op is None:
            self._op = op
        name, kind, _, site = OpSummary.of(op)
        text = f"\n  At element {index}{order} of dataset stage '{name}' (type {kind})"
        if site is not None:
            text += f', made by: File "{site.filename}", line {site.lineno}, in {site.function}'
            if site.line and op is not self._op:
                text += f"\n    {site.line.strip()}"
        self.stages = (*self.stages, text)

    def __reduce__(self) -> tuple[Callable[..., OpError], tuple[Any, ...], dict[str, Any]]:
        own = ("_node_def", "_op", "_message", "_error_code")
        extra = {key: value for key, value in self.__dict__.items() if key not in own}
        summary = None if self._op is None else OpSummary.of(self._op)
        args = (type(self), self._node_def, summary, self._message, self._error_code)
        return _rebuild, args, extra


def _rebuild(cls: type[OpError], node_def: Any, op: Any, message: str, code: int) -> OpError:
    # A subclass may have another signature, so only the base constructor is called.
    error = cls.__new__(cls, message)
    OpError.__init__(error, node_def, op, message, code)
    return error


class CancelledError(OpError):
    """The step was cancelled, or its queue, iterator or session was closed.

    >>> q = tf.FIFOQueue(1, tf.float32, name="input")
    >>> with tf.Session() as sess:
    ...     sess.run(q.close(cancel_pending_enqueues=True))
    ...     try:
    ...         sess.run(q.enqueue(1.0))
    ...     except tf.errors.CancelledError as error:
    ...         print(error.message)  # doctest: +ELLIPSIS
    FIFOQueue '..._input' is closed.
    """

    def __init__(self, node_def: Any = None, op: Any = None, message: str = "") -> None:
        super().__init__(node_def, op, message, CANCELLED)


class UnknownError(OpError):
    """A failure that no other class describes, such as an exception inside a Python function.

    >>> def broken():
    ...     raise RuntimeError("no")
    >>> try:
    ...     tf.Session().run(tf.py_func(broken, [], tf.float32))
    ... except tf.errors.UnknownError as error:
    ...     print(error.message.splitlines()[0])
    RuntimeError: no
    """

    def __init__(
        self, node_def: Any = None, op: Any = None, message: str = "", error_code: int = UNKNOWN
    ) -> None:
        super().__init__(node_def, op, message, error_code)


class InvalidArgumentError(OpError):
    """An op got a value that it can never accept, whatever the state of the system.

    >>> x = tf.placeholder(tf.float32)
    >>> try:
    ...     tf.Session().run(tf.reshape(x, [2, 2]), {x: [1.0, 2.0, 3.0]})
    ... except tf.errors.InvalidArgumentError as error:
    ...     print(error.message.split(" (inputs")[0])
    Cannot reshape a tensor with 3 elements to shape [2,2] (4 elements)
    """

    def __init__(self, node_def: Any = None, op: Any = None, message: str = "") -> None:
        super().__init__(node_def, op, message, INVALID_ARGUMENT)


class DeadlineExceededError(OpError):
    """The time limit of the step passed before it finished.

    >>> item = tf.FIFOQueue(1, tf.float32).dequeue()
    >>> try:
    ...     tf.Session().run(item, options=tf.RunOptions(timeout_in_ms=10))
    ... except tf.errors.DeadlineExceededError as error:
    ...     error.error_code == tf.errors.DEADLINE_EXCEEDED
    True
    """

    def __init__(self, node_def: Any = None, op: Any = None, message: str = "") -> None:
        super().__init__(node_def, op, message, DEADLINE_EXCEEDED)


class NotFoundError(OpError):
    """A file, variable, key or device does not exist.

    >>> try:
    ...     tf.gfile.Remove("none.txt")
    ... except tf.errors.NotFoundError as error:
    ...     print(error.message)
    none.txt; No such file or directory
    """

    def __init__(self, node_def: Any = None, op: Any = None, message: str = "") -> None:
        super().__init__(node_def, op, message, NOT_FOUND)


class AlreadyExistsError(OpError):
    """The file or resource to create exists already.

    >>> tf.gfile.MakeDirs("old")
    >>> tf.gfile.MakeDirs("new")
    >>> try:
    ...     tf.gfile.Rename("old", "new")
    ... except tf.errors.AlreadyExistsError as error:
    ...     print(error.message)
    file already exists: new
    """

    def __init__(self, node_def: Any = None, op: Any = None, message: str = "") -> None:
        super().__init__(node_def, op, message, ALREADY_EXISTS)


class PermissionDeniedError(OpError):
    """The caller is known but may not do this.

    >>> try:
    ...     tf.gfile.GFile("log.txt", "w").read()
    ... except tf.errors.PermissionDeniedError as error:
    ...     print(error.message)
    File isn't open for reading: log.txt
    """

    def __init__(self, node_def: Any = None, op: Any = None, message: str = "") -> None:
        super().__init__(node_def, op, message, PERMISSION_DENIED)


class UnauthenticatedError(OpError):
    """The caller did not prove who it is.

    >>> error = tf.errors.UnauthenticatedError(None, None, "the certificate has expired")
    >>> error.error_code == tf.errors.UNAUTHENTICATED
    True
    """

    def __init__(self, node_def: Any = None, op: Any = None, message: str = "") -> None:
        super().__init__(node_def, op, message, UNAUTHENTICATED)


class ResourceExhaustedError(OpError):
    """Memory, disk, file handles or a quota ran out.

    >>> area = tf.contrib.staging.StagingArea([tf.float32], memory_limit=1)
    >>> try:
    ...     tf.Session().run(area.put([tf.zeros([1000])]))
    ... except tf.errors.ResourceExhaustedError as error:
    ...     error.op.type
    'Stage'
    """

    def __init__(self, node_def: Any = None, op: Any = None, message: str = "") -> None:
        super().__init__(node_def, op, message, RESOURCE_EXHAUSTED)


class FailedPreconditionError(OpError):
    """The system is not in the state the op needs: the variable is not initialised.

    >>> v = tf.get_variable("v", [2])
    >>> try:
    ...     tf.Session().run(v)
    ... except tf.errors.FailedPreconditionError as error:
    ...     print(error.message.split(". ")[0])
    Attempting to use uninitialized value v
    """

    def __init__(self, node_def: Any = None, op: Any = None, message: str = "") -> None:
        super().__init__(node_def, op, message, FAILED_PRECONDITION)


class AbortedError(OpError):
    """The op lost to a concurrent one; the same step may succeed when run again.

    >>> def step(tries=[]):
    ...     tries.append(1)
    ...     if len(tries) == 1:
    ...         raise tf.errors.AbortedError(None, None, "a task was restarted")
    ...     return "done"
    >>> try:
    ...     step()
    ... except tf.errors.AbortedError:
    ...     step()  # `tf.train.MonitoredSession` does so, with a new session
    'done'
    """

    def __init__(self, node_def: Any = None, op: Any = None, message: str = "") -> None:
        super().__init__(node_def, op, message, ABORTED)


class OutOfRangeError(OpError):
    """The end of the input: an exhausted dataset or a closed queue.

    >>> q = tf.FIFOQueue(1, tf.float32)
    >>> with tf.Session() as sess:
    ...     sess.run(q.close())
    ...     try:
    ...         sess.run(q.dequeue())
    ...     except tf.errors.OutOfRangeError:
    ...         print("no more input")
    no more input
    """

    def __init__(self, node_def: Any = None, op: Any = None, message: str = "") -> None:
        super().__init__(node_def, op, message, OUT_OF_RANGE)


class UnimplementedError(OpError):
    """The op has no kernel for these types, this device or this mode.

    >>> reader = tf.LMDBReader()
    >>> try:
    ...     tf.Session().run(reader.serialize_state())
    ... except tf.errors.UnimplementedError as error:
    ...     print(error.message)
    Reader SerializeState
    """

    def __init__(self, node_def: Any = None, op: Any = None, message: str = "") -> None:
        super().__init__(node_def, op, message, UNIMPLEMENTED)


class InternalError(OpError):
    """An invariant of Headrace does not hold: a bug, worth a report.

    >>> error = tf.errors.InternalError(None, None, "a value that nobody made")
    >>> isinstance(error, tf.OpError), error.error_code == tf.errors.INTERNAL
    (True, True)
    """

    def __init__(self, node_def: Any = None, op: Any = None, message: str = "") -> None:
        super().__init__(node_def, op, message, INTERNAL)


class UnavailableError(OpError):
    """A task cannot be reached now; running the step again later may succeed.

    >>> error = tf.errors.UnavailableError(None, None, "ps0:2222 does not answer")
    >>> error.error_code == tf.errors.UNAVAILABLE, error.message
    (True, 'ps0:2222 does not answer')
    """

    def __init__(self, node_def: Any = None, op: Any = None, message: str = "") -> None:
        super().__init__(node_def, op, message, UNAVAILABLE)


class DataLossError(OpError):
    """A file or message is cut off or corrupt and cannot be read.

    >>> with tf.gfile.GFile("broken", "wb") as file:
    ...     file.write(b"no record")
    >>> try:
    ...     list(tf.python_io.tf_record_iterator("broken"))
    ... except tf.errors.DataLossError as error:
    ...     print(error.message)
    broken: truncated record at 0
    """

    def __init__(self, node_def: Any = None, op: Any = None, message: str = "") -> None:
        super().__init__(node_def, op, message, DATA_LOSS)


_CODE_TO_CLASS: dict[int, Callable[..., OpError]] = {
    CANCELLED: CancelledError,
    UNKNOWN: UnknownError,
    INVALID_ARGUMENT: InvalidArgumentError,
    DEADLINE_EXCEEDED: DeadlineExceededError,
    NOT_FOUND: NotFoundError,
    ALREADY_EXISTS: AlreadyExistsError,
    PERMISSION_DENIED: PermissionDeniedError,
    RESOURCE_EXHAUSTED: ResourceExhaustedError,
    FAILED_PRECONDITION: FailedPreconditionError,
    ABORTED: AbortedError,
    OUT_OF_RANGE: OutOfRangeError,
    UNIMPLEMENTED: UnimplementedError,
    INTERNAL: InternalError,
    UNAVAILABLE: UnavailableError,
    DATA_LOSS: DataLossError,
    UNAUTHENTICATED: UnauthenticatedError,
}
_CLASS_TO_CODE = {cls: code for code, cls in _CODE_TO_CLASS.items()}


def exception_type_from_error_code(error_code: int) -> Callable[..., OpError]:
    """The error class of a code, to be called with (node_def, op, message).

    Raises:
      KeyError: `error_code` is 0 (OK) or no code at all.
    """
    return _CODE_TO_CLASS[error_code]


def error_code_from_exception_type(cls: Callable[..., OpError]) -> int:
    """The code of an error class of this module.

    Raises:
      KeyError: `cls` is not one of the classes of the tree above.
    """
    return _CLASS_TO_CODE[cls]


def suggest(name: str, candidates: Iterable[str]) -> str:
    """Returns " Did you mean 'x'?" for the candidate nearest to `name`, or "" when none is near.

    Case is ignored in the search, so that a name in the wrong case is always found. Words that both
    names have say nothing: what distinguishes them must be alike, too.

    >>> suggest("SyncReplicasOptimizer", ["FtrlOptimizer", "AdamOptimizer"])
    ''
    >>> suggest("AdamaxOptimizer", ["FtrlOptimizer", "AdamOptimizer"])
    " Did you mean 'AdamOptimizer'?"
    """
    by_folded: dict[str, str] = {}
    for candidate in candidates:
        by_folded.setdefault(candidate.casefold(), candidate)
    near = difflib.get_close_matches(name.casefold(), by_folded, n=_MOST_NEAR)
    for folded in near:
        if _distinguished_alike(name, by_folded[folded]):
            return f" Did you mean '{by_folded[folded]}'?"
    return ""


#: Of so many near names the first is taken that is near in what distinguishes it as well.
_MOST_NEAR = 20
#: Similarity of two names (difflib) from which on they are alike; difflib's own default.
_ALIKE = 0.6


def _distinguished_alike(name: str, other: str) -> bool:
    """Whether two names are alike without the words that both have."""
    here, there = _words(name), _words(other)
    shared = set(here) & set(there)
    own = "".join(word for word in here if word not in shared)
    others = "".join(word for word in there if word not in shared)
    if not own or not others:
        return True
    return difflib.SequenceMatcher(None, own, others).ratio() >= _ALIKE


def _words(name: str) -> list[str]:
    """The words of a name in camel case, with underscores, or of a path; in lower case."""
    return [w.casefold() for w in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[^\W_A-Z]+", name)]
