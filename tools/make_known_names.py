"""Write the lists of TensorFlow's public names that Headrace's error messages and aliases use.

Run under TensorFlow 1.15 (Python 3.7):

    PYTHON_OF_TENSORFLOW_1_15 tools/make_known_names.py

It writes `src/headrace/namespaces/known_names.txt` (the public names of each namespace) and
`src/headrace/compat/known_modules.txt` (for each internal module, the public name of what it
defines), both as lines `namespace: name name=public.name ...`.
"""

import importlib
import inspect
import pkgutil
import sys
import types
from pathlib import Path

TARGET = Path(__file__).resolve().parents[1] / "src" / "headrace"

#: Namespaces that have an issue of their own are listed by name only.
SHALLOW = ("keras", "estimator", "raw_ops", "compat.v1", "compat.v2", "initializers.tf")
#: Of the modules inside a contrib package, those that are namespaces of its interface.
INSIDE_CONTRIB = (
    "contrib.distributions.bijectors", "contrib.framework.nest", "contrib.learn.datasets",
    "contrib.learn.monitors", "contrib.learn.preprocessing", "contrib.losses.metric_learning",
    "contrib.slim.nets",
)  # fmt: skip
#: Contrib packages whose inner files no program of a user imports.
WITHOUT_FILES = (
    "autograph", "bigtable", "boosted_trees", "cloud", "distribute", "eager", "kafka", "keras",
    "kinesis", "labeled_tensor", "lite", "mpi_collectives", "specs", "tensor_forest", "tensorrt",
    "timeseries", "tpu",
)  # fmt: skip
INTERNAL = (
    "client", "compat", "data", "debug", "distribute", "eager", "feature_column", "framework",
    "layers", "lib", "module", "ops", "platform", "profiler", "saved_model", "summary", "tools",
    "tpu", "training", "util",
)  # fmt: skip


def walk(module, path, seen, lines):
    names = []
    for name in sorted(dir(module)):
        if name.startswith("_"):
            continue
        try:
            value = getattr(module, name)
        except Exception:
            continue
        inner = f"{path}.{name}" if path else name
        if isinstance(value, types.ModuleType):
            if path.startswith("contrib.") and inner not in INSIDE_CONTRIB:
                continue
            origin = value.__name__
            if not origin.startswith(("tensorflow", "tensorflow_core", "tensorflow_estimator")):
                continue
            if path == "" and name in ("python", "core", "tools", "keras_api", "compiler"):
                continue
            names.append(name)
            if "_api" in origin or "contrib" in inner:
                walk_child(value, inner, seen, lines)
        elif type(value).__name__ != "_Feature":  # `from __future__ import division`
            names.append(name)
    if names:
        lines[path] = names


def walk_child(module, path, seen, lines):
    if path.startswith(SHALLOW) or id(module) in seen or path.count(".") > 3:
        return
    walk(module, path, seen | {id(module)}, lines)


def internal_modules(root):
    package = importlib.import_module(root)
    for found in pkgutil.walk_packages(package.__path__, root + ".", onerror=lambda name: None):
        short = found.name.split("python.", 1)[1]
        if short.split(".")[0] not in INTERNAL or "_test" in short or "keras" in short:
            continue
        try:
            yield short, importlib.import_module(found.name)
        except Exception:
            continue


def public_name(value):
    from tensorflow.python.util import tf_decorator

    if isinstance(value, type):
        names = value.__dict__.get("_tf_api_names_v1")
    elif not callable(value) or type(value).__name__ == "DType":
        return None
    else:
        names = getattr(tf_decorator.unwrap(value)[1], "_tf_api_names_v1", None)
    if not names:
        return None
    kept = [n for n in names if not n.startswith(("compat.v1", "raw_ops", "keras"))]
    return min(kept, key=lambda n: (n.count("."), n)) if kept else None


def internal(root):
    lines = {}
    for short, module in internal_modules(root):
        entries = []
        for name, value in sorted(vars(module).items()):
            if name.startswith("__") or inspect.ismodule(value):
                continue
            try:
                public = public_name(value)
            except Exception:
                continue
            if public:
                entries.append(name if public == name else f"{name}={public}")
        for public_names, name in getattr(module, "_tf_api_constants_v1", ()):
            kept = [n for n in public_names if not n.startswith("keras")]
            if kept:
                public = min(kept, key=lambda n: (n.count("."), n))
                entries.append(name if public == name else f"{name}={public}")
        lines[f"python.{short}"] = sorted(set(entries))
    return lines


def contrib_modules():
    """The paths of contrib's modules; nothing is imported."""
    import tensorflow.contrib

    root = Path(tensorflow.contrib.__file__).parent
    lines = {}
    for file in sorted(root.rglob("*.py")):
        parts = list(file.relative_to(root).with_suffix("").parts)
        if parts[-1] == "__init__":
            parts.pop()
        if not parts or parts[0] in WITHOUT_FILES or "test" in parts[-1] or "examples" in parts:
            continue
        lines[".".join(["contrib", *parts])] = []
    return lines


def write(path, lines):
    text = "".join(f"{key}: {' '.join(lines[key])}".rstrip() + "\n" for key in sorted(lines))
    path.write_text(text)
    print(f"{path.name}: {len(lines)} lines, {len(text)} bytes")


def main():
    import tensorflow as tf
    import tensorflow.contrib

    public = {}
    walk(tf, "", frozenset({id(tf)}), public)
    write(TARGET / "known_names.txt", public)
    modules = {**internal("tensorflow.python"), **contrib_modules()}
    write(TARGET / "compat" / "known_modules.txt", modules)


if __name__ == "__main__":
    sys.exit(main())
