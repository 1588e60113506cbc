"""Dimension and TensorShape: arithmetic, the merge algebra, slicing, and every message."""

import copy
import operator
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.graph import shapes
from headrace.graph.shapes import (
    Dimension,
    TensorShape,
    broadcast_static,
    common_static,
    compatible_static,
    merge_static,
    unknown_shape,
)

# Derandomised, and without a deadline: a loaded machine must not fail a law.
laws = settings(max_examples=60, deadline=None, derandomize=True)
sizes = st.sampled_from([None, 0, 1, 2, 3])
known_sizes = st.sampled_from([0, 1, 2, 3])
dims = st.lists(sizes, max_size=3).map(tuple)
statics = st.one_of(st.none(), dims)
known = st.lists(known_sizes, max_size=3).map(tuple)


def raised(error, fn, *args):
    """The text of the error that the call raises."""
    with pytest.raises(error) as caught:
        fn(*args)
    return str(caught.value)


def admits(static, full):
    """Whether a fully known shape is one of those that `static` stands for."""
    if static is None:
        return True
    return len(static) == len(full) and all(
        s is None or s == f for s, f in zip(static, full, strict=True)
    )


# Dimension


@pytest.mark.parametrize(
    "value", [3, np.int64(3), np.int32(3), np.array(3), 3.0, Dimension(3)], ids=repr
)
def test_a_dimension_of_any_whole_number(value):
    assert Dimension(value).value == 3
    assert type(Dimension(value).value) is int


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (-1, ValueError, "Dimension -1 must be >= 0"),
        (0.5, ValueError, "Ambiguous dimension: 0.5"),
        (
            "3",
            TypeError,
            "A dimension must be an int, a Dimension or None, not '3' of type str.",
        ),
        (
            [3],
            TypeError,
            "A dimension must be an int, a Dimension or None, not [3] of type list.",
        ),
    ],
)
def test_no_dimension(value, error, text):
    assert raised(error, Dimension, value) == text
    assert raised(error, shapes.as_dimension, value) == text
    assert raised(error, TensorShape, [value]) == text


def test_dimension_text_and_conversion():
    assert (str(Dimension(3)), repr(Dimension(3))) == ("3", "Dimension(3)")
    assert (str(Dimension(None)), repr(Dimension(None))) == ("?", "Dimension(None)")
    assert int(Dimension(3)) == 3
    assert list(range(9))[Dimension(3)] == 3
    assert np.zeros(Dimension(4)).shape == (4,)
    assert (bool(Dimension(3)), bool(Dimension(0)), bool(Dimension(None))) == (True, False, False)
    assert hash(Dimension(3)) == hash(Dimension(3))
    assert raised(TypeError, int, Dimension(None)) == (
        "int() needs a known dimension, but this one is unknown."
    )
    assert raised(TypeError, operator.index, Dimension(None)) == (
        "An index needs a known dimension, but this one is unknown."
    )
    assert raised(AttributeError, setattr, Dimension(3), "_value", 4) == (
        "Dimension is immutable: cannot set '_value'."
    )


OPERATORS = (operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod)


@pytest.mark.parametrize("op", OPERATORS)
def test_dimension_arithmetic(op):
    assert op(Dimension(7), 3).value == op(7, 3)
    assert op(7, Dimension(3)).value == op(7, 3)
    assert op(Dimension(7), Dimension(3)).value == op(7, 3)
    for unknown in (op(Dimension(None), 3), op(3, Dimension(None)), op(Dimension(3), None)):
        assert isinstance(unknown, Dimension)
        assert unknown.value is None
    with pytest.raises(TypeError):
        op(Dimension(7), object())


def test_dimension_arithmetic_that_has_no_answer():
    assert raised(ValueError, operator.sub, Dimension(3), 5) == "Dimension -2 must be >= 0"
    assert raised(TypeError, operator.truediv, Dimension(3), 2) == (
        "unsupported operand type(s) for /: 'Dimension' and 'int', please use // instead"
    )
    assert raised(TypeError, operator.truediv, 2, Dimension(3)) == (
        "unsupported operand type(s) for /: 'int' and 'Dimension', please use // instead"
    )
    with pytest.raises(ZeroDivisionError):
        operator.floordiv(Dimension(3), 0)


