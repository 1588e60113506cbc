"""What a server does for copies ends with it, whatever it was about to begin."""

from server_clusters import Cluster


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
