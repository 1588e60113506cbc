"""Options of datasets: kept, and asked for by programs; the runtime here decides by itself."""

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


class ThreadingOptions(_Group):
    """Threads of TensorFlow's runtime.

    >>> import headrace as tf
    >>> options = tf.data.Options()
    >>> options.experimental_threading.private_threadpool_size = 4
    """

    _names = ("max_intra_op_parallelism", "private_threadpool_size")


class Options(_Group):
    """What `Dataset.with_options` takes. Nothing of it changes the elements.

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

    def merge(self, options: Options) -> Options:
        """These options, and those that are set in ``options``."""
        made = Options()
        for source in (self, options):
            made.__dict__.update({k: v for k, v in source.__dict__.items() if v is not None})
        return made


__all__ = ["OptimizationOptions", "Options", "ThreadingOptions"]
