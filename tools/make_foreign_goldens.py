"""Write ``tests/golden/foreign/``: graphs in forms that programs of several ages left in files.

    PEER_PYTHON tools/make_foreign_goldens.py [NAME ...]

Under TensorFlow 1.15 it writes what 1.x wrote, under 2.21 (TF_USE_LEGACY_KERAS=1) what 2.x writes.
Each golden is NAME.meta.gz, a MetaGraphDef, and NAME.npz: ``in/<tensor>`` are the feeds of all
runs, ``out/<run>/<tensor>`` the results, in order, after the operation ``init`` where there is one;
``run/<run>/<operation>`` operations that were run with them.
"""

import gzip
import os
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as peer

OUT = Path(__file__).resolve().parent.parent / "tests" / "golden" / "foreign"
tf = peer.compat.v1
OLD = peer.__version__.startswith("1.")
PROGRAMS = {}


def program(function):
    PROGRAMS[function.__name__] = function
    return function


def values(*shape, **seed):
    return np.random.RandomState(seed.get("seed", 0)).standard_normal(shape).astype(np.float32)


def x_input(*shape):
    return tf.placeholder(tf.float32, shape or [3], "x")


def reference(initial, name, **arguments):
    return tf.Variable(initial, name=name, use_resource=False, **arguments)


# -- functions ----------------------------------------------------------------------------------


def functions_by_name():
    """Nodes whose op is a function of the library; one calls another, one reads a handle."""
    from tensorflow.python.framework import function

    @function.Defun(tf.float32, tf.float32, func_name="MyAdd")
    def my_add(a, b):
        return a + b

    @function.Defun(tf.float32, func_name="Outer", noinline=True)
    def outer(a):
        return my_add(a, 2.0 * a), tf.reduce_sum(a)

    @function.Defun(tf.float32, func_name="Captures")
    def captures(a):
        return a * v

    x = x_input()
    v = tf.Variable([1.0, 2.0, 3.0], name="v", use_resource=True)
    y, total = outer(my_add(x, x))
    tf.identity(y, "y")
    tf.identity(total, "total")
    tf.identity(captures(x), "z")
    tf.group(v.initializer, name="init")
    return {"x:0": values(3)}, [["y:0", "total:0", "z:0"]]


def gradients_of_functions():
    """SymbolicGradient, of a function and of one with a gradient function of its own."""
    from tensorflow.python.framework import function

    @function.Defun(tf.float32, tf.float32, func_name="Product")
    def product(a, b):
        return tf.tanh(a) * b, tf.reduce_sum(a * a)

    @function.Defun(tf.float32, tf.float32, func_name="CubeGrad")
    def cube_grad(a, dy):
        return 30.0 * a * dy

    @function.Defun(tf.float32, func_name="Cube", grad_func=cube_grad)
    def cube(a):
        return a * a * a

    x = x_input()
    a, b = product(x, x * 2.0)
    tf.gradients([a, b], x, name="dx")
    tf.identity(tf.gradients(a + b, x)[0], "grad")
    tf.identity(tf.gradients(cube(x), x)[0], "own")
    return {"x:0": values(3)}, [["grad:0", "own:0"]]


def calls():
    """PartitionedCall and StatefulPartitionedCall: functions that call functions."""
    v = tf.Variable([1.0, 2.0, 3.0], name="v", use_resource=True)
    x = x_input()

    @peer.function
    def inner(a):
        return peer.tanh(a) * 2.0

    @peer.function
    def outer(a):
        v.assign_add(a)
        return inner(a) + v.read_value(), peer.reduce_sum(a)

    y, total = outer(x)
    tf.identity(inner(x), "plain")
    tf.identity(y, "y")
    tf.identity(total, "total")
    tf.identity(tf.gradients(inner(inner(x)), x)[0], "grad")
    tf.group(v.initializer, name="init")
    return {"x:0": values(3)}, [["plain:0", "grad:0"], ["y:0", "total:0"], ["y:0"]]