@pytest.mark.parametrize(
    "op", [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
)
def test_dimension_comparison(op):
    for a in (2, 3, 4):
        assert op(Dimension(a), 3) is op(a, 3)
        assert op(Dimension(a), Dimension(3)) is op(a, 3)
    assert op(Dimension(None), 3) is None
    assert op(Dimension(3), Dimension(None)) is None
    assert op(Dimension(None), Dimension(None)) is None


def test_a_dimension_is_no_text():
    assert (Dimension(3) == "3") is False
    assert (Dimension(3) != "3") is True
    with pytest.raises(TypeError):
        operator.lt(Dimension(3), "3")


def test_dimension_merge():
    for a, b, merged in [(3, 3, 3), (3, None, 3), (None, 3, 3), (None, None, None)]:
        assert Dimension(a).is_compatible_with(b)
        assert Dimension(a).merge_with(b).value == merged
    assert not Dimension(3).is_compatible_with(4)
    text = "Dimensions 3 and 4 are not compatible"
    assert raised(ValueError, Dimension(3).merge_with, 4) == text
    assert raised(ValueError, Dimension(3).assert_is_compatible_with, Dimension(4)) == text


# TensorShape: making, reading


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (None, None),
        ([], ()),
        ((), ()),
        (5, (5,)),
        (np.int64(5), (5,)),
        (Dimension(5), (5,)),
        (np.array(5), (5,)),
        ([2, None], (2, None)),
        ([Dimension(2), Dimension(None)], (2, None)),
        (np.array([2, 3]), (2, 3)),
        (range(2, 4), (2, 3)),
        pytest.param(iter([2, 3]), (2, 3), id="iterator"),
        (TensorShape([2, None]), (2, None)),
        (TensorShape(None), None),
        (SimpleNamespace(unknown_rank=True, dim=[]), None),
        (
            SimpleNamespace(
                unknown_rank=False, dim=[SimpleNamespace(size=2), SimpleNamespace(size=-1)]
            ),
            (2, None),
        ),
    ],
    ids=repr,
)
def test_a_shape_of_anything(value, wanted):
    shape = TensorShape(value)
    assert shape.as_tuple == wanted
    assert all(type(size) is int for size in wanted or () if size is not None)
    assert shape == TensorShape.of(wanted)


def test_a_text_is_no_shape():
    assert raised(TypeError, TensorShape, "ab") == "A shape cannot be made from the text 'ab'."


@pytest.mark.parametrize(
    ("static", "text", "representation"),
    [
        (None, "<unknown>", "TensorShape(None)"),
        ((), "()", "TensorShape([])"),
        ((3,), "(3,)", "TensorShape([Dimension(3)])"),
        ((None,), "(?,)", "TensorShape([Dimension(None)])"),
        ((2, None), "(2, ?)", "TensorShape([Dimension(2), Dimension(None)])"),
    ],
)
def test_shape_text(static, text, representation):
    assert str(TensorShape.of(static)) == text
    assert repr(TensorShape.of(static)) == representation


def test_reading_a_known_shape():
    shape = TensorShape([2, None, 4])
    assert (shape.rank, shape.ndims, len(shape), bool(shape)) == (3, 3, 3, True)
    assert [d.value for d in shape.dims] == [2, None, 4]
    assert [d.value for d in shape] == [2, None, 4]
    assert all(isinstance(d, Dimension) for d in shape)
    assert shape.as_list() == [2, None, 4]
    assert (shape.num_elements(), shape.is_fully_defined()) == (None, False)
    assert (shape[0].value, shape[1].value, shape[-1].value) == (2, None, 4)
    assert shape[1:] == TensorShape([None, 4])
    assert shape[::2] == TensorShape([2, 4])
    assert shape[5:] == TensorShape([])
    with pytest.raises(IndexError):
        shape[3]
    assert TensorShape([2, 3, 4]).num_elements() == 24
    assert TensorShape([2, 0]).num_elements() == 0
    assert TensorShape([]).num_elements() == 1
    assert bool(TensorShape([])) is True


def test_reading_an_unknown_shape():
    shape = TensorShape(None)
    assert (shape.rank, shape.ndims, shape.dims, bool(shape)) == (None, None, None, False)
    assert (shape.num_elements(), shape.is_fully_defined()) == (None, False)
    assert raised(ValueError, len, shape) == "Cannot take the length of a shape with unknown rank."
    assert raised(ValueError, list, shape) == "Cannot iterate over a shape with unknown rank."
    assert (
        raised(ValueError, shape.as_list) == "as_list() is not defined on an unknown TensorShape."
    )


@pytest.mark.parametrize(
    ("key", "wanted"),
    [
        (slice(0, 2), (None, None)),
        (slice(None, 2), (None, None)),
        (slice(1, 3), (None, None)),
        (slice(3, 1), ()),
        (slice(1, None), None),
        (slice(None, -1), None),
        (slice(-2, None), None),
        (slice(-2, 3), None),
    ],
    ids=repr,
)
def test_slices_of_unknown_rank(key, wanted):
    assert TensorShape(None)[key].as_tuple == wanted


def test_an_index_into_unknown_rank():
    assert TensorShape(None)[7].value is None
    assert raised(ValueError, operator.getitem, TensorShape(None), slice(0, 4, 2)) == (
        "A slice with a step needs a shape of known rank."
    )


