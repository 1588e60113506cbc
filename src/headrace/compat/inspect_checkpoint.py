"""``tensorflow.python.tools.inspect_checkpoint``: print what a checkpoint holds."""

from __future__ import annotations

import math
import re
from typing import Any

from headrace.train.checkpoint_utils import load_checkpoint

__all__ = ["print_tensors_in_checkpoint_file"]


def print_tensors_in_checkpoint_file(
    file_name: Any,
    tensor_name: str | None,
    all_tensors: bool,
    all_tensor_names: bool = False,
    count_exclude_pattern: str = "",
) -> None:
    """Print the tensors of a checkpoint.

    Args:
        file_name: the checkpoint's path.
        tensor_name: print this one; without it, all names with types and shapes.
        all_tensors: print all of them.
        all_tensor_names: print all names.
        count_exclude_pattern: tensors whose names fit are not counted.
    """
    reader = load_checkpoint(file_name)
    shapes = reader.get_variable_to_shape_map()
    if all_tensors or all_tensor_names:
        for name in sorted(shapes):
            print("tensor_name: ", name)
            if all_tensors:
                print(reader.get_tensor(name))
    elif tensor_name:
        print("tensor_name: ", tensor_name)
        print(reader.get_tensor(tensor_name))
    else:
        types = reader.get_variable_to_dtype_map()
        for name in sorted(shapes):
            print(f"{name} ({types[name].name}) {shapes[name]}")
    counted = [
        name
        for name in shapes
        if not (count_exclude_pattern and re.search(count_exclude_pattern, name))
    ]
    print(f"# Total number of params: {sum(math.prod(shapes[name]) for name in counted)}")