def functional_control_flow():
    """While, If and Case of TensorFlow 2, with their gradients."""
    tf.enable_control_flow_v2()
    x = x_input()
    w = tf.Variable([0.5, 1.0, 1.5], name="w", use_resource=True)

    def body(i, y):
        return i + 1, tf.cond(i > 1, lambda: tf.sin(y) * w, lambda: y + w)

    _, y = tf.while_loop(lambda i, _: i < 4, body, [0, x])
    z = tf.cond(tf.reduce_sum(x) > 0, lambda: y * 2.0, lambda: y - 1.0)
    z = tf.switch_case(tf.cast(x[0] > 0, tf.int32), [lambda: z, lambda: z * x])
    array = tf.TensorArray(tf.float32, 4, element_shape=[3])
    _, array = tf.while_loop(
        lambda i, _: i < 4, lambda i, a: (i + 1, a.write(i, x * tf.cast(i, tf.float32))), [0, array]
    )
    mapped = tf.map_fn(lambda t: tf.tanh(t) * t, array.stack())
    total = tf.reduce_sum(z) + tf.reduce_sum(mapped)
    for name, grad in zip(("dx", "dw"), tf.gradients(total, [x, w])):  # noqa: B905
        tf.identity(grad, name)
    tf.identity(z, "z")
    tf.identity(mapped, "mapped")
    tf.group(w.initializer, name="init")
    if OLD:
        tf.disable_control_flow_v2()
    return {"x:0": values(3, seed=4)}, [["z:0", "mapped:0", "dx:0", "dw:0"]]


def placeholders():
    """PlaceholderV2, of before 0.12."""
    x = tf.placeholder(tf.float32, [2, 3], "x")
    tf.reduce_sum(x, 1, name="y")
    return {"x:0": values(2, 3)}, [["y:0"]]


def functions_with_old_control_flow():
    """Functions whose bodies have branches and loops by tokens."""
    from tensorflow.python.framework import function

    @function.Defun(tf.float32, func_name="Branches")
    def branches(a):
        return tf.cond(tf.reduce_sum(a) > 0, lambda: tf.tanh(a), lambda: a * 2.0)

    @function.Defun(tf.float32, tf.int32, func_name="Loops")
    def loops(a, n):
        i, y = tf.while_loop(lambda i, _: i < n, lambda i, y: (i + 1, y + a), [0, a])
        return branches(y), tf.identity(i)

    x = x_input()
    y, i = loops(x, 3)
    tf.identity(y, "y")
    tf.identity(i, "i")
    return {"x:0": values(3)}, [["y:0", "i:0"]]


def functions_with_attributes():
    """One function for several types; calls say which."""
    from tensorflow.python.framework import function

    @function.Defun(tf.float32, tf.float32, func_name="Scaled")
    def scaled(a, b):
        return a * b + a

    x = x_input()
    tf.identity(scaled(x, x), "y")
    tf.cast(x * 2.0, tf.int32, "n")
    return {"x:0": values(3)}, [["y:0"]]


def generic(message):
    """Make the function of the last program one of any type `T`, called with its type."""
    (definition,) = message.graph_def.library.function
    for arg in list(definition.signature.input_arg) + list(definition.signature.output_arg):
        arg.type, arg.type_attr = 0, "T"
    definition.signature.attr.add(name="T", type="type")
    for node in definition.node_def:
        if "T" in node.attr:
            node.attr["T"].placeholder = "T"
    for node in message.graph_def.node:
        if node.op == "Scaled":
            node.attr["T"].type = tf.float32.as_datatype_enum


# -- references -------------------------------------------------------------------------------


