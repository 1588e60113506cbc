"""What a server does for copies ends with it, whatever it was about to begin."""

from server_clusters import Cluster, eventually

import headrace as tf
from headrace.distributed.services.standbys import Standbys


def test_nothing_begins_after_the_end():
    """It is closed while it begins to serve, as by a signal."""
    cluster = Cluster(ps=1).start_all()
    try:
        standbys = cluster["ps", 0].standbys
        assert standbys._primary is None
        standbys._begin = lambda values: standbys.close()
        standbys._serve({}, 1)
        assert standbys._primary is None
    finally:
        cluster.stop()


def test_a_server_that_stops_releases_the_copy_that_it_keeps(caplog):
    """The other one goes on at once, without a word to a witness; nobody is alarmed."""
    caplog.set_level("INFO", "headrace.distributed")
    cluster = Cluster(ps=2, worker=1, replicas=1).start_all()
    try:
        first, second = cluster["ps", 0], cluster["ps", 1]
        with tf.Graph().as_default(), tf.device("/job:ps/task:0"):
            v = tf.get_variable("v", [3], initializer=tf.zeros_initializer())
            add, make = v.assign_add([1.0, 1.0, 1.0]), v.initializer
            with tf.Session(cluster.target()) as session:
                session.run(make)
                assert eventually(lambda: first.standbys.copy_stage == "protected")
                session.run(add)
                second.stop()
                assert eventually(lambda: first.standbys.copy_stage == "alone")
                assert session.run(add).tolist() == [2.0, 2.0, 2.0]
    finally:
        cluster.stop()
    (told,) = [r for r in caplog.records if "goes on without its copy" in r.getMessage()]
    assert told.levelname == "INFO"
    assert told.getMessage() == (
        "/job:ps/replica:0/task:0 goes on without its copy: "
        f"/job:ps/replica:0/task:1 at {second.address} has stopped"
    )
    assert not [r for r in caplog.records if r.levelname == "WARNING"]


def test_who_asks_for_a_copy_before_the_server_has_begun_gets_it_later(monkeypatch):
    """It answers to others a moment before it has begun with its copy."""
    serve = Standbys._serve

    def late(self, values, epoch, follows=True):
        if self.me[0] == "/job:ps/replica:0/task:0":
            begin = self._begin
            self._begin = lambda values: (begin(values), asked.append(eventually(early(self))))
        serve(self, values, epoch, follows)

    def early(standbys):
        return lambda: list(standbys._early)

    asked = []
    monkeypatch.setattr(Standbys, "_serve", late)
    cluster = Cluster(ps=2, worker=1, replicas=1).start_all()
    try:
        with tf.Graph().as_default(), tf.device("/job:ps/task:0"):
            v = tf.get_variable("v", [3], initializer=tf.zeros_initializer())
            with tf.Session(cluster.target()) as session:
                session.run(v.initializer)
                standbys = cluster["ps", 0].standbys
                assert eventually(lambda: standbys.copy_stage == "protected")
    finally:
        cluster.stop()
    assert len(asked[0]) == 1
