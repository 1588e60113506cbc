"""Pages of the API reference, made from the public namespaces (`tools/make_docs.py` calls this).

One page for each namespace; each name with its signature and docstring: shapes, errors, examples.
What is the same object under several names is described once, elsewhere there is a line.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import headrace as tf

#: The public namespaces, in the order of the pages; "" is `tf` itself.
NAMESPACES = [
    "",
    *(
        "app",
        "bayes",
        "bayes.hmc",
        "bayes.vi",
        "bitwise",
        "collective",
        "compat",
        "config",
        "data",
        "debugging",
        "distribute",
        "distribute.cluster_resolver",
        "distribute.experimental",
        "distributions",
        "dtypes",
        "errors",
        "estimator",
        "estimator.experimental",
        "estimator.export",
        "estimator.inputs",
        "estimator.tpu",
        "feature_column",
    ),
    *("flags", "gfile", "graph_util", "image", "initializers", "io", "keras", "layers", "linalg"),
    *("logging", "lookup", "losses", "manip", "math", "metrics", "models", "nest", "nn"),
    *(
        "parallel",
        "profiler",
        "python_io",
        "quantization",
        "queue",
        "ragged",
        "random",
        "resource_loader",
    ),
    *("saved_model", "sets", "signal", "sparse", "spectral", "strings", "summary", "sysconfig"),
    *("test", "train", "user_ops", "version", "nn.rnn_cell", "data.experimental"),
]

#: Those of `tf.contrib`; a test holds that none of its namespaces is left out.
CONTRIB = [
    f"contrib.{name}"
    for name in (
        *(f"bayesflow.{name}" for name in ("hmc", "metropolis_hastings", "monte_carlo")),
        *(f"boosted_trees.python.ops.{name}_ops" for name in ("model", "prediction", "training")),
        *(
            "cluster_resolver",
            "compiler.jit",
            "compiler.xla",
            "crf",
            "cudnn_rnn",
            "data",
            "deprecated",
            "distribute",
        ),
        *(
            "distributions",
            "distributions.bijectors",
            "eager",
            "estimator",
            "factorization",
            "feature_column",
            "framework",
            "gan",
        ),
        *(
            "gan.eval",
            "gan.features",
            "image",
            "layers",
            "learn",
            "learn.datasets",
            "learn.preprocessing",
        ),
        *(
            "legacy_seq2seq",
            "linear_optimizer",
            "lookup",
            "losses",
            "metrics",
            "mixed_precision",
            "nn",
            "opt",
            "predictor",
            "rnn",
            "seq2seq",
        ),
        *("slim", "slim.evaluation", "slim.learning", "slim.model_analyzer", "slim.queues"),
        *(f"slim.nets.{name}" for name in ("alexnet", "inception", "overfeat", "resnet_utils")),
        *("slim.nets.resnet_v1", "slim.nets.resnet_v2", "slim.nets.vgg", "slim.prefetch_queue"),
        *("staging", "summary", "tensor_forest", "tensorboard.plugins.projector", "testing"),
        *("tfprof.model_analyzer", "tfprof.tfprof_logger", "tpu", "training", "util"),
    )
]

_SECTION = re.compile(r"^(Args|Returns|Raises|Attributes|Yields|Note|Notes|References):\s*$")


def namespace(name: str) -> object:
    """The namespace `tf.<name>`."""
    value: object = tf
    for part in filter(None, name.split(".")):
        value = getattr(value, part)
    return value


def public(name: str) -> Iterator[tuple[str, object]]:
    """Names and values of a namespace that are Headrace's: no modules, nothing private."""
    space = namespace(name)
    for key in getattr(space, "__all__", None) or dir(space):
        if key.startswith("_"):
            continue
        value = getattr(space, key)
        # No other objects: to ask `tf.flags.FLAGS` for an attribute reads the command line.
        if not (inspect.isclass(value) or inspect.isroutine(value)):
            continue
        home = getattr(value, "__module__", None) or ""
        # absl is what tf.flags and tf.app are made of.
        if home.split(".")[0] in ("headrace", "absl"):
            yield key, value


def public_classes(namespaces: Sequence[str] = NAMESPACES) -> dict[str, type]:
    """The public classes of Headrace in these namespaces, each under its first name."""
    found: dict[type, str] = {}
    for name in namespaces:
        for key, value in public(name):
            if inspect.isclass(value) and value.__module__.startswith("headrace"):
                found.setdefault(value, ".".join(filter(None, ["tf", name, key])))
    return {label: value for value, label in found.items()}


def signature(value: object) -> str:
    """Parameters and defaults, without types; defaults that have no literal form are `...`."""
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return "()"
    parts = []
    seen_star = False
    for parameter in parameters:
        if parameter.name == "self":
            continue
        text = parameter.name
        if parameter.kind is parameter.VAR_POSITIONAL:
            text, seen_star = f"*{text}", True
        elif parameter.kind is parameter.VAR_KEYWORD:
            text = f"**{text}"
        elif parameter.kind is parameter.KEYWORD_ONLY and not seen_star:
            parts.append("*")
            seen_star = True
        if parameter.default is not parameter.empty:
            default = repr(parameter.default)
            known = re.fullmatch(r"[\w.+-]+|'[^'\\]*'|\([\w., +-]*\)|\[\]", default)
            text += f"={default if known else '...'}"
        parts.append(text)
    return f"({', '.join(parts)})"


