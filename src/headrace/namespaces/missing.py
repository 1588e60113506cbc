"""What Headrace says of a name that it does not have.

TensorFlow's own names are told from mistyped ones: `known_names.txt` lists the public names of
TensorFlow 1.15, one namespace a line (`tools/make_known_names.py` writes it).
"""

from __future__ import annotations
import __future__

from collections.abc import Iterable
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from headrace.errors import suggest

__all__ = [
    "LATE",
    "Namespace",
    "attribute_error",
    "is_known",
    "known_names",
    "make_namespace",
    "reason",
]

_FILE = Path(__file__).with_name("known_names.txt")

#: For each module with late names (`lazy`), what they stand for: ``module:name``, or a module.
LATE: dict[str, dict[str, str]] = {}

#: Why a namespace, or a name, of TensorFlow is not here; the longest prefix that fits counts.
REASONS = {
    "autograph": "Headrace builds graphs from calls, it does not rewrite Python code",
    "contrib.autograph": "Headrace builds graphs from calls, it does not rewrite Python code",
    "contrib.bayesflow": "hmc, metropolis_hastings and monte_carlo are there; for "
    "variational_inference see tf.bayes.vi",
    "contrib.boosted_trees": "its ops on tree ensembles, predictions, gradients, quantiles and "
    "splits are there",
    "contrib.boosted_trees.estimator_batch": "tf.estimator.BoostedTreesClassifier and "
    "BoostedTreesRegressor grow such trees; of these here the ops are there",
    "contrib.cluster_resolver": "clusters come from TF_CONFIG and tf.train.ClusterSpec",
    "contrib.distribute.UpdateContext": "strategy.extended.update says where an update stands",
    "contrib.distributions.MultivariateNormalDiag": "tf.distributions.Normal has its components, "
    "each by itself",
    "contrib.eager": "Headrace runs graphs; it has no eager mode",
    "contrib.estimator.DNNClassifierWithLayerAnnotations": "DNNClassifier has the model, without "
    "the names of its layers in a collection",
    "contrib.estimator.DNNRegressorWithLayerAnnotations": "DNNRegressor has the model, without "
    "the names of its layers in a collection",
    "contrib.estimator.SavedModelEstimator": "warm_start_from takes a SavedModel, and "
    "tf.contrib.predictor asks one",
    "contrib.keras": "tf.keras is Keras 3",
    "contrib.learn.KMeansClustering": "tf.contrib.factorization.KMeansClustering does this",
    "contrib.learn.evaluate": "Estimator.evaluate does this",
    "contrib.learn.infer": "Estimator.predict and run_n do this",
    "contrib.learn.train": "Estimator.fit and tf.train.MonitoredTrainingSession do this",
    "contrib.learn.LogisticRegressor": "LinearClassifier and DNNClassifier tell two classes apart",
    "contrib.opt": "the optimizers are in tf.train, those for asynchronous training here; "
    "AdamOptimizer is near to LazyAdamOptimizer, but moves all rows of a table",
    "contrib.signal": "tf.signal has the Fourier and cosine transforms",
    "contrib.summary.create_db_writer": "summaries go to event files (create_file_writer)",
    "contrib.tpu": "a graph is one shard; TPUEstimator and its settings are there",
    "contrib.timeseries": "its estimators are still to come",
    "data.experimental.TensorArrayStructure": "datasets hold tensors, sparse and ragged ones, and "
    "datasets, no TensorArrays",
    "distribute.cluster_resolver": "Headrace asks no cloud for its machines: clusters come from "
    "TF_CONFIG, tf.train.ClusterSpec or Slurm",
    "enable_eager_execution": "Headrace runs graphs; it has no eager mode",
    "enable_v2_behavior": "Headrace has the graphs and sessions of TensorFlow 1.x only",
    "function": "Headrace builds graphs from calls, it does not trace Python functions",
    "GradientTape": "Headrace runs graphs; use tf.gradients",
    "lite": "Headrace writes graphs and SavedModels; a converter can read those",
    "load_library": "Headrace's kernels are JAX functions: libraries with TensorFlow kernels "
    "cannot be loaded",
    "load_op_library": "Headrace's kernels are JAX functions: libraries with TensorFlow kernels "
    "cannot be loaded",
    "load_file_system_library": "file systems come through fsspec",
    "python.debug": "the command line debugger is not there; session.describe() shows a plan",
    "python.eager": "Headrace runs graphs; it has no eager mode",
    "python.keras": "tf.keras is Keras 3; its inner modules are at `import keras`",
    "python.distribute": "tf.distribute has its public names",
    "python.tpu": "Headrace runs on TPUs through tf.device, not through TPUEstimator",
    "tpu": "Headrace runs on TPUs through tf.device, not through TPUEstimator",
    "xla": "every graph is compiled by XLA",
}


@cache
def known_names() -> dict[str, frozenset[str]]:
    """The public names of TensorFlow 1.15 by namespace; that of ``tf`` itself is ``""``."""
    names = {}
    for line in _FILE.read_text(encoding="utf-8").splitlines():
        namespace, _, rest = line.partition(":")
        names[namespace] = frozenset(rest.split())
    return names


