"""Our protocol buffers read TensorFlow's files whole and write the same bytes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from google.protobuf import text_format, unknown_fields
from google.protobuf.message import Message

from headrace.graph import proto

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "proto"
MESSAGES = ["ConfigProto", "Event", "Example", "GraphDef", "MetaGraphDef", "RunMetadata"]


def golden(name: str) -> bytes:
    return (GOLDEN / f"{name}.pb").read_bytes()


def unknown_numbers(message: Message) -> list[str]:
    """Where in a message, and in those below it, there are fields that our files do not know."""
    kind = message.DESCRIPTOR.full_name
    found = [f"{kind}: {field.field_number}" for field in unknown_fields.UnknownFieldSet(message)]
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if isinstance(value, Message):
            below = [value]
        elif field.message_type.GetOptions().map_entry:
            below = [each for each in value.values() if isinstance(each, Message)]
        else:
            below = list(value)
        for each in below:
            if each.DESCRIPTOR.file.package == "headrace":
                found += unknown_numbers(each)
    return found


@pytest.mark.parametrize("name", MESSAGES)
def test_messages_of_tensorflow_are_read_whole(name):
    data = golden(name)
    message = getattr(proto, name).FromString(data)
    allowed = {"headrace.MetaGraphDef: 7"}  # the object graph, kept unread
    assert set(unknown_numbers(message)) <= allowed
    assert message.SerializeToString(deterministic=True) == data


@pytest.mark.parametrize("name", [name for name in MESSAGES if name != "MetaGraphDef"])
def test_messages_of_tensorflow_survive_text(name):
    message = getattr(proto, name).FromString(golden(name))
    text = text_format.MessageToString(message)
    assert text_format.Parse(text, getattr(proto, name)()) == message


def test_graph_def_of_tensorflow_has_what_the_program_built():
    graph = proto.GraphDef.FromString(golden("GraphDef"))
    nodes = {node.name: node for node in graph.node}
    assert nodes["y"].op == "MatMul"
    assert nodes["y"].device == "/job:ps/task:1"
    assert list(nodes["y"].input) == ["x", "w/read"]
    assert nodes["y"].attr["transpose_a"].b is False
    assert nodes["y"].attr["T"].type == proto.DataType.Value("DT_FLOAT")
    assert [dim.size for dim in nodes["x"].attr["shape"].shape.dim] == [-1, 3]
    assert nodes["w"].op == "VariableV2"
    assert any(name.startswith("^") for node in graph.node for name in node.input)
    assert nodes["parts"].attr["num_split"].i == 2


def test_meta_graph_of_tensorflow_has_collections_saver_and_signature():
    meta = proto.MetaGraphDef.FromString(golden("MetaGraphDef"))
    variables = [
        proto.VariableDef.FromString(value)
        for value in meta.collection_def["trainable_variables"].bytes_list.value
    ]
    assert [(v.variable_name, v.is_resource) for v in variables] == [("w:0", False)]
    assert list(meta.collection_def["updates"].node_list.value) == ["GradientDescent"]
    assert list(meta.collection_def["sizes"].int64_list.value) == [7]
    assert list(meta.collection_def["rates"].float_list.value) == [0.5]
    assert meta.saver_def.version == proto.SaverDef.V2
    assert meta.signature_def["serve"].inputs["x"].name == "x:0"
    assert "MatMul" in {op.name for op in meta.meta_info_def.stripped_op_list.op}


def test_options_as_users_write_them():
    config = proto.ConfigProto(
        allow_soft_placement=True,
        log_device_placement=True,
        device_count={"CPU": 2, "GPU": 0},
        inter_op_parallelism_threads=3,
        gpu_options=proto.GPUOptions(allow_growth=True, per_process_gpu_memory_fraction=0.3),
        graph_options=proto.GraphOptions(
            optimizer_options=proto.OptimizerOptions(opt_level=proto.OptimizerOptions.L0)
        ),
        cluster_def=proto.ClusterDef(
            job=[
                proto.JobDef(name="ps", tasks={0: "a:1"}),
                proto.JobDef(name="worker", tasks={2: "b:2"}),
            ]
        ),
    )
    assert config.SerializeToString(deterministic=True) == golden("ConfigProto")


def test_every_name_of_the_package_is_of_its_file():
    listed = set()
    for file in proto._NAMES:
        module = __import__(f"headrace.graph.proto.{file}", fromlist=["DESCRIPTOR"])
        descriptor = module.DESCRIPTOR
        listed |= {*descriptor.message_types_by_name, *descriptor.enum_types_by_name}
    assert listed == set(proto.__all__)
    for name in proto.__all__:
        full = getattr(proto, name).DESCRIPTOR.full_name
        assert full in (f"headrace.{name}", f"headrace.tfprof.{name}")


def test_unknown_name_of_the_package():
    with pytest.raises(AttributeError, match=r"headrace\.graph\.proto' has no attribute 'GrafDef'"):
        _ = proto.GrafDef


@pytest.mark.process
def test_all_files_load_without_warnings():
    program = "from headrace.graph import proto; [getattr(proto, name) for name in proto.__all__]"
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)
