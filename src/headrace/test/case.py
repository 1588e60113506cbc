"""`tf.test.TestCase`: sessions, threads and assertions for tests of graphs."""

from __future__ import annotations

import os
import random
import re
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from absl.testing import absltest
from google.protobuf import text_format

from headrace.errors import OpError
from headrace.graph.devices import canonical_name
from headrace.graph.graph import default_graph_stack, default_session_stack, get_default_graph
from headrace.graph.random_seed import DEFAULT_GRAPH_SEED
from headrace.session.session import Session
from headrace.test.arrays import ArrayAssertions
from headrace.test.protos import assertProtoEqual

__all__ = ["TensorFlowTestCase", "TestCase"]


class _CheckedThread:
    """A thread whose failure fails the test."""

    def __init__(
        self, testcase: TestCase, target: Callable[..., Any], args: Any, kwargs: Any
    ) -> None:
        self._testcase = testcase
        self._call: Callable[[], Any] = lambda: target(*(args or ()), **(kwargs or {}))
        self._thread = threading.Thread(target=self._keep_failure, daemon=True)
        self._exception: Exception | None = None
        self._joined = False

    def _keep_failure(self) -> None:
        try:
            self._call()
        except Exception as error:  # it is raised again where the thread is joined
            self._exception = error

    def start(self) -> None:
        """Start the thread, once."""
        self._thread.start()

    def join(self) -> None:
        """Wait for the thread; the test fails if the thread did."""
        self._joined = True
        self._thread.join()
        if self._exception is not None:
            self._testcase.fail(f"Error in checkedThread: {self._exception}")

    def is_alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def check_termination(self) -> None:
        """Fail the test unless the thread was joined."""
        if not self._joined:
            self._testcase.fail("A checked thread was not joined.")
        if self.is_alive():
            raise RuntimeError("A checked thread is still running at the end of the test.")


class _CapturedWrites:
    """What a stream was given."""

    def __init__(self, path: str) -> None:
        self._path = path

    def contents(self) -> str:
        """All of it so far."""
        return Path(self._path).read_text()


