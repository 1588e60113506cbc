"""Scheduled sampling: training helpers that sometimes feed what the decoder gave.

Source: Bengio et al. 2015, https://arxiv.org/abs/1506.03099.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.contrib.seq2seq.helpers import (
    TrainingHelper,
    bernoulli_sample,
    categorical_sample,
    embedding_function,
    unstacked,
)
from headrace.graph import dtypes, nest
from headrace.graph.graph import get_default_graph
from headrace.ops.array.api import fill
from headrace.ops.array.api import shape as shape_of
from headrace.ops.array.dynamic_api import where
from headrace.ops.array.gather_api import gather_nd, scatter_nd
from headrace.ops.array.joining_api import concat
from headrace.ops.control.flow_api import cond
from headrace.ops.core.build import convert_to_tensor
from headrace.ops.math.cast import cast
from headrace.ops.math.comparison import greater, less_equal, logical_or
from headrace.ops.math.elementwise import logical_not
from headrace.ops.math.reduction_api import reduce_all, reduce_any
from headrace.rnn.dynamic import transpose_batch_time


def _probability(given: Any) -> Any:
    probability = convert_to_tensor(given, name="sampling_probability")
    if probability.shape.rank not in (0, 1):
        raise ValueError(
            "sampling_probability must be either a scalar or a vector. saw shape: "
            f"{probability.shape}"
        )
    return probability


def _places(mask: Any) -> Any:
    return cast(where(mask), dtypes.int32)


def _merged(chosen: Any, new: Any, others: Any, base: Any) -> Any:
    """Rows ``new`` at the places ``chosen``, and those of ``base`` at the ``others``."""
    shape = shape_of(base)
    kept = scatter_nd(others, gather_nd(base, others), shape)
    return scatter_nd(chosen, new, shape) + kept


class ScheduledEmbeddingTrainingHelper(TrainingHelper):
    """Feeds given inputs, or with some probability the embedding of a drawn id.

    Bengio et al., "Scheduled Sampling for Sequence Prediction with Recurrent Neural Networks", 2015
    (arXiv:1506.03099), section 2.4.

    Args:
        inputs, sequence_length, time_major: as for `TrainingHelper`.
        embedding: function of ids, or the embedding.
        sampling_probability: scalar or ``[batch]``.
        seed: of the ids drawn; scheduling_seed: of the choice between the two.

    Raises:
        ValueError: if ``sampling_probability`` has another rank.

    >>> helper = tf.contrib.seq2seq.ScheduledEmbeddingTrainingHelper(
    ...     tf.zeros([2, 7, 3]), [7, 5], embedding=tf.zeros([10, 3]), sampling_probability=0.25
    ... )
    >>> finished, first = helper.initialize()
    >>> first.shape.as_list(), helper.sample_ids_dtype
    ([2, 3], tf.int32)
    """

    def __init__(
        self,
        inputs: Any,
        sequence_length: Any,
        embedding: Any,
        sampling_probability: Any,
        time_major: bool = False,
        seed: int | None = None,
        scheduling_seed: int | None = None,
        name: str | None = None,
    ) -> None:
        with get_default_graph().name_scope(name or "ScheduledEmbeddingSamplingWrapper"):
            self._embedding_fn = embedding_function(embedding)
            self._sampling_probability = _probability(sampling_probability)
            self._seed = seed
            self._scheduling_seed = scheduling_seed
            super().__init__(inputs, sequence_length, time_major, name)

    def sample(self, time: Any, outputs: Any, state: Any = None, name: str | None = None) -> Any:
        """Drawn ids where they are to be fed, else -1."""
        with get_default_graph().name_scope(name or "ScheduledEmbeddingTrainingHelperSample"):
            chosen = bernoulli_sample(
                probs=self._sampling_probability,
                dtype=dtypes.bool,
                sample_shape=self.batch_size,
                seed=self._scheduling_seed,
            )
            ids = categorical_sample(outputs, seed=self._seed)
            return where(chosen, ids, fill([self.batch_size], -1))

    def next_inputs(
        self,
        time: Any,
        outputs: Any,
        state: Any,
        sample_ids: Any = None,
        name: str | None = None,
    ) -> Any:
        """The inputs of the next step."""
        finished, base, state = super().next_inputs(time, outputs, state, sample_ids)

        def mixed() -> Any:
            chosen = _places(greater(sample_ids, -1))
            others = _places(less_equal(sample_ids, -1))
            embedded = self._embedding_fn(gather_nd(sample_ids, chosen))
            return _merged(chosen, embedded, others, base)

        return finished, cond(reduce_all(finished), lambda: base, mixed), state


class ScheduledOutputTrainingHelper(TrainingHelper):
    """Feeds given inputs, or with some probability the last outputs.

    Bengio et al., "Scheduled Sampling for Sequence Prediction with Recurrent Neural Networks", 2015
    (arXiv:1506.03099), section 2.4.

    Args:
        inputs, sequence_length, time_major: as for `TrainingHelper`.
        sampling_probability: scalar or ``[batch]``.
        seed: of the choice.
        next_inputs_fn: outputs -> inputs; by default the outputs.
        auxiliary_inputs: joined to inputs and outputs along the last axis.

    Raises:
        ValueError: if ``sampling_probability`` has another rank.

    >>> helper = tf.contrib.seq2seq.ScheduledOutputTrainingHelper(
    ...     tf.zeros([2, 7, 4]), [7, 5], sampling_probability=0.25
    ... )
    >>> finished, first = helper.initialize()
    >>> first.shape.as_list(), helper.sample_ids_dtype
    ([2, 4], tf.int32)
    """

    def __init__(
        self,
        inputs: Any,
        sequence_length: Any,
        sampling_probability: Any,
        time_major: bool = False,
        seed: int | None = None,
        next_inputs_fn: Callable[[Any], Any] | None = None,
        auxiliary_inputs: Any = None,
        name: str | None = None,
    ) -> None:
        with get_default_graph().name_scope(name or "ScheduledOutputTrainingHelper"):
            self._sampling_probability = _probability(sampling_probability)
            self._more: Any = None
            if auxiliary_inputs is not None:
                more = convert_to_tensor(auxiliary_inputs, name="auxiliary_inputs")
                inputs = nest.map_structure(lambda x: concat([x, more], -1), inputs)
                self._more = unstacked(more if time_major else transpose_batch_time(more))
            self._seed = seed
            self._next_inputs_fn = next_inputs_fn
            super().__init__(inputs, sequence_length, time_major, name)

    def sample(self, time: Any, outputs: Any, state: Any = None, name: str | None = None) -> Any:
        """1 where the outputs are to be fed, else 0."""
        with get_default_graph().name_scope(name or "ScheduledOutputTrainingHelperSample"):
            return bernoulli_sample(
                probs=self._sampling_probability, sample_shape=self.batch_size, seed=self._seed
            )

    def next_inputs(
        self,
        time: Any,
        outputs: Any,
        state: Any,
        sample_ids: Any = None,
        name: str | None = None,
    ) -> Any:
        """The inputs of the next step."""
        finished, base, state = super().next_inputs(time, outputs, state, sample_ids)
        fed = cast(sample_ids, dtypes.bool)

        def extended(values: Any, places: Any = None) -> Any:
            if self._more is None:
                return values
            more = self._more.read(time + 1)
            return concat([values, more if places is None else gather_nd(more, places)], -1)

        def mixed() -> Any:
            if self._next_inputs_fn is None:
                return where(fed, extended(outputs), base)
            chosen = _places(fed)
            new = extended(self._next_inputs_fn(gather_nd(outputs, chosen)), chosen)
            return _merged(chosen, new, _places(logical_not(fed)), base)

        unmixed = logical_or(reduce_all(finished), logical_not(reduce_any(fed)))
        return finished, cond(unmixed, lambda: base, mixed), state


__all__ = ["ScheduledEmbeddingTrainingHelper", "ScheduledOutputTrainingHelper"]
