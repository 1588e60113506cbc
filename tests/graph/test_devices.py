"""Device names: parsing, the canonical spelling, merging of scopes and the partial order."""

import copy
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.graph import devices
from headrace.graph.devices import DeviceSpec, canonical_name, is_compatible, matches, merge

EXAMPLES = (
    "valid ones are '/cpu:0', '/device:GPU:1', '/job:ps/task:3' and "
    "'/job:worker/replica:0/task:17/device:GPU:*'"
)

# Derandomised, and without a deadline: a loaded machine must not fail a law.
laws = settings(max_examples=60, deadline=None, derandomize=True)
specs = st.builds(
    DeviceSpec,
    job=st.sampled_from([None, "ps", "worker"]),
    replica=st.sampled_from([None, 0, 1]),
    task=st.sampled_from([None, 0, 17]),
    device_type=st.sampled_from([None, "CPU", "GPU"]),
    device_index=st.sampled_from([None, 0, 3]),
)
names = specs.map(DeviceSpec.to_string)


@pytest.mark.parametrize(
    ("name", "canonical"),
    [
        ("", ""),
        ("/", ""),
        ("/cpu:0", "/device:CPU:0"),
        ("cpu:0", "/device:CPU:0"),
        ("/CPU:0", "/device:CPU:0"),
        ("/gpu:1", "/device:GPU:1"),
        ("/gpu", "/device:GPU:*"),
        ("/gpu:*", "/device:GPU:*"),
        ("/tpu:2", "/device:TPU:2"),
        ("/null:2", "/device:NULL:2"),
        ("/device:GPU:0", "/device:GPU:0"),
        ("/device:gpu:0", "/device:GPU:0"),
        ("/device:GPU", "/device:GPU:*"),
        ("/device:XLA_GPU:1", "/device:XLA_GPU:1"),
        ("/device:CPU:*", "/device:CPU:*"),
        ("/device:*:3", "/device:*:3"),
        ("/device:*:*", ""),
        ("/job:ps/task:3", "/job:ps/task:3"),
        ("/task:3/job:ps", "/job:ps/task:3"),
        ("/job:ps//task:03/", "/job:ps/task:3"),
        ("/job:*/task:*", ""),
        ("/job:my-job.2", "/job:my-job.2"),
        (
            "/job:worker/replica:0/task:17/device:gpu:3",
            "/job:worker/replica:0/task:17/device:GPU:3",
        ),
        (
            "/job:worker/replica:0/task:17/gpu:3",
            "/job:worker/replica:0/task:17/device:GPU:3",
        ),
    ],
)
def test_canonical_name(name, canonical):
    assert canonical_name(name) == canonical
    assert canonical_name(canonical) == canonical
    assert DeviceSpec.from_string(name).to_string() == canonical


@pytest.mark.parametrize(
    ("name", "component", "why"),
    [
        ("/jobs:ps", "jobs:ps", "is no part of a device name"),
        ("/job:ps/frob:1", "frob:1", "is no part of a device name"),
        ("some text", "some text", "is no part of a device name"),
        ("/job:", "job:", "should be 'job:' and a name"),
        ("/job", "job", "should be 'job:' and a name"),
        ("/job:a:b", "job:a:b", "should be 'job:' and a name"),
        ("/job:7up", "job:7up", "should be 'job:' and a name"),
        ("/task", "task", "should be 'task:' and a number"),
        ("/replica:1:2", "replica:1:2", "should be 'replica:' and a number"),
        ("/task:x", "task:x", "needs a whole number or '*' in place of 'x'"),
        ("/task:-1", "task:-1", "needs a whole number or '*' in place of '-1'"),
        ("/gpu:zero", "gpu:zero", "needs a whole number or '*' in place of 'zero'"),
        ("/gpu:", "gpu:", "needs a whole number or '*' in place of ''"),
        ("/device", "device", "should be a device type and at most one index"),
        ("/cpu:0:1", "cpu:0:1", "should be a device type and at most one index"),
        ("/device::1", "device::1", "has no valid device type, but ''"),
        ("/device:0", "device:0", "has no valid device type, but '0'"),
        ("/cpu:0/gpu:1", "gpu:1", "names again what an earlier component named"),
        ("/task:0/task:0", "task:0", "names again what an earlier component named"),
    ],
)
def test_malformed_names(name, component, why):
    text = f"Malformed device name {name!r}: component {component!r} {why}; {EXAMPLES}."
    for refuse in (canonical_name, DeviceSpec.from_string, lambda n: merge("", n)):
        with pytest.raises(ValueError, match="Malformed") as caught:
            refuse(name)
        assert str(caught.value) == text