def reference_updates():
    """The outputs of updates of reference variables, fetched."""
    counter = reference(3.0, "counter")
    table = reference(values(4, 2), "table")
    ints = reference(0, "ints")
    x = x_input()
    with tf.name_scope("incr_counter_op"):
        counter.assign_add(2.0)
    tf.assign(counter, 7.0, name="set")
    tf.assign_sub(counter, 1.0, name="less")
    tf.scatter_update(table, [1, 3], [[5.0, 6.0], [7.0, 8.0]], name="rows")
    tf.scatter_add(table, [1], [[1.0, 1.0]], name="more")
    tf.scatter_nd_update(table, [[0, 1]], [9.0], name="one")
    tf.count_up_to(ints, 2, name="up")
    both = tf.assign_add(tf.assign(counter, 20.0, name="first"), x[0], name="second")
    tf.identity(both * 2.0, "used")
    tf.group(*[v.initializer for v in (counter, table, ints)], name="init")
    fetches = [
        *(
            ["incr_counter_op/AssignAdd:0"],
            ["less:0"],
            ["set:0"],
            ["rows:0"],
            ["more:0"],
            ["one:0"],
        ),
        *(["up:0"], ["up:0"], ["counter/Assign:0"], ["second:0"], ["used:0"], ["counter:0"]),
        *(["table:0"], ["first:0"]),
    ]
    return {"x:0": values(3)}, fetches


def switches_and_merges():
    """Outputs of Switch and Merge, fetched by name."""
    from tensorflow.python.ops import control_flow_ops

    x = x_input()
    truth = tf.reduce_sum(x) > 0
    y = tf.cond(truth, lambda: x * 2.0, lambda: x - 1.0, name="cond")
    tf.identity(y, "y")
    off, on = control_flow_ops.switch(x, truth, name="choose")
    merged, which = control_flow_ops.merge([tf.negative(off), tf.square(on)], name="join")
    tf.identity(merged + tf.cast(which, tf.float32), "z")
    return {"x:0": np.float32([1.0, 2.0, -0.5])}, [
        *(["y:0", "cond/Merge:0"], ["join:0"], ["join:1"], ["choose:1"], ["z:0"]),
        *(["cond/Merge:1"],),
    ]


# -- before 1.0 -------------------------------------------------------------------------------


def old_placeholders():
    """Before 0.12: `shape {}` of placeholders says that the shape is not known."""
    x = tf.placeholder(tf.float32, None, "x")
    serialized = tf.placeholder(tf.string, None, "examples")
    parsed = tf.parse_example(serialized, {"f": tf.FixedLenFeature([2], tf.float32)})
    tf.add(x, 1.0, name="y")
    tf.multiply(parsed["f"], 2.0, name="f")
    example = tf.train.Example()
    example.features.feature["f"].float_list.value.extend([1.5, 2.5])
    data = np.array([example.SerializeToString()])
    return {"x:0": values(2, 3), "examples:0": data}, [["y:0", "f:0"]]


def as_before_1_0(message):
    message.graph_def.versions.producer = 15
    for node in message.graph_def.node:
        if node.op == "Placeholder":
            node.attr["shape"].shape.Clear()
            node.attr["_output_shapes"].list.shape.add().unknown_rank = True
            if node.name == "x":
                shape = node.attr["_output_shapes"].list.shape[0]
                shape.Clear()
                shape.dim.add(size=-1)
                shape.dim.add(size=3)


def queues_and_loops():
    """A queue and a table inside of loops."""
    from tensorflow.python.ops import lookup_ops

    x = x_input()
    queue = tf.FIFOQueue(10, [tf.float32], [[]], name="queue")
    table = lookup_ops.HashTable(
        lookup_ops.KeyValueTensorInitializer(
            np.array([0, 1, 2], np.int64), np.array([10.0, 20.0, 30.0], np.float32)
        ),
        0.0,
    )

    def body(i, total):
        with tf.control_dependencies([queue.enqueue(tf.cast(i, tf.float32) + x[0])]):
            taken = queue.dequeue()
        found = table.lookup(tf.cast(i, tf.int64))
        return i + 1, total + taken + found

    _, y = tf.while_loop(lambda i, _: i < 3, body, [0, 0.0])
    tf.identity(y, "y")

    def fill(i):
        with tf.control_dependencies([queue.enqueue(tf.cast(i, tf.float32))]):
            return tf.identity(i + 1)

    filled = tf.while_loop(lambda i: i < 4, fill, [0])
    with tf.control_dependencies([filled]):
        tf.identity(queue.size(), "size")
        tf.identity(queue.dequeue_many(2), "taken")
    left = tf.while_loop(
        lambda total: queue.size() > 0, lambda total: total + queue.dequeue(), [0.0]
    )
    tf.identity(left, "left")
    tf.group(tf.tables_initializer(), name="init")
    return {"x:0": values(3)}, [["y:0"], ["taken:0"], ["left:0"]]


