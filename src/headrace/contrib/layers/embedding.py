"""Vectors for words and other numbers of things."""

from __future__ import annotations

from typing import Any

from headrace.contrib.framework.variables import model_variable
from headrace.graph import dtypes
from headrace.graph.tensor import Tensor
from headrace.ops.array import api, joining_api
from headrace.ops.array.gather_api import gather
from headrace.ops.core.build import convert_to_tensor, raw
from headrace.ops.math.reduction_api import reduce_mean
from headrace.ops.nn.embedding import embedding_lookup
from headrace.ops.sparse.sparse_tensor import SparseTensor
from headrace.ops.state.scopes_api import name_scope
from headrace.ops.state.variable_scope import variable_scope


def embedding_lookup_unique(
    params: Any, ids: Any, partition_strategy: str = "mod", name: str | None = None
) -> Tensor:
    """``tf.nn.embedding_lookup`` that looks up each number once, however often it stands there.

    Args:
        params: ``[rows, ...]``, or a list of parts of it.
        ids: numbers of rows, of any shape; the result is ``[*ids.shape, ...]``.

    Raises:
        TypeError: if ``ids`` are not integers of 16, 32 or 64 bits.
        ValueError: if there are no ``params``, or they are scalars.
        InvalidArgumentError: when run, for a number that has no row.
    """
    with name_scope(name, "EmbeddingLookupUnique", [params, ids]):
        ids = convert_to_tensor(ids)
        shape = api.shape(ids)
        unique, positions = raw.Unique(api.reshape(ids, [-1]))
        rows = embedding_lookup(params, unique, partition_strategy)
        found = gather(rows, positions)
        sizes = joining_api.concat([shape, api.shape(rows)[1:]], 0)
        result = api.reshape(found, sizes)
        result.set_shape(ids.shape.concatenate(rows.shape[1:]))
        return result


def embed_sequence(
    ids: Any,
    vocab_size: int | None = None,
    embed_dim: int | None = None,
    unique: bool = False,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = True,
    scope: Any = None,
    reuse: Any = None,
) -> Tensor:
    """``[batch, length]`` numbers as ``[batch, length, embed_dim]`` vectors, which are trained.

    Args:
        unique: look up each number once.

    Raises:
        ValueError: if the sizes are missing and no earlier embedding is reused.
    """
    if not (reuse or (vocab_size and embed_dim)):
        raise ValueError(
            "Must specify vocab size and embedding dimension when not reusing. Got vocab_size="
            f"{vocab_size} and embed_dim={embed_dim}"
        )
    with variable_scope(scope, "EmbedSequence", [ids], reuse=reuse):
        known = vocab_size is not None and embed_dim is not None
        embeddings = model_variable(
            "embeddings",
            shape=[vocab_size, embed_dim] if known else None,
            initializer=initializer,
            regularizer=regularizer,
            trainable=trainable,
        )
        if unique:
            return embedding_lookup_unique(embeddings, ids)
        return embedding_lookup(embeddings, ids)


def bow_encoder(
    ids: Any,
    vocab_size: int,
    embed_dim: int,
    sparse_lookup: bool = True,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = True,
    scope: Any = None,
    reuse: Any = None,
) -> Tensor:
    """``[batch, length]`` numbers as the mean of their vectors, ``[batch, embed_dim]``.

    With ``sparse_lookup`` zeros of dense ``ids`` are absent words.

    Raises:
        ValueError: if a size is missing.
        TypeError: if sparse ``ids`` come without ``sparse_lookup``.
    """
    if not vocab_size or not embed_dim:
        raise ValueError("Must specify vocab size and embedding dimension")
    sparse = isinstance(ids, SparseTensor)
    if sparse and not sparse_lookup:
        raise TypeError(f"ids are expected to be dense Tensor, got: {ids}")
    with variable_scope(scope, "bow_encoder", [ids], reuse=reuse):
        embeddings = model_variable(
            "embeddings",
            shape=[vocab_size, embed_dim],
            initializer=initializer,
            regularizer=regularizer,
            trainable=trainable,
        )
        if not sparse_lookup:
            mean: Tensor = reduce_mean(embedding_lookup(embeddings, ids), axis=1)
            return mean
        from headrace import nn  # sparse look-ups load on first use

        words = ids if sparse else dense_to_sparse(ids)
        result: Tensor = nn.safe_embedding_lookup_sparse(
            [embeddings], words, combiner="mean", default_id=0
        )
        return result


def dense_to_sparse(
    tensor: Any, eos_token: Any = 0, outputs_collections: Any = None, scope: Any = None
) -> SparseTensor:
    """The elements that are not ``eos_token``, as a SparseTensor of the same dense shape.

    Raises:
        TypeError: if ``tensor`` cannot be converted, or ``eos_token`` is not of its type; strings
            need one that is a string.
    """
    with name_scope(scope, "dense_to_sparse", [tensor]) as sc:
        from headrace.contrib.layers.utils import collect_named_outputs

        tensor = convert_to_tensor(tensor)
        indices = raw.Where(raw.NotEqual(tensor, convert_to_tensor(eos_token, tensor.dtype)))
        values = raw.GatherNd(tensor, indices)
        shape = raw.Shape(tensor, out_type=dtypes.int64)
        found: SparseTensor = collect_named_outputs(
            outputs_collections, sc, SparseTensor(indices, values, shape)
        )
        return found


__all__ = ["bow_encoder", "dense_to_sparse", "embed_sequence", "embedding_lookup_unique"]