def is_known(path: str) -> bool:
    """Whether TensorFlow 1.15 has ``tf.<path>`` (or may have it, in namespaces listed whole)."""
    namespace, _, name = path.rpartition(".")
    if namespace in known_names():
        return name in known_names()[namespace]
    return bool(namespace) and is_known(namespace)


def reason(path: str) -> str:
    """Why ``tf.<path>`` is not in Headrace, or "" where nothing more is to be said."""
    while path:
        if path in REASONS:
            return REASONS[path]
        path = path.rpartition(".")[0]
    return ""


def attribute_error(module: str, name: str, candidates: Iterable[str] = ()) -> AttributeError:
    """The error for ``module.name``: what TensorFlow has of it, and the nearest name that exists.

    For the `__getattr__` of a namespace: ``raise attribute_error(__name__, name, __dir__())``.

    Args:
        module: the module's name: ``headrace`` or ``headrace.<namespace>``, or the same under
            ``tensorflow``.
        name: what was asked for.
        candidates: the names that the module has.
    """
    message = f"module {module!r} has no attribute {name!r}."
    if name.startswith("__"):
        return AttributeError(message, name=name)
    path = ".".join([*module.split(".")[1:], name])
    why = reason(path)
    if why:
        message += f" tf.{path} is not part of Headrace yet: {why}."
        return AttributeError(message, name=name)
    if is_known(path):
        message += f" tf.{path} is not part of Headrace yet."
    if name in known_names().get(path.rpartition(".")[0], ()):
        return AttributeError(message, name=name)  # no slip of the pen
    others = [c for c in candidates if not c.startswith("_") and c != name]
    others.sort(key=lambda c: c[:1].isupper() != name[:1].isupper())
    near = suggest(name, others)
    return AttributeError(message + near, name=name)


class Namespace(ModuleType):
    """A module of the interface: it takes old names, and says what it knows of missing ones.

    What its own ``__getattr__`` raises is replaced. The namespaces imported below it become such
    modules too, as `import` binds them.

    Attributes:
        home_of_old_names: the module that has the names of old, imported when one is asked for.
    """

    home_of_old_names: str

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise attribute_error(self.__name__, name)
        if getattr(self.__spec__, "_initializing", False):
            raise AttributeError(name)  # `from headrace import x` asks before it imports x
        namespace = self.__name__.partition(".")[2]
        old_names = import_module(self.home_of_old_names)
        if name in old_names.RENAMED.get(namespace, ()):
            return old_names.renamed(namespace, name)
        raise attribute_error(self.__name__, name, dir(self)) from None

    def __dir__(self) -> list[str]:
        """Its public names: those of ``__all__``, if it has one, and its late ones.

        Without ``__all__`` all but those that begin with "_" and modules that are no namespaces.
        """
        stated = vars(self).get("__all__")
        if stated is not None:
            dunder = [name for name in vars(self) if name.startswith("__")]
            late = [name for name in LATE.get(self.__name__, ()) if not name.startswith("_")]
            return sorted({*dunder, *stated, *late})
        return [name for name in super().__dir__() if self._is_public(name)]

    def _is_public(self, name: str) -> bool:
        if name.startswith("_"):
            return name.startswith("__")
        value = vars(self).get(name)
        if isinstance(value, ModuleType):
            path = value.__name__.partition(".")[2]
            return path in _NAMESPACES or name in LATE.get(self.__name__, ())
        if isinstance(value, __future__._Feature):
            return False
        return getattr(value, "__module__", "") not in ("typing", "collections.abc")

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        self._adopt(name, value)

    def _adopt(self, name: str, value: Any) -> None:
        if type(value) is ModuleType and value.__name__ == f"{self.__name__}.{name}":
            path = value.__name__.partition(".")[2]
            if path in _NAMESPACES or path.startswith(("contrib.", "examples.")):
                make_namespace(value)


def make_namespace(module: ModuleType) -> None:
    """Make a module a `Namespace`, and so the namespaces that were imported below it before."""
    module.__class__ = Namespace
    for name, value in list(vars(module).items()):
        setattr(module, name, value)


#: The modules that are namespaces of the interface (those of contrib are all).
_NAMES = """
app audio autograph bayes bayes.hmc bayes.vi bitwise collective compat config contrib data
data.experimental debugging distribute distribute.cluster_resolver distribute.experimental
distributions distributions.bijectors dtypes errors estimator estimator.experimental
estimator.export estimator.inputs estimator.tpu examples feature_column flags gfile graph_util image
initializers io io.gfile keras layers linalg logging lookup losses manip math metrics nest nn
nn.rnn_cell parallel profiler python_io quantization queue ragged random resource_loader saved_model
saved_model.builder saved_model.constants saved_model.loader saved_model.main_op
saved_model.signature_constants saved_model.signature_def_utils saved_model.tag_constants
saved_model.utils sets signal sparse spectral strings summary sysconfig test train
train.experimental train.queue_runner user_ops version
"""
_NAMESPACES = frozenset(_NAMES.split())