def markdown(docstring: str) -> str:
    """A docstring as Markdown: sections become bold lines and lists, examples code blocks."""
    result: list[str] = []
    in_section = in_example = False
    for line in inspect.cleandoc(docstring).splitlines():
        stripped = line.strip()
        if not in_example and stripped.startswith(">>>"):
            result += ["", "```pycon"]
            in_example = True
        elif in_example and not stripped:
            result += ["```", ""]
            in_example = False
            continue
        if in_example:
            result.append(line)
            continue
        if found := _SECTION.match(line):
            in_section = True
            result += ["", f"**{found[1]}**", ""]
        elif in_section and line.startswith("    ") and not line.startswith("     "):
            head, colon, rest = stripped.partition(": ")
            simple = colon and re.fullmatch(r"[\w.*, `]+", head)
            result.append(
                f"- `{head.replace('`', '')}`: {escape(rest)}"
                if simple
                else f"- {escape(stripped)}"
            )
        elif in_section and line.startswith("     "):
            result.append(f"  {escape(stripped)}")
        else:
            in_section = in_section and not stripped
            result.append(
                escape(stripped) if not line.startswith("    ") else f"> {escape(stripped)}"
            )
    if in_example:
        result.append("```")
    return "\n".join(result).strip()


def escape(text: str) -> str:
    """Text without what Markdown would take as markup, outside of code."""
    pieces = re.split(r"(``.*?``|`[^`]*`)", text)
    for at in range(0, len(pieces), 2):
        pieces[at] = re.sub(r"([\[\]<>*_{}#|])", r"\\\1", pieces[at])
    result = "".join(pieces)
    return re.sub(r"^(\s*)([-+=:~])", r"\1\\\2", result)


def entry(label: str, value: object, labels: Mapping[int, str]) -> str:
    """The entry of a function or class, a class with its public methods.

    Args:
        labels: the label of each object that has an entry, by its `id`.
    """
    kind = "class" if inspect.isclass(value) else "function"
    lines = [f"::::{{py:{kind}}} {label}{signature(value)}", "", own_doc(value), ""]
    if inspect.isclass(value) and not issubclass(value, BaseException):
        members, bases = methods(value, labels)
        for key, member in sorted(members.items()):
            method = getattr(member, "__func__", member)
            # A method without a docstring does what that of the base class says.
            said = markdown(inspect.getdoc(getattr(value, key)) or "")
            if inspect.isfunction(method):
                lines += [f":::{{py:method}} {key}{signature(method)}", "", said, ":::"]
            elif isinstance(member, property):
                lines += [f":::{{py:property}} {key}", "", said, ":::"]
            lines.append("")
        if bases:
            more = ", ".join(f"{{py:obj}}`{base}`" for base in bases)
            lines += [f"Also what {more} has.", ""]
    return "\n".join([*lines, "::::", ""])


def methods(value: type, labels: Mapping[int, str]) -> tuple[dict[str, object], list[str]]:
    """Public members of a class, and the labels of the base classes whose entries have more.

    What comes from a base class without an entry is listed with the class.
    """
    members: dict[str, object] = {}
    bases: list[str] = []
    described: set[type] = set()
    for base in value.__mro__:
        if base in described or not base.__module__.startswith("headrace"):
            continue
        if base is not value and id(base) in labels:
            bases.append(labels[id(base)])
            described.update(base.__mro__)
        else:
            public = {k: v for k, v in vars(base).items() if not k.startswith("_")}
            members = {**public, **members}
    return members, bases


def own_doc(value: object) -> str:
    """The docstring of Headrace's objects; absl's has a form of its own and is not repeated."""
    home = getattr(value, "__module__", None) or "headrace"
    if home.startswith("absl"):
        return "See [absl](https://abseil.io/docs/python/)."
    return markdown(getattr(value, "__doc__", None) or "")


def write(folder: Path, namespaces: Sequence[str] | None = None) -> None:
    """Write the pages, of all namespaces unless told, and their index into `folder`."""
    namespaces = [*NAMESPACES, *CONTRIB] if namespaces is None else namespaces
    folder.mkdir(parents=True, exist_ok=True)
    names = {name: sorted(public(name), key=lambda item: item[0].lower()) for name in namespaces}
    labels: dict[int, str] = {}
    for name, found in names.items():
        for key, value in found:
            labels.setdefault(id(value), f"tf.{name}.{key}".replace("..", "."))
    for name, found in names.items():
        space = namespace(name)
        title = f"tf.{name}".rstrip(".")
        lines = [f"# {title}", "", escape((space.__doc__ or "").strip().split("\n")[0]), ""]
        same = []
        for key, value in found:
            label = f"{title}.{key}"
            if (known := labels[id(value)]) == label:
                lines.append(entry(label, value, labels))
            else:
                same.append(f"- `{label}`: {{py:obj}}`{known}`")
        if same:
            lines += ["## Other names", "", *same, ""]
        (folder / f"{name or 'tf'}.md").write_text("\n".join(lines))
    (folder / "index.md").write_text(index(namespaces))


def index(namespaces: Sequence[str]) -> str:
    """The page that lists the others."""
    lines = [
        "# API reference\n\nMade from the docstrings of the public namespaces. Examples have "
        "`import headrace as tf` before them.\nWhich symbols of TensorFlow 1.x are there is on "
        "[the coverage page](../api-coverage.md).\n"
    ]
    contrib = [name for name in namespaces if name.startswith("contrib.")]
    core = [name or "tf" for name in namespaces if name not in contrib]
    for caption, names in (("tf", core), ("tf.contrib", contrib)):
        if names:
            lines += ["```{toctree}", f":caption: {caption}", ":maxdepth: 1", "", *names, "```", ""]
    return "\n".join(lines)
