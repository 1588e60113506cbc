"""The exception tree: TensorFlow's classes and codes, messages, pickling, suggestions."""

import copy
import pickle
from types import SimpleNamespace

import pytest

from headrace import errors

CODES = {
    "CANCELLED": (1, "CancelledError"),
    "UNKNOWN": (2, "UnknownError"),
    "INVALID_ARGUMENT": (3, "InvalidArgumentError"),
    "DEADLINE_EXCEEDED": (4, "DeadlineExceededError"),
    "NOT_FOUND": (5, "NotFoundError"),
    "ALREADY_EXISTS": (6, "AlreadyExistsError"),
    "PERMISSION_DENIED": (7, "PermissionDeniedError"),
    "RESOURCE_EXHAUSTED": (8, "ResourceExhaustedError"),
    "FAILED_PRECONDITION": (9, "FailedPreconditionError"),
    "ABORTED": (10, "AbortedError"),
    "OUT_OF_RANGE": (11, "OutOfRangeError"),
    "UNIMPLEMENTED": (12, "UnimplementedError"),
    "INTERNAL": (13, "InternalError"),
    "UNAVAILABLE": (14, "UnavailableError"),
    "DATA_LOSS": (15, "DataLossError"),
    "UNAUTHENTICATED": (16, "UnauthenticatedError"),
}
SITE = errors.SiteSummary("model.py", 12, "build", "    y = tf.matmul(x, w)\n")


def an_op(device="/device:CPU:0", site=SITE):
    # The lambda stands for the graph that a real operation holds: it does not pickle.
    return SimpleNamespace(
        name="MatMul_3", type="MatMul", device=device, site=site, node_def="def", graph=lambda: 0
    )


@pytest.mark.parametrize("constant", CODES)
def test_each_code_has_its_class(constant):
    code, name = CODES[constant]
    cls = getattr(errors, name)
    assert getattr(errors, constant) == code
    assert errors.exception_type_from_error_code(code) is cls
    assert errors.error_code_from_exception_type(cls) == code
    error = cls(None, None, "it broke")
    assert isinstance(error, errors.OpError)
    assert (error.error_code, error.message, str(error)) == (code, "it broke", "it broke")
    assert (error.op, error.node_def) == (None, None)


def test_no_class_is_missing_from_the_table():
    assert {
        cls.__name__
        for cls in errors.OpError.__subclasses__()
        if cls.__module__ == ("headrace.errors")
    } == {name for _, name in CODES.values()}
    assert errors.OK == 0


def test_the_tree_in_the_docstring_is_the_tree():
    drawn = errors.__doc__
    for code, name in CODES.values():
        (line,) = [line for line in drawn.splitlines() if f"── {name} " in line]
        assert line.split(name)[1].split()[0] == str(code)


@pytest.mark.parametrize("code", [0, 17, -1])
def test_a_code_without_a_class_is_a_key_error(code):
    with pytest.raises(KeyError):
        errors.exception_type_from_error_code(code)


def test_a_foreign_class_has_no_code():
    with pytest.raises(KeyError):
        errors.error_code_from_exception_type(ValueError)


def test_arguments_may_be_left_out_or_named():
    assert str(errors.AbortedError()) == ""
    assert errors.AbortedError(message="again").message == "again"
    assert errors.UnknownError(None, None, "m", 77).error_code == 77


def test_the_text_names_op_type_device_and_line():
    error = errors.InvalidArgumentError(None, an_op(), "shapes differ")
    assert str(error) == (
        "shapes differ\n"
        "  Op: 'MatMul_3' (type MatMul) on device '/device:CPU:0'\n"
        '  Made by: File "model.py", line 12, in build\n'
        "    y = tf.matmul(x, w)"
    )
    assert error.message == "shapes differ"


@pytest.mark.parametrize("device", ["", None])
def test_what_is_unknown_is_left_out_of_the_text(device):
    error = errors.InternalError(None, an_op(device=device, site=None), "m")
    assert str(error) == "m\n  Op: 'MatMul_3' (type MatMul)"


def test_a_line_without_text_shows_its_place_only():
    site = SITE._replace(line="")
    error = errors.InternalError(None, an_op(site=site), "m")
    assert str(error).endswith('  Made by: File "model.py", line 12, in build')


def test_node_def_is_the_one_given_or_that_of_the_op():
    op = an_op()
    assert errors.InternalError("mine", op, "m").node_def == "mine"
    assert errors.InternalError(None, op, "m").node_def == "def"
    assert errors.InternalError(None, op, "m").op is op


@pytest.mark.parametrize("duplicate", [copy.copy, lambda e: pickle.loads(pickle.dumps(e))])
@pytest.mark.parametrize("name", [name for _, name in CODES.values()])
def test_errors_pickle_and_copy(name, duplicate):
    error = getattr(errors, name)("node", an_op(), "m")
    error.add_note("step 7")
    again = duplicate(error)
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert (again.message, again.error_code, again.node_def) == ("m", error.error_code, "node")
    assert again.args == error.args
    assert again.__notes__ == ["step 7"]
    assert isinstance(again.op, errors.OpSummary)
    assert again.op.name == "MatMul_3"


def test_an_error_without_op_pickles():
    again = pickle.loads(pickle.dumps(errors.UnknownError(None, None, "m", 77)))
    assert (again.op, again.error_code, str(again)) == (None, 77, "m")


class TaskGoneError(errors.UnavailableError):
    """A subclass with a signature of its own, as other packages define them."""

    def __init__(self, task):
        super().__init__(None, None, f"task {task} is gone")
        self.task = task


def test_a_subclass_with_another_signature_pickles():
    again = pickle.loads(pickle.dumps(TaskGoneError(3)))
    assert (type(again), again.task, str(again)) == (TaskGoneError, 3, "task 3 is gone")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Matmul", " Did you mean 'MatMul'?"),
        ("MATMUL", " Did you mean 'MatMul'?"),
        ("SoftMx", " Did you mean 'Softmax'?"),
        ("Conv2D", ""),
        ("", ""),
    ],
)
def test_suggestions(name, text):
    assert errors.suggest(name, ["MatMul", "Softmax", "Add"]) == text


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("SyncReplicasOptimizer", ""),
        ("MomentumOptimzer", " Did you mean 'MomentumOptimizer'?"),
        ("momentumoptimizer", " Did you mean 'MomentumOptimizer'?"),
        ("Nadamoptimizer", " Did you mean 'AdamOptimizer'?"),
        ("NadamOptimizer", " Did you mean 'AdamOptimizer'?"),
        ("SessionHook", " Did you mean 'SessionRunHook'?"),
        ("ProfilerHook", ""),
        ("encoder_1/dense/kernel", " Did you mean 'encoder/dense/kernel'?"),
        ("value/dense/kernel", ""),
    ],
)
def test_suggestions_know_families(name, text):
    """Members of a family have its word in common, which makes them no more alike."""
    candidates = "FtrlOptimizer AdamOptimizer MomentumOptimizer SessionRunHook StopAtStepHook"
    assert errors.suggest(name, [*candidates.split(), "encoder/dense/kernel"]) == text


def test_no_candidates_no_suggestion():
    assert errors.suggest("x", []) == ""
