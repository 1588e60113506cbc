"""Records of clusters as somebody may send them."""

import pytest

from headrace.distributed.membership.messages import accepted_of, record_of
from headrace.distributed.membership.record import changed
from headrace.distributed.protocol import control_pb2 as pb
from headrace.errors import InvalidArgumentError

WORKER = "/job:worker/replica:0/task:0"


@pytest.mark.parametrize(
    "fields",
    [
        {"epoch": -1},
        {"epoch": (1 << 63) - 1},
        {"wanted": {"worker": -1}},
        {"wanted": {"worker": 10_001}},
        {"voters": {"/job:worker/task:0": 1}},
        {"tasks": {WORKER: "no address"}},
        {"moved": {"w": ""}},
    ],
)
def test_records_that_make_no_sense(fields):
    with pytest.raises(InvalidArgumentError, match=r"A record of the cluster with .+ no sense"):
        record_of(pb.RecordDef(**fields))


def test_a_record_on_which_nobody_votes_is_refused():
    """Whoever took it could change the record never again."""
    accepted = pb.AcceptedDef(ballot=pb.BallotDef(number=3, task=WORKER, incarnation=5))
    assert not accepted_of(accepted).record.epoch  # a ballot alone
    accepted.record.epoch = 2
    with pytest.raises(InvalidArgumentError, match="epoch 2 and no task that votes makes no sense"):
        accepted_of(accepted)
    accepted.record.voters[WORKER] = 5
    assert accepted_of(accepted).record.epoch == 2


def test_the_highest_epoch_can_be_followed():
    record = record_of(pb.RecordDef(epoch=(1 << 48) - 1))
    pb.RecordDef(epoch=changed(record).epoch)
