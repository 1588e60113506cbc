"""NULL devices: they allocate nothing and compute nothing.

``ConfigProto(device_count={"NULL": 2})`` makes ``/device:NULL:0`` and ``/device:NULL:1``. What is
placed there gives zeros of its static shape (unknown dimensions count as 1) that share one element
of memory, in no time; variables hold such zeros. So placement, partitioning and the runtime can be
tried on graphs of any size. Reading a variable without a value fails as ever. Ops that run on the
host (queues, Python functions, files) are not the device's: they run, on zeros.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.executor.early_checks import maker_of
from headrace.executor.resources import ResourceHandle, ResourceStore
from headrace.graph import dtypes
from headrace.graph.dtypes import DType
from headrace.graph.tensor import Dims
from headrace.ops.control.tensor_list_kernels import TensorList

if TYPE_CHECKING:
    from headrace.executor.region import Region


def is_null(device: str) -> bool:
    """Whether a full device name is that of a NULL device."""
    return "/device:NULL:" in device


def null_value(dtype: DType, dims: Dims) -> Any:
    """Zeros of a static shape in the memory of one; an empty list for a variant."""
    if dtype is dtypes.variant:
        return TensorList(items=())
    shape = [1 if d is None else d for d in dims or ()]
    return np.broadcast_to(np.zeros((), dtype.np_dtype), shape)


class NullProgram:
    """Stands for the program of a region on a NULL device."""

    def __init__(self, region: Region) -> None:
        self.region = region
        self.outputs = [null_value(n.dtypes[i], n.dims[i]) for n, i in region.outputs]
        self.reads = [k for k in region.touched.reads if k not in region.touched.optional]
        known = region.handles.items()
        makers = {h: maker_of(edge[0]) for edge, h in known if isinstance(h, ResourceHandle)}
        self.writes: dict[ResourceHandle, Any] = {}
        for key in region.written:
            maker = makers.get(key) if isinstance(key, ResourceHandle) else None
            if isinstance(key, ResourceHandle) and maker is not None and maker.op_def.makes_handle:
                shape = maker.attrs["shape"]
                dims = None if shape is None else shape.as_tuple
                self.writes[key] = null_value(maker.attrs["dtype"], dims)

    def run(self, store: ResourceStore) -> list[Any]:
        """The outputs, all zero; variables that the region writes hold zeros afterwards.

        Raises:
            FailedPreconditionError: if a variable that the region reads has no value.
        """
        with store.lock:
            for key in self.reads:
                if store.get(key) is None:
                    self.region.first_value(store, key)
            store.put_all(list(self.writes), list(self.writes.values()))
        return list(self.outputs)