def queues_around_loops():
    """Loops and branches that wait for a queue to be filled, and fill it."""
    x = x_input()

    def new_queue(name):
        return tf.FIFOQueue(10, [tf.float32], [[]], name=name)

    first = new_queue("first")
    with tf.control_dependencies([first.enqueue_many([x])]):
        _, taken = tf.while_loop(
            lambda i, _: i < 3, lambda i, y: (i + 1, y + first.dequeue()), [0, 0.0]
        )
    tf.identity(taken, "waited")
    second = new_queue("second")
    with tf.control_dependencies([second.enqueue(x[0])]):
        chosen = tf.cond(x[0] > 0, lambda: second.dequeue(), lambda: -second.dequeue())
    tf.identity(chosen, "chosen")
    third = new_queue("third")

    def go_on(i, _):
        with tf.control_dependencies([third.enqueue(tf.cast(i, tf.float32))]):
            return i < 3

    def once(i, total):
        return i + 1, total + third.dequeue()

    _, asked = tf.while_loop(go_on, once, [0, 0.0])
    with tf.control_dependencies([asked]):
        left = third.size()
    tf.identity(asked, "asked")
    tf.identity(left, "left")
    fourth = new_queue("fourth")

    def fill(i):
        filled = tf.cond(
            tf.equal(i % 2, 0),
            lambda: fourth.enqueue(tf.cast(i, tf.float32)),
            lambda: fourth.enqueue(-1.0),
        )
        with tf.control_dependencies([filled]):
            return i + 1

    end = tf.while_loop(lambda i: i < 4, fill, [0])
    with tf.control_dependencies([end]):
        tf.identity(fourth.dequeue_many(4), "filled")
    fifth = new_queue("fifth")

    def outer(i, total):
        def inner(j):
            with tf.control_dependencies([fifth.enqueue(tf.cast(i * 10 + j, tf.float32))]):
                return j + 1

        with tf.control_dependencies([tf.while_loop(lambda j: j < 2, inner, [0])]):
            return i + 1, total + fifth.dequeue() + fifth.dequeue()

    _, nested = tf.while_loop(lambda i, _: i < 3, outer, [0, 0.0])
    tf.identity(nested, "nested")
    return {"x:0": np.float32([1.0, 2.0, 4.0])}, [
        *(["waited:0"], ["chosen:0"], ["asked:0", "left:0"], ["filled:0"], ["nested:0"]),
        *(["waited:0"],),
    ]


def queues_filled_in_the_same_step():
    """What takes from a queue and what fills it are fetched together, in this order."""
    x = x_input()

    def new_queue(name):
        return tf.FIFOQueue(10, [tf.float32], [[]], name=name)

    def total(queue, count):
        return tf.while_loop(
            lambda i, _: i < count, lambda i, y: (i + 1, y + queue.dequeue()), [0, 0.0]
        )[1]

    queues = [new_queue(f"queue_{i}") for i in range(4)]
    tf.identity(queues[0].dequeue(), "one")
    queues[0].enqueue(x[1], name="add_one")
    tf.identity(total(queues[1], 3), "sum")
    queues[1].enqueue_many([x], name="add_all")
    tf.identity(total(queues[2], 4), "looped")

    def fill(i):
        with tf.control_dependencies([queues[2].enqueue(tf.cast(i, tf.float32))]):
            return i + 1

    tf.identity(tf.while_loop(lambda i: i < 4, fill, [0]), "add_looped")
    chosen = tf.cond(x[0] > 0, lambda: queues[3].dequeue(), lambda: x[0])
    tf.identity(chosen, "chosen")
    added = tf.cond(x[0] > 0, lambda: queues[3].enqueue(5.0), lambda: tf.no_op())
    tf.identity(added, "add_chosen")
    return {"x:0": np.float32([1.0, 2.0, 4.0])}, [
        *(["one:0", "add_one"], ["sum:0", "add_all"], ["looped:0", "add_looped:0"]),
        *(["chosen:0", "add_chosen:0"], ["add_all", "add_one", "one:0", "sum:0"]),
    ]


