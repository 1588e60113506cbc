"""Options of datasets: kept, and asked for by programs. Statistics and the order take effect."""

from __future__ import annotations

from typing import Any


class _Group:
    """Attributes that are None until they are set."""

    _names: tuple[str, ...] = ()

    def __init__(self) -> None:
        for name in self._names:
            self.__dict__[name] = None

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._names:
            raise AttributeError(
                f"{type(self).__name__} has no option {name!r}; it has {', '.join(self._names)}."
            )
        self.__dict__[name] = value

    def _take(self, other: _Group) -> None:
        """Take over what is set in another."""
        for name, value in other.__dict__.items():
            mine = self.__dict__[name]
            if isinstance(value, _Group) and isinstance(mine, _Group):
                mine._take(value)
            elif value is not None:
                self.__dict__[name] = value

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]


class OptimizationOptions(_Group):
    """What TensorFlow's graph rewrites of datasets do.

    >>> import headrace as tf
    >>> options = tf.data.Options()
    >>> options.experimental_optimization.map_fusion = True
    """

    _names = (
        *("apply_default_optimizations", "autotune", "autotune_algorithm", "autotune_buffers"),
        *("autotune_cpu_budget", "filter_fusion", "filter_with_random_uniform_fusion"),
        *("hoist_random_uniform", "map_and_batch_fusion", "map_and_filter_fusion", "map_fusion"),
        *("map_parallelization", "map_vectorization", "noop_elimination", "parallel_batch"),
        *("shuffle_and_repeat_fusion",),
    )

    def __init__(self) -> None:
        super().__init__()
        self.map_vectorization = MapVectorizationOptions()


class ThreadingOptions(_Group):
    """Threads of TensorFlow's runtime.

    >>> import headrace as tf
    >>> options = tf.data.Options()
    >>> options.experimental_threading.private_threadpool_size = 4
    """

    _names = ("max_intra_op_parallelism", "private_threadpool_size")


class MapVectorizationOptions(_Group):
    """How TensorFlow makes maps of batches of maps of elements.

    >>> import headrace as tf
    >>> tf.data.experimental.MapVectorizationOptions().enabled is None
    True
    """

    _names = ("enabled", "use_choose_fastest")


class DistributeOptions(_Group):
    """How TensorFlow's distribution strategies divide a dataset.

    >>> import headrace as tf
    >>> options = tf.data.Options()
    >>> options.experimental_distribute.auto_shard = False
    """

    _names = ("auto_shard", "num_devices")


class StatsOptions(_Group):
    """Where `Dataset.with_options` lets a pipeline record statistics.

    ``aggregator`` is a `StatsAggregator`; ``prefix`` is what the tags of summaries begin with.
    ``latency_all_edges`` and ``counter_prefix`` are kept, and change nothing.

    >>> import headrace as tf
    >>> options = tf.data.Options()
    >>> options.experimental_stats.aggregator = tf.data.experimental.StatsAggregator()
    """

    _names = ("aggregator", "counter_prefix", "latency_all_edges", "prefix")


class Options(_Group):
    """What `Dataset.with_options` takes. Nothing of it changes which elements there are.

    >>> import headrace as tf
    >>> options = tf.data.Options()
    >>> options.experimental_deterministic = False
    >>> tf.data.Dataset.range(3).with_options(options).options().experimental_deterministic
    False
    """

    _names = (
        *("experimental_autotune", "experimental_deterministic", "experimental_distribute"),
        *("experimental_numa_aware", "experimental_optimization", "experimental_slack"),
        *("experimental_stateful_whitelist", "experimental_stats", "experimental_threading"),
        *("experimental_external_state_policy", "experimental_optimize_dataset"),
    )

    def __init__(self) -> None:
        super().__init__()
        self.experimental_optimization = OptimizationOptions()
        self.experimental_threading = ThreadingOptions()
        self.experimental_distribute = DistributeOptions()
        self.experimental_stats = StatsOptions()

    def merge(self, options: Options) -> Options:
        """These options, and those that are set in ``options``."""
        made = Options()
        made._take(self)
        made._take(options)
        return made


__all__ = [
    "DistributeOptions",
    "MapVectorizationOptions",
    "OptimizationOptions",
    "Options",
    "StatsOptions",
    "ThreadingOptions",
]