def test_equality_is_of_knowledge():
    assert TensorShape([2, None]) == [2, None]
    assert TensorShape([2]) == 2
    assert TensorShape(None) == TensorShape(None)
    assert TensorShape(None) != TensorShape([None])
    assert TensorShape([2]) != TensorShape([3])
    assert TensorShape([2]) != TensorShape([2, 2])
    assert TensorShape([None]) != TensorShape([2])
    assert TensorShape([2]) != "2"
    assert TensorShape([2]) != object()
    table = {TensorShape([2, None]): 1, TensorShape(None): 2}
    assert table[TensorShape((2, None))] == 1
    assert table[unknown_shape()] == 2


def test_shapes_are_immutable_and_copy():
    shape = TensorShape([2, None])
    assert raised(AttributeError, setattr, shape, "_sizes", ()) == (
        "TensorShape is immutable: cannot set '_sizes'."
    )
    for twin in (copy.copy(shape), copy.deepcopy(shape), pickle.loads(pickle.dumps(shape))):
        assert twin == shape
    assert pickle.loads(pickle.dumps(Dimension(3))).value == 3


def test_makers():
    assert shapes.scalar() is shapes.SCALAR
    assert shapes.scalar().as_tuple == ()
    assert shapes.vector(3).as_tuple == (3,)
    assert shapes.vector(None).as_tuple == (None,)
    assert shapes.matrix(Dimension(2), None).as_tuple == (2, None)
    assert unknown_shape() is shapes.UNKNOWN
    assert unknown_shape(2).as_tuple == (None, None)
    assert unknown_shape(0).as_tuple == ()
    assert unknown_shape(ndims=1).as_tuple == (None,)
    shape = TensorShape([1])
    assert shapes.as_shape(shape) is shape
    assert shapes.as_shape([1]) == shape
    assert (shapes.dimension_value(Dimension(2)), shapes.dimension_value(2)) == (2, 2)


# TensorShape: the algebra


@pytest.mark.parametrize(
    ("a", "b", "merged"),
    [
        (None, None, None),
        (None, (2,), (2,)),
        ((2,), None, (2,)),
        ((2, None), (None, 3), (2, 3)),
        ((None,), (None,), (None,)),
        ((), (), ()),
    ],
)
def test_merge_with(a, b, merged):
    assert TensorShape(a).merge_with(b).as_tuple == merged
    assert TensorShape(a).merge_with(TensorShape(b)).as_tuple == merged


MESSAGES = [
    (TensorShape([2, 3]).merge_with, [3, 3], "Shapes (2, 3) and (3, 3) are not compatible"),
    (TensorShape([2, None]).merge_with, [2], "Shapes (2, ?) and (2,) are not compatible"),
    (TensorShape([2]).assert_is_compatible_with, [3], "Shapes (2,) and (3,) are incompatible"),
    (TensorShape([2]).assert_has_rank, 3, "Shape (2,) must have rank 3"),
    (TensorShape([2]).with_rank, 3, "Shape (2,) must have rank 3"),
    (TensorShape([2]).with_rank_at_least, 2, "Shape (2,) must have rank at least 2"),
    (TensorShape([2]).with_rank_at_most, 0, "Shape (2,) must have rank at most 0"),
    (
        TensorShape([2]).assert_same_rank,
        [2, None],
        "Shapes (2,) and (2, ?) must have the same rank",
    ),
]


@pytest.mark.parametrize(("method", "argument", "text"), MESSAGES)
def test_refusals(method, argument, text):
    assert raised(ValueError, method, argument) == text


@pytest.mark.parametrize(("dims", "text"), [([None], "(?,)"), (None, "<unknown>")])
def test_not_fully_defined(dims, text):
    shape = TensorShape(dims)
    assert raised(ValueError, shape.assert_is_fully_defined) == f"Shape {text} is not fully defined"


def test_what_holds_is_not_refused():
    shape, unknown = TensorShape([2, None]), TensorShape(None)
    shape.assert_has_rank(2)
    shape.assert_same_rank([5, 6])
    shape.assert_same_rank(None)
    unknown.assert_same_rank([1])
    unknown.assert_has_rank(7)
    shape.assert_is_compatible_with([2, 5])
    TensorShape([2, 0]).assert_is_fully_defined()
    assert shape.with_rank(2) is shape
    assert shape.with_rank_at_least(2) is shape
    assert shape.with_rank_at_most(2) is shape
    assert unknown.with_rank(2).as_tuple == (None, None)
    assert unknown.with_rank_at_least(2) is unknown
    assert unknown.with_rank_at_most(2) is unknown


