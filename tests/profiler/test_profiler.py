"""``tf.profiler``: figures, views, options, output."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as tf
from headrace.settings import flags

Builder = tf.profiler.ProfileOptionBuilder


def quiet(options: dict[str, Any]) -> dict[str, Any]:
    return Builder(options).with_empty_output().build()


@pytest.fixture
def graph() -> Any:
    """Two dense layers and a convolution."""
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [8, 16], name="x")
        for name, units in (("fc1", 32), ("fc2", 10)):
            with tf.variable_scope(name):
                w = tf.get_variable("w", [x.shape[1], units], initializer=tf.ones_initializer())
                b = tf.get_variable("b", [units], initializer=tf.zeros_initializer())
                x = tf.nn.relu(tf.nn.bias_add(tf.matmul(x, w), b))
        k = tf.get_variable("conv/k", [1, 3, 1, 4], initializer=tf.ones_initializer())
        y = tf.nn.conv2d(tf.reshape(x, [8, 1, 10, 1]), k, [1, 1, 1, 1], "SAME")
        tf.get_variable("frozen", [7], trainable=False)
        tf.reduce_mean(tf.square(y), name="loss")
        yield graph


@pytest.fixture
def traced(graph: Any, monkeypatch: Any) -> Any:
    monkeypatch.setattr(flags, "trace_ops", True)
    return traced_step(graph)


def traced_step(graph: Any) -> Any:
    metadata = tf.RunMetadata()
    with tf.Session(graph=graph) as session:
        session.run(tf.global_variables_initializer())
        session.run(
            "loss:0",
            {"x:0": np.ones((8, 16))},
            options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE),
            run_metadata=metadata,
        )
    return metadata


def tree(node: Any) -> Any:
    return {child.name: tree(child) for child in node.children}


def test_parameters_of_trained_variables(graph: Any, capsys: Any) -> None:
    root = tf.profiler.profile(graph)
    assert root.total_parameters == 16 * 32 + 32 + 32 * 10 + 10 + 12
    assert tree(root) == {
        "conv": {"conv/k": {}},
        "fc1": {"fc1/b": {}, "fc1/w": {}},
        "fc2": {"fc2/b": {}, "fc2/w": {}},
    }
    leaf = root.children[0].children[0]
    assert [d.size for d in leaf.shapes[0].dim] == [1, 3, 1, 4]
    printed = capsys.readouterr().out
    assert "node name | # parameters\n_TFProfRoot (--/886 params)\n" in printed
    assert "\n  fc1 (--/544 params)\n    fc1/b (32, 32/32 params)\n" in printed


def test_float_operations(graph: Any) -> None:
    root = tf.profiler.profile(graph, options=quiet(Builder.float_operation()))
    found = {n.name: n.float_ops for n in root.children}
    assert found == {
        "fc1/MatMul": 2 * 8 * 16 * 32,
        "fc2/MatMul": 2 * 8 * 32 * 10,
        "Conv2D": 2 * 8 * 10 * 4 * 3,
        "Square": 320,
        "loss": 320,
        "fc1/BiasAdd": 256,
        "fc2/BiasAdd": 80,
        "frozen/Initializer/random_uniform": 7,
    }
    assert root.total_float_ops == sum(found.values()) + 7 + 1
    order = [n.total_float_ops for n in root.children]
    assert order == sorted(order, reverse=True)


def _flops(build: Any) -> int:
    with tf.Graph().as_default() as graph:
        build()
        return int(
            tf.profiler.profile(graph, options=quiet(Builder.float_operation())).total_float_ops
        )


@pytest.mark.parametrize(
    ("build", "count"),
    [
        (lambda: tf.matmul(tf.ones([4, 3]), tf.ones([4, 5]), transpose_a=True), 2 * 3 * 4 * 5),
        (lambda: tf.matmul(tf.ones([2, 3, 4]), tf.ones([2, 4, 5])), 2 * 2 * 3 * 4 * 5),
        (lambda: tf.nn.max_pool(tf.ones([2, 8, 8, 3]), [1, 2, 2, 1], [1, 2, 2, 1], "VALID"), 384),
        (
            lambda: tf.nn.depthwise_conv2d(
                tf.ones([1, 5, 5, 3]), tf.ones([2, 2, 3, 2]), [1, 1, 1, 1], "SAME"
            ),
            5 * 5 * 6 * 4 * 2,
        ),
        (lambda: tf.nn.l2_loss(tf.ones([10])), 29),
        (lambda: tf.nn.softmax(tf.ones([2, 3])), 30),
        (lambda: tf.add_n([tf.ones([4])] * 3), 8),
        (lambda: tf.reduce_sum(tf.ones([4, 5]), axis=1), 16),
        (lambda: tf.rsqrt(tf.ones([4])), 8),
        (lambda: tf.nn.relu(tf.ones([4])), 0),
    ],
)
def test_counts_are_those_of_tensorflow(build: Any, count: int) -> None:
    assert _flops(build) == count


def test_gradients_count_too() -> None:
    def build() -> None:
        x, w = tf.placeholder(tf.float32, [2, 8, 8, 3]), tf.placeholder(tf.float32, [3, 3, 3, 4])
        y = tf.nn.conv2d(x, w, [1, 2, 2, 1], "SAME")
        tf.gradients(y, [x, w])

    forward = 2 * 2 * 4 * 4 * 4 * 9 * 3
    assert _flops(build) == 3 * forward


def test_unknown_shapes_are_told(capsys: Any) -> None:
    assert _flops(lambda: tf.square(tf.placeholder(tf.float32, [None]))) == 0
    assert "1 ops have shapes that are not known" in capsys.readouterr().err


def test_an_op_log_adds_types_and_counts(graph: Any) -> None:
    log = tf.profiler.OpLogProto()
    log.log_entries.add(name="x", float_ops=1000, types=["mine"])
    options = quiet(Builder(Builder.float_operation()).with_accounted_types(["mine"]).build())
    root = tf.profiler.profile(graph, op_log=log, options=options)
    assert (root.total_float_ops, [n.name for n in root.children]) == (1000, ["x"])


def test_types(graph: Any, capsys: Any) -> None:
    root = tf.profiler.profile(graph, cmd="op", options=Builder.float_operation())
    first = root.children[0]
    assert (first.name, first.float_ops) == ("MatMul", 8192 + 5120)
    assert first.total_float_ops == root.total_float_ops
    second = first.children[0]
    assert second.name == "Conv2D"
    assert second.total_float_ops == root.total_float_ops - first.float_ops
    assert [n.name for n in first.graph_nodes] == ["fc1/MatMul", "fc2/MatMul"]
    assert re.search(r"\nMatMul +13.31k flops \(100.00%, \d\d", capsys.readouterr().out)


def test_times(graph: Any, traced: Any) -> None:
    options = quiet(Builder.time_and_memory(min_micros=0, min_bytes=0))
    root = tf.profiler.profile(graph, run_meta=traced, options=options)
    assert root.total_exec_micros == root.total_cpu_exec_micros > 0
    fc1 = next(n for n in root.children if n.name == "fc1")
    matmul = next(n for n in fc1.children if n.name == "fc1/MatMul")
    assert matmul.requested_bytes == 8 * 32 * 4
    assert matmul.run_count == 1
    assert "CPU" in matmul.devices[0]
    times = [n.total_exec_micros for n in root.children]
    assert times == sorted(times, reverse=True)
    lines = tf.profiler.profile(graph, run_meta=traced, cmd="code", options=options)
    assert all(n.name.startswith("test_profiler.py:") for n in lines.children)
    below = tf.profiler.profile(graph, run_meta=traced, cmd="graph", options=options)
    assert below.total_exec_micros == root.total_exec_micros


def test_steps_of_a_profiler(graph: Any, traced: Any) -> None:
    profiler = tf.profiler.Profiler(graph)
    profiler.add_step(3, traced)
    for device in traced.step_stats.dev_stats:
        for record in device.node_stats:
            record.all_end_rel_micros += 100
    profiler.add_step(5, traced)

    def micros(step: int) -> int:
        options = Builder(quiet(Builder.time_and_memory(0, 0))).with_step(step).build()
        root = profiler.profile_operations(options)
        return int(root.total_exec_micros)

    assert micros(5) > micros(3)
    assert abs(micros(-1) - (micros(3) + micros(5)) / 2) <= 20
    with pytest.raises(tf.errors.NotFoundError, match=r"no step 4; added were \[3, 5\]"):
        micros(4)
    options = quiet(Builder.trainable_variables_parameter())
    assert profiler.profile_name_scope(options).total_parameters == 886
    assert profiler.profile_python(options).total_parameters == 886
    assert profiler.profile_graph(options).total_parameters == 886
    log = tf.profiler.OpLogProto.FromString(profiler.serialize_to_string())
    assert {e.name: e.float_ops for e in log.log_entries}["fc1/MatMul"] == 8192


def test_names_and_depth(graph: Any) -> None:
    def shown(builder: Any) -> Any:
        return tree(tf.profiler.profile(graph, options=builder.with_empty_output().build()))

    def begin() -> Any:
        return Builder(Builder.trainable_variables_parameter())

    fc = {"fc1": {"fc1/b": {}, "fc1/w": {}}, "fc2": {"fc2/b": {}, "fc2/w": {}}}
    assert shown(begin().with_node_names(show_name_regexes=["fc.*"])) == fc
    assert shown(begin().with_node_names(hide_name_regexes=["conv.*"])) == fc
    assert shown(begin().with_node_names(start_name_regexes=["fc1"])) == {"fc1": fc["fc1"]}
    trimmed = shown(begin().with_node_names(trim_name_regexes=["fc.*"]))
    assert trimmed == {"conv": {"conv/k": {}}}
    assert shown(begin().with_min_parameters(300)) == {"fc1/w": {}, "fc2/w": {}}
    assert shown(begin().with_max_depth(1)) == {}
    assert list(shown(begin().order_by("params"))) == ["fc1", "fc2", "conv"]


def test_totals_of_what_is_not_shown(graph: Any) -> None:
    options = Builder(quiet(Builder.trainable_variables_parameter()))
    options.with_node_names(show_name_regexes=["fc1.*"])
    assert tf.profiler.profile(graph, options=options.build()).total_parameters == 544
    options.account_displayed_op_only(False)
    assert tf.profiler.profile(graph, options=options.build()).total_parameters == 886


def test_output(graph: Any, traced: Any, tmp_path: Path, capsys: Any) -> None:
    options = Builder(Builder.trainable_variables_parameter())
    path = str(tmp_path / "report")
    tf.profiler.profile(graph, options=options.with_file_output(path).build())
    assert "_TFProfRoot (--/886 params)" in Path(path).read_text()
    options = Builder(Builder.time_and_memory()).with_timeline_output(str(tmp_path / "trace"))
    tf.profiler.profile(graph, run_meta=traced, options=options.build())
    assert json.loads((tmp_path / "trace_0").read_text())["traceEvents"]
    assert capsys.readouterr().out == ""
    options.select(["micros", "occurrence", "op_types", "device"]).with_stdout_output()
    tf.profiler.profile(graph, run_meta=traced, options=options.build())
    assert re.search(r"fc1/MatMul \(.*CPU:0, .*MatMul, 1\|1\)", capsys.readouterr().out)
    with pytest.raises(tf.errors.UnimplementedError, match="'pprof'"):
        tf.profiler.profile(graph, options=options.with_pprof_output("x").build())


def test_wrong_options(graph: Any) -> None:
    options = quiet(Builder.float_operation())
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"unknown cmd: scop\. Did"):
        tf.profiler.profile(graph, cmd="scop", options=options)
    with pytest.raises(tf.errors.InvalidArgumentError, match="ordered by 'flots'"):
        tf.profiler.profile(graph, options={**options, "order_by": "flots"})
    with pytest.raises(tf.errors.InvalidArgumentError, match="no regular expression"):
        tf.profiler.profile(graph, options={**options, "show_name_regexes": ["("]})
    with pytest.raises(tf.errors.InvalidArgumentError, match="no checker"):
        tf.profiler.advise(graph, options={"Nothing": {}})


def test_deep_graphs(capsys: Any) -> None:
    with tf.Graph().as_default() as graph:
        x = tf.ones([2])
        for _ in range(3000):
            x = tf.square(x)
        options = quiet(Builder.float_operation())
        root = tf.profiler.profile(graph, cmd="op", options=options)
        assert root.total_float_ops == 6000
        stdout = Builder(options).with_stdout_output().with_max_depth(5).build()
        shown = tf.profiler.profile(graph, cmd="graph", options=stdout)
        assert shown.total_float_ops == 10


def test_advice(graph: Any, traced: Any, capsys: Any) -> None:
    advice = tf.profiler.advise(graph, run_meta=traced)
    reports = advice.checkers["ExpensiveOperationChecker"].reports
    assert reports[0].startswith("top 1 operation type: ")
    assert reports[1].startswith("top 1 scope: ")
    assert reports[0] in capsys.readouterr().out
    again = tf.profiler.Profiler(graph)
    again.add_step(0, traced)
    assert again.advise({"AcceleratorUtilizationChecker": {}}).checkers.keys() == {
        "AcceleratorUtilizationChecker"
    }


def test_op_logs_are_written(graph: Any, tmp_path: Path) -> None:
    tf.profiler.write_op_log(graph, str(tmp_path))
    log = tf.profiler.OpLogProto.FromString((tmp_path / "tfprof_log").read_bytes())
    entries = {e.name: list(e.types) for e in log.log_entries}
    assert entries["fc1/w"] == ["_trainable_variables"]


def test_old_names(graph: Any, capsys: Any) -> None:
    analyzer = tf.contrib.tfprof.model_analyzer
    stats = analyzer.print_model_analysis(
        graph, tfprof_options=analyzer.TRAINABLE_VARS_PARAMS_STAT_OPTIONS
    )
    assert stats.total_parameters == 886
    stats = analyzer.print_model_analysis(graph, tfprof_options=analyzer.FLOAT_OPS_OPTIONS)
    assert stats.total_float_ops > 15000
    assert "fc1/MatMul (8.19k/8.19k flops)" in capsys.readouterr().out
    assert tf.contrib.tfprof.tfprof_logger.write_op_log is tf.profiler.write_op_log