def test_a_device_must_be_a_name_or_a_spec():
    assert canonical_name(None) == ""
    assert canonical_name(DeviceSpec(job="ps")) == "/job:ps"
    with pytest.raises(TypeError) as caught:
        canonical_name(3)
    assert str(caught.value) == (
        "A device must be a string, a DeviceSpec or None, not 3 of type int."
    )


def test_fields():
    spec = DeviceSpec.from_string("/job:w/replica:1/task:2/gpu:3")
    fields = (spec.job, spec.replica, spec.task, spec.device_type, spec.device_index)
    assert fields == ("w", 1, 2, "GPU", 3)
    assert DeviceSpec("w", 1, 2, "gpu", 3) == spec
    assert DeviceSpec(task="2").task == 2
    assert repr(spec) == "DeviceSpec('/job:w/replica:1/task:2/device:GPU:3')"
    assert spec != "/job:w/replica:1/task:2/device:GPU:3"


def test_fields_can_be_set():
    spec = DeviceSpec()
    spec.job, spec.replica, spec.task, spec.device_type, spec.device_index = "ps", 0, 4, "cpu", 0
    assert spec.to_string() == "/job:ps/replica:0/task:4/device:CPU:0"
    spec.device_type = None
    spec.device_index = None
    assert spec.to_string() == "/job:ps/replica:0/task:4"
    with pytest.raises(TypeError, match="unhashable"):
        hash(spec)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"job": "a/b"}, f"Invalid job name 'a/b' in a device; {EXAMPLES}."),
        ({"job": ""}, f"Invalid job name '' in a device; {EXAMPLES}."),
        ({"device_type": "G:P"}, f"Invalid device type 'G:P'; {EXAMPLES}."),
        ({"task": -1}, "Invalid task -1 in a device: must be >= 0."),
        ({"device_index": -2}, "Invalid device_index -2 in a device: must be >= 0."),
    ],
)
def test_invalid_fields(fields, text):
    spec = DeviceSpec(job="w")
    (name, value), *_ = fields.items()
    for refuse in (lambda: DeviceSpec(**fields), lambda: setattr(spec, name, value)):
        with pytest.raises(ValueError, match="Invalid") as caught:
            refuse()
        assert str(caught.value) == text
    assert spec == DeviceSpec(job="w")


def test_parse_from_string_replaces_all_fields_or_none():
    spec = DeviceSpec(job="w", task=1)
    assert spec.parse_from_string("/gpu:0") is spec
    assert spec == DeviceSpec(device_type="GPU", device_index=0)
    with pytest.raises(ValueError, match="Malformed"):
        spec.parse_from_string("/job:ps/gpu:x")
    assert spec == DeviceSpec(device_type="GPU", device_index=0)