def test_concatenate():
    assert TensorShape([2]).concatenate([None, 3]) == [2, None, 3]
    assert TensorShape([2]).concatenate(3) == [2, 3]
    assert TensorShape([2]) + TensorShape([3]) == [2, 3]
    assert [1] + TensorShape([3]) == [1, 3]  # noqa: RUF005
    assert TensorShape([2]).concatenate(None).as_tuple is None
    assert TensorShape(None).concatenate([2]).as_tuple is None


def test_most_specific_compatible_shape():
    assert TensorShape([2, 3]).most_specific_compatible_shape([2, 4]) == [2, None]
    assert TensorShape([2, None]).most_specific_compatible_shape([2, 3]) == [2, None]
    assert TensorShape([2]).most_specific_compatible_shape([2, 3]).as_tuple is None
    assert TensorShape(None).most_specific_compatible_shape([2]).as_tuple is None


@pytest.mark.parametrize(
    ("a", "b", "result"),
    [
        ((2, 3), (3,), (2, 3)),
        ((3,), (2, 3), (2, 3)),
        ((2, 1), (1, 3), (2, 3)),
        ((), (2, None), (2, None)),
        ((None,), (3,), (3,)),
        ((None,), (0,), (0,)),
        ((None,), (1,), (None,)),
        ((1,), (None,), (None,)),
        ((None, 1), (4,), (None, 4)),
        ((0,), (1,), (0,)),
        (None, (2,), None),
        (None, (), None),
        (None, None, None),
    ],
)
def test_broadcast(a, b, result):
    assert broadcast_static(a, b) == result
    assert broadcast_static(b, a) == result


def test_broadcast_refuses_with_both_shapes_in_the_order_given():
    assert raised(ValueError, broadcast_static, (2, 3), (4,)) == (
        "Dimensions must be equal, but are 3 and 4. Incompatible shapes: [2,3] vs. [4]"
    )
    assert raised(ValueError, broadcast_static, (4,), (None, 3)) == (
        "Dimensions must be equal, but are 4 and 3. Incompatible shapes: [4] vs. [?,3]"
    )
    assert raised(ValueError, broadcast_static, (0,), (2,)) == (
        "Dimensions must be equal, but are 0 and 2. Incompatible shapes: [0] vs. [2]"
    )


# Laws


@laws
@given(statics, statics)
def test_merge_commutes(a, b):
    assert compatible_static(a, b) == compatible_static(b, a)
    if compatible_static(a, b):
        assert merge_static(a, b) == merge_static(b, a)
    else:
        with pytest.raises(ValueError, match="are not compatible"):
            merge_static(a, b)


@laws
@given(statics, statics, known)
def test_a_merged_shape_admits_what_both_admit(a, b, full):
    if compatible_static(a, b):
        assert admits(merge_static(a, b), full) == (admits(a, full) and admits(b, full))
    else:
        assert not (admits(a, full) and admits(b, full))


@laws
@given(statics, statics, statics)
def test_merge_is_associative(a, b, c):
    def merged(order):
        try:
            return order()
        except ValueError:
            return "contradiction"

    left = merged(lambda: merge_static(merge_static(a, b), c))
    right = merged(lambda: merge_static(a, merge_static(b, c)))
    assert left == right


@laws
@given(statics)
def test_merge_is_idempotent_with_the_unknown_shape_neutral(a):
    assert merge_static(a, a) == a
    assert merge_static(a, None) == merge_static(None, a) == a
    assert TensorShape(a).merge_with(a) == TensorShape(a)


@laws
@given(statics, statics, statics)
def test_common_is_the_meet(a, b, c):
    assert common_static(a, b) == common_static(b, a)
    assert common_static(common_static(a, b), c) == common_static(a, common_static(b, c))
    assert common_static(a, a) == a


@laws
@given(statics, statics, known)
def test_common_admits_what_either_admits(a, b, full):
    if admits(a, full) or admits(b, full):
        assert admits(common_static(a, b), full)


@laws
@given(known, known)
def test_broadcast_of_known_shapes_is_numpys(a, b):
    try:
        wanted = np.broadcast_shapes(a, b)
    except ValueError:
        with pytest.raises(ValueError, match="Incompatible shapes"):
            broadcast_static(a, b)
    else:
        assert broadcast_static(a, b) == wanted


@laws
@given(st.data(), known, known)
def test_broadcast_of_partial_shapes_admits_the_result(data, a, b):
    def blurred(full):
        return data.draw(
            st.one_of(st.none(), st.tuples(*[st.sampled_from([None, s]) for s in full]))
        )

    try:
        wanted = np.broadcast_shapes(a, b)
    except ValueError:
        return
    assert admits(broadcast_static(blurred(a), blurred(b)), wanted)


@laws
@given(dims, dims, dims)
def test_concatenate_is_associative(a, b, c):
    x, y, z = TensorShape(a), TensorShape(b), TensorShape(c)
    assert (x + y) + z == x + (y + z)
    assert (x + y)[: len(x)] == x