class TestCase(ArrayAssertions, absltest.TestCase):
    """A test case with an empty default graph, fixed seeds, sessions and array assertions.

    >>> class SquareTest(tf.test.TestCase):
    ...     def test_square(self):
    ...         with self.session():
    ...             self.assertAllClose(tf.square([1.0, 3.0]).eval(), [1.0, 9.0])
    >>> result = SquareTest("test_square").run()
    >>> result.testsRun, result.wasSuccessful()
    (1, True)
    """

    __test__ = False  # pytest collects subclasses only

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__test__" not in cls.__dict__:
            cls.__test__ = True

    def __init__(self, methodName: str = "runTest") -> None:
        super().__init__(methodName)
        self._threads: list[_CheckedThread] = []
        self._tempdir: str | None = None
        self._cached_session: Session | None = None
        self._cached_arguments: tuple[Any, ...] = ()

    def setUp(self) -> None:
        """Empty the default graph and seed every generator."""
        super().setUp()
        self._close_cached_session()
        random.seed(DEFAULT_GRAPH_SEED)
        np.random.seed(DEFAULT_GRAPH_SEED)
        # A test that failed inside `with graph.as_default():` may have left its graph there.
        default_graph_stack.items.clear()
        default_session_stack.items.clear()
        default_graph_stack.reset()
        get_default_graph().seed = DEFAULT_GRAPH_SEED
        if self.id().endswith(".test_session"):
            self.skipTest("Not a test.")

    def tearDown(self) -> None:
        """Check that the test joined its threads, and close its session."""
        for thread in self._threads:
            thread.check_termination()
        self._close_cached_session()
        super().tearDown()

    def _close_cached_session(self) -> None:
        if self._cached_session is not None:
            self._cached_session.close()
            self._cached_session = None

    _ClearCachedSession = _close_cached_session

    def get_temp_dir(self) -> str:
        """A folder for the files of this test."""
        from headrace.test.running import get_temp_dir

        if self._tempdir is None:
            self._tempdir = tempfile.mkdtemp(dir=get_temp_dir())
        return self._tempdir

    @contextmanager
    def captureWritesToStream(self, stream: Any) -> Iterator[_CapturedWrites]:
        """Keep what is written to the file behind a stream, ``sys.stderr`` say."""
        stream.flush()
        fd = stream.fileno()
        handle, path = tempfile.mkstemp(dir=self.get_temp_dir())
        saved = os.dup(fd)
        os.dup2(handle, fd)
        try:
            yield _CapturedWrites(path)
        finally:
            stream.flush()
            os.dup2(saved, fd)
            os.close(saved)
            os.close(handle)

    # -- sessions -------------------------------------------------------------------------------

    def evaluate(self, tensors: Any) -> Any:
        """The values of tensors, in the default session or that of the test."""
        session = default_session_stack.top()
        if session is not None:
            return session.run(tensors)
        with self.cached_session() as own:
            return own.run(tensors)

    @contextmanager
    def session(
        self,
        graph: Any = None,
        config: Any = None,
        use_gpu: bool = False,
        force_gpu: bool = False,
    ) -> Iterator[Any]:
        """A new session as the default one, with its graph.

        Args:
            graph: what it runs; by default the default graph.
            config: a ConfigProto.
            use_gpu: let operations go to a GPU; they are put on the CPU otherwise.
            force_gpu: put all operations on a GPU.
        """
        with (
            Session(graph=graph, config=_config(config, force_gpu)) as session,
            self._constrained(session, use_gpu, force_gpu),
        ):
            yield session

    @contextmanager
    def cached_session(
        self,
        graph: Any = None,
        config: Any = None,
        use_gpu: bool = False,
        force_gpu: bool = False,
    ) -> Iterator[Any]:
        """The session of this test, the same at each call; see `session`.

        Raises:
            ValueError: if it was made with other arguments.
        """
        arguments = (graph, config, force_gpu)
        if self._cached_session is not None and any(
            old is not new for old, new in zip(self._cached_arguments, arguments, strict=True)
        ):
            raise ValueError(
                "The graph, config or force_gpu used to get the cached session is different than "
                "the one that was used to create the session. Maybe create a new session with "
                "self.session()"
            )
        session = self._get_cached_session(graph, config, force_gpu)
        with self._constrained(session, use_gpu, force_gpu):
            yield session

    @contextmanager
    def test_session(
        self,
        graph: Any = None,
        config: Any = None,
        use_gpu: bool = False,
        force_gpu: bool = False,
    ) -> Iterator[Any]:
        """The session of this test, or a new one for another graph (`cached_session`)."""
        if graph is not None:
            with self.session(graph, config, use_gpu, force_gpu) as session:
                yield session
            return
        session = self._get_cached_session(graph, config, force_gpu)
        with self._constrained(session, use_gpu, force_gpu):
            yield session

    def _get_cached_session(
        self, graph: Any = None, config: Any = None, force_gpu: bool = False
    ) -> Session:
        if self._cached_session is None:
            self._cached_session = Session(graph=graph, config=_config(config, force_gpu))
            self._cached_arguments = (graph, config, force_gpu)
        return self._cached_session

    @contextmanager
    def _constrained(self, session: Any, use_gpu: bool, force_gpu: bool) -> Iterator[None]:
        from headrace.test.devices import gpu_device_name

        device = None if use_gpu else "/device:CPU:0"
        if force_gpu:
            device = gpu_device_name() or "/device:GPU:0"
        with session.graph.as_default(), session.as_default(), session.graph.device(device):
            yield

    def checkedThread(
        self, target: Callable[..., Any], args: Any = None, kwargs: Any = None
    ) -> _CheckedThread:
        """A thread that the test has to start and join, and that fails it by failing."""
        thread = _CheckedThread(self, target, args, kwargs)
        self._threads.append(thread)
        return thread

    # -- assertions -----------------------------------------------------------------------------

    def assertProtoEquals(
        self, expected_message_maybe_ascii: Any, message: Any, msg: str | None = None
    ) -> None:
        """Two messages are equal; the expected one may be in text form.

        Raises:
            TypeError: if the expected one is neither a text nor such a message.
        """
        expected = expected_message_maybe_ascii
        if isinstance(expected, str):
            expected = text_format.Parse(expected, type(message)())
        elif not isinstance(expected, type(message)):
            raise TypeError(
                f"Can't compare protos of type {type(expected)} and {type(message)}. {msg or ''}"
            )
        assertProtoEqual(self, expected, message, msg=msg)

    def assertProtoEqualsVersion(
        self,
        expected: str,
        actual: Any,
        producer: int | None = None,
        min_consumer: int = 0,
        msg: str | None = None,
    ) -> None:
        """A GraphDef is equal to ``expected`` (in text form) with the versions of today."""
        from headrace.graph.versions import GRAPH_DEF_VERSION

        number = GRAPH_DEF_VERSION if producer is None else producer
        wanted = text_format.Parse(expected, type(actual)())
        wanted.versions.producer, wanted.versions.min_consumer = number, min_consumer
        self.assertProtoEquals(wanted, actual, msg=msg)

    def assertStartsWith(self, actual: Any, expected_start: Any, msg: str | None = None) -> None:
        """A string begins with another."""
        if not actual.startswith(expected_start):
            note = f" : {msg!r}" if msg else ""
            self.fail(f"{actual!r} does not start with {expected_start!r}{note}")

    @contextmanager
    def assertRaisesWithPredicateMatch(  # type: ignore[override]
        self, exception_type: type[BaseException], expected_err_re_or_predicate: Any
    ) -> Iterator[None]:
        """The block raises an exception whose text fits.

        Args:
            exception_type: its class.
            expected_err_re_or_predicate: a regular expression that is searched for in the text
                (with the names of the operations that an `OpError` comes from), or a function of
                the exception.
        """
        predicate = expected_err_re_or_predicate
        if not callable(predicate):

            def predicate(error: BaseException) -> bool:
                return re.search(expected_err_re_or_predicate, _error_text(error)) is not None

        try:
            yield
        except Exception as error:
            if not isinstance(error, exception_type) or not predicate(error):
                raise AssertionError(f"Exception of type {type(error)}: {error}") from error
            return
        self.fail(f"{exception_type.__name__} not raised")

    def assertRaisesOpError(
        self, expected_err_re_or_predicate: Any
    ) -> AbstractContextManager[None]:
        """The block raises an `OpError` whose text fits; see `assertRaisesWithPredicateMatch`."""
        return self.assertRaisesWithPredicateMatch(OpError, expected_err_re_or_predicate)

    def assertDeviceEqual(self, device1: Any, device2: Any, msg: str | None = None) -> None:
        """Two devices (names or `tf.DeviceSpec`) are the same."""
        first, second = canonical_name(device1), canonical_name(device2)
        self.assertEqual(first, second, f"Devices {first} and {second} are not equal. {msg or ''}")

    # Names that unittest had in Python 2, or has dropped.
    assertItemsEqual = absltest.TestCase.assertCountEqual
    assertRaisesRegexp = absltest.TestCase.assertRaisesRegex
    assertRegexpMatches = absltest.TestCase.assertRegex
    assertNotRegexpMatches = absltest.TestCase.assertNotRegex
    assertEquals = absltest.TestCase.assertEqual
    assertNotEquals = absltest.TestCase.assertNotEqual
    assertAlmostEquals = absltest.TestCase.assertAlmostEqual
    assertNotAlmostEquals = absltest.TestCase.assertNotAlmostEqual
    assert_ = absltest.TestCase.assertTrue


TensorFlowTestCase = TestCase


def _config(config: Any, force_gpu: bool) -> Any:
    """Tests say where operations go, and run where there is no such device."""
    from headrace.graph.proto import ConfigProto

    if config is None:
        return ConfigProto(allow_soft_placement=not force_gpu)
    if force_gpu and config.allow_soft_placement:
        strict = ConfigProto()
        strict.CopyFrom(config)
        strict.allow_soft_placement = False
        return strict
    return config


def _error_text(error: BaseException) -> str:
    if not isinstance(error, OpError):
        return str(error)
    op = error.op
    return error.message + (f"\nCaused by: {op.name}" if op is not None else "")