@pytest.mark.parametrize(
    ("outer", "inner", "merged"),
    [
        ("/job:ps/task:3", "/gpu:0", "/job:ps/task:3/device:GPU:0"),
        ("/job:ps/task:3", "/task:4", "/job:ps/task:4"),
        ("/gpu:1", "/cpu:0", "/device:CPU:0"),
        ("/gpu:1", "/cpu:*", "/device:CPU:1"),
        ("/gpu:1", "", "/device:GPU:1"),
        ("", "/gpu:1", "/device:GPU:1"),
        ("/job:w/cpu:0", "/job:ps/replica:1", "/job:ps/replica:1/device:CPU:0"),
    ],
)
def test_merge(outer, inner, merged):
    assert merge(outer, inner) == merged
    spec = DeviceSpec.from_string(outer)
    made = spec.make_merged_spec(DeviceSpec.from_string(inner))
    assert made.to_string() == merged
    assert spec == DeviceSpec.from_string(outer)
    spec.merge_from(DeviceSpec.from_string(inner))
    assert spec.to_string() == merged


def test_merge_device_fills_in_what_the_operation_leaves_open():
    fill = devices.merge_device("/job:ps/task:1/cpu:0")
    assert fill(SimpleNamespace(device="/task:2")) == "/job:ps/task:2/device:CPU:0"
    assert fill(SimpleNamespace(device="")) == "/job:ps/task:1/device:CPU:0"
    assert fill(SimpleNamespace(device=None)) == "/job:ps/task:1/device:CPU:0"
    assert devices.merge_device(None)(SimpleNamespace(device="/gpu:0")) == "/device:GPU:0"
    with pytest.raises(ValueError, match="Malformed"):
        devices.merge_device("/nothing")


@pytest.mark.parametrize(
    ("constraint", "device", "covered"),
    [
        ("", "/job:w/task:0/cpu:0", True),
        ("/cpu:0", "/job:w/task:0/cpu:0", True),
        ("/cpu:*", "/job:w/task:0/cpu:1", True),
        ("/gpu:*", "/job:w/task:0/cpu:1", False),
        ("/job:ps", "/job:w/task:0/cpu:0", False),
        ("/job:w/task:0", "/job:w", False),
        ("/cpu:0", "", False),
    ],
)
def test_matches(constraint, device, covered):
    assert matches(constraint, device) is covered
    spec, other = DeviceSpec.from_string(constraint), DeviceSpec.from_string(device)
    assert spec.covers(other) is covered


def test_is_compatible():
    assert is_compatible("/job:ps", "/gpu:0")
    assert is_compatible("/job:ps/task:0", "/job:ps/cpu:0")
    assert not is_compatible("/job:ps/task:0", "/job:ps/task:1")
    assert DeviceSpec(job="ps").is_compatible(DeviceSpec(task=1))
    assert not DeviceSpec(job="ps").is_compatible(DeviceSpec(job="w"))


def test_replace_and_copy_make_new_specs():
    spec = DeviceSpec(job="w", task=1)
    assert spec.replace(task=2, device_type="gpu") == DeviceSpec("w", None, 2, "GPU")
    twin = copy.copy(spec)
    twin.task = 5
    assert spec.task == 1


@laws
@given(specs)
def test_a_name_reads_back(spec):
    assert DeviceSpec.from_string(spec.to_string()) == spec


@laws
@given(names, names, names)
def test_merge_is_associative_with_a_neutral_element(a, b, c):
    assert merge(merge(a, b), c) == merge(a, merge(b, c))
    assert merge("", a) == merge(a, "") == merge(a, a) == a


@laws
@given(names, names)
def test_a_merged_name_satisfies_the_inner_one(outer, inner):
    assert matches(inner, merge(outer, inner))
    assert matches(outer, merge(outer, inner)) == is_compatible(outer, inner)


@laws
@given(names, names)
def test_merge_commutes_exactly_where_the_names_are_compatible(a, b):
    assert (merge(a, b) == merge(b, a)) == is_compatible(a, b)
    assert is_compatible(a, b) == is_compatible(b, a)


@laws
@given(names, names, names)
def test_matches_is_a_partial_order(a, b, c):
    assert matches(a, a)
    if matches(a, b) and matches(b, a):
        assert a == b
    if matches(a, b) and matches(b, c):
        assert matches(a, c)
