"""``tf.contrib.predictor``: a SavedModel as a function of dictionaries of arrays."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from headrace.graph.graph import Graph
from headrace.saved_model import loader, signature_constants, tag_constants, utils
from headrace.session.session import Session

__all__ = ["Predictor", "from_saved_model"]


class Predictor:
    """Feeds a dictionary of arrays to a session and fetches another.

    Args:
        feed_tensors, fetch_tensors: tensors of the graph, by the names of inputs and outputs.

    >>> with tf.Session() as sess:
    ...     x = tf.placeholder(tf.float32, [None])
    ...     tf.saved_model.simple_save(sess, "model", {"x": x}, {"y": 2 * x})
    >>> predict = tf.contrib.predictor.from_saved_model("model")
    >>> predict({"x": [1.0, 2.0]})["y"].tolist()
    [2.0, 4.0]
    """

    def __init__(
        self,
        graph: Graph,
        session: Session,
        feed_tensors: Mapping[str, Any],
        fetch_tensors: Mapping[str, Any],
    ) -> None:
        self._graph = graph
        self._session = session
        self._feed_tensors = dict(feed_tensors)
        self._fetch_tensors = dict(fetch_tensors)

    def __call__(self, input_dict: Mapping[str, Any]) -> Any:
        """The outputs, by name.

        Raises:
            ValueError: if there is no input of such a name.
        """
        unknown = sorted(set(input_dict) - set(self._feed_tensors))
        if unknown:
            raise ValueError(
                f"Got unexpected keys in input_dict: {unknown}; expected: "
                f"{sorted(self._feed_tensors)}"
            )
        feed = {self._feed_tensors[name]: value for name, value in input_dict.items()}
        return self._session.run(self._fetch_tensors, feed)

    @property
    def graph(self) -> Graph:
        return self._graph

    @property
    def session(self) -> Session:
        return self._session

    @property
    def feed_tensors(self) -> dict[str, Any]:
        """The inputs, by name."""
        return self._feed_tensors

    @property
    def fetch_tensors(self) -> dict[str, Any]:
        """The outputs, by name."""
        return self._fetch_tensors

    def __repr__(self) -> str:
        return (
            f"Predictor with feed tensors {self._feed_tensors} and fetch_tensors "
            f"{self._fetch_tensors}"
        )


def from_saved_model(
    export_dir: str | os.PathLike[str],
    signature_def_key: str | None = None,
    signature_def: Any = None,
    input_names: Mapping[str, str] | None = None,
    output_names: Mapping[str, str] | None = None,
    tags: str | None = None,
    graph: Graph | None = None,
    config: Any = None,
) -> Predictor:
    """A predictor of a SavedModel.

    Args:
        signature_def_key: which signature tells inputs and outputs; "serving_default" if not given.
        signature_def: one of your own in place of it.
        input_names, output_names: names of tensors by the names of inputs and outputs, in place of
            a signature.
        tags: which graph of the SavedModel, separated by commas; "serve" if not given.

    Raises:
        ValueError: if inputs and outputs are told in several ways or in half, or there is no such
            signature.
    """
    ways = [signature_def_key, signature_def, input_names or output_names]
    if sum(way is not None for way in ways) > 1:
        raise ValueError(
            "Must provide at most one of signature_def_key, signature_def, and input_names with "
            "output_names."
        )
    if (input_names is None) != (output_names is None):
        raise ValueError("input_names and output_names must both be specified or both be None.")
    graph = graph or Graph()
    with graph.as_default():
        session = Session(config=config)
        wanted = (tags or tag_constants.SERVING).split(",")
        meta_graph = loader.load(session, wanted, export_dir)
    if input_names is not None and output_names is not None:
        feeds = {name: graph.get_tensor_by_name(n) for name, n in input_names.items()}
        fetches = {name: graph.get_tensor_by_name(n) for name, n in output_names.items()}
        return Predictor(graph, session, feeds, fetches)
    if signature_def is None:
        key = signature_def_key or signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY
        if key not in meta_graph.signature_def:
            raise ValueError(
                f"Got signature_def_key {key!r}. Available signatures are "
                f"{sorted(meta_graph.signature_def)}."
            )
        signature_def = meta_graph.signature_def[key]
    return Predictor(
        graph,
        session,
        _tensors(signature_def.inputs, graph),
        _tensors(signature_def.outputs, graph),
    )


def _tensors(infos: Mapping[str, Any], graph: Graph) -> dict[str, Any]:
    return {
        name: utils.get_tensor_from_tensor_info(info, graph=graph) for name, info in infos.items()
    }
