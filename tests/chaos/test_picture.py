"""The timeline of a run, as an XML reader sees it."""

import xml.etree.ElementTree as ElementTree

from headrace.chaos.picture import timeline
from headrace.chaos.schedule import Cluster, make_schedule


def test_each_fault_and_gap_is_drawn():
    cluster = Cluster(2, 4)
    faults = make_schedule(7, 120, cluster)
    gaps = [(10.0, 12.5), (50.0, 51.5)]
    text = timeline("a <run>", 120.0, cluster, faults, gaps, [0.5, 1.2, 1.4, 300])
    root = ElementTree.fromstring(text)
    ns = "{http://www.w3.org/2000/svg}"
    titles = [t.text for t in root.iter(f"{ns}title")]
    assert titles == ["no step"] * 2 + [str(f) for f in faults]
    texts = [t.text for t in root.iter(f"{ns}text")]
    assert texts[0] == "a <run>"
    assert {*cluster.tasks, "disk", "steps/s", "most 2", "120 s"} <= set(texts)
    widths = [
        float(r.get("width")) for r in root.iter(f"{ns}rect") if r.find(f"{ns}title") is not None
    ]
    assert min(widths) >= 3
    points = next(root.iter(f"{ns}polyline")).get("points").split()
    assert len(points) == 120