def queues_and_loops_by_reference():
    """The same as of before 1.0: handles of queues and tables are references to strings."""
    return queues_and_loops()


def with_references(message):
    for node in message.graph_def.node:
        older = node.op[:-2] if node.op.endswith("V2") else ""
        if older.startswith(("FIFOQueue", "Queue", "HashTable", "LookupTable", "InitializeTable")):
            node.op = older
            node.attr.pop("use_node_name_sharing", None)
        handle = node.attr["T"].type == 20 if "T" in node.attr else False
        if node.op in ("Enter", "Switch", "Exit", "Merge", "NextIteration") and handle:
            node.op = "Ref" + node.op
            node.attr["T"].type = 7
        for name in ("_output_shapes",):
            node.attr.pop(name, None)
    message.graph_def.versions.producer = 20


# -- collections ------------------------------------------------------------------------------


def collections():
    """Variables and tensors in collections under keys of the program's own."""
    v = reference([1.0, 2.0], "v")
    w = tf.Variable([3.0], name="w", use_resource=True)
    tf.add_to_collection("mine", v)
    tf.add_to_collection("handles", w)
    tf.add_to_collection("mixed", v)
    tf.add_to_collection("mixed", w)
    tf.add_to_collection("tensors", v * 2.0)
    tf.add_to_collection("numbers", 7)
    tf.train.get_or_create_global_step()
    tf.group(tf.global_variables_initializer(), name="init")
    return {}, [["v:0"]]


if OLD:
    for function in (
        *(functions_by_name, gradients_of_functions, calls, functional_control_flow, placeholders),
        *(functions_with_old_control_flow, functions_with_attributes),
        *(reference_updates, switches_and_merges, old_placeholders, queues_and_loops),
        *(queues_around_loops, queues_filled_in_the_same_step, queues_and_loops_by_reference),
        collections,
    ):
        program(function)
else:

    @program
    def functional_control_flow_v2():
        return functional_control_flow()

    @program
    def calls_v2():
        return calls()


def write(names):
    OUT.mkdir(exist_ok=True)
    for name, build in PROGRAMS.items():
        if names and name not in names:
            continue
        results = {}
        with tf.Graph().as_default() as graph:
            feeds, runs = build()
            message = tf.train.export_meta_graph()
            if not OLD:
                message.meta_info_def.ClearField("stripped_op_list")
            nodes = {op.name for op in graph.get_operations()}
            # Lowered to tokens, loops run otherwise than as functions where their order is free.
            with tf.Session() as session:
                if "init" in nodes:
                    session.run("init")
                for i, fetches in enumerate(runs):
                    found = session.run(fetches, feeds)
                    for fetch, value in zip(fetches, found):  # noqa: B905
                        kind = "run" if value is None else "out"
                        results[f"{kind}/{i}/{fetch}"] = np.zeros(0) if value is None else value
        if name == "old_placeholders":
            as_before_1_0(message)
        if name == "queues_and_loops_by_reference":
            with_references(message)
            check_again(message, feeds, runs)
        if name == "functions_with_attributes":
            generic(message)
        if name == "placeholders":
            message.graph_def.node[0].op = "PlaceholderV2"
            message.graph_def.versions.producer = 20
        with gzip.GzipFile(str(OUT / (name + ".meta.gz")), "wb", 9, mtime=0) as file:
            file.write(message.SerializeToString())
        given = {"in/" + k: v for k, v in feeds.items()}
        np.savez(str(OUT / (name + ".npz")), **dict(given, **results))
        print(name, len(message.graph_def.node), len(message.graph_def.library.function))


def check_again(message, feeds, runs):
    """Run a graph that was changed since its results were stored."""
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(message.graph_def, name="")
        session.run("init")
        print([session.run(fetches, feeds) for fetches in runs])


if __name__ == "__main__":
    tf.disable_eager_execution()
    write(sys.argv[1:])
