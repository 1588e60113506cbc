"""``tf.parallel``: models on several devices.

`pipeline` and `pipeline_gradients` send parts of a batch through layers on several devices, one
behind the other; `matmul` splits a product, `split_rows` images; what a `segment` holds is a unit
of its own. Each gives what the model on one device gives, to rounding.

>>> x = tf.constant([[1.0, 2.0]])
>>> w = tf.constant([[1.0, 0.0, 2.0], [0.0, 1.0, 3.0]])
>>> with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as session:
...     session.run(tf.parallel.matmul(x, w, ["/cpu:0", "/cpu:1"])).tolist()
[[1.0, 2.0, 8.0]]
"""

from headrace.graph.segments import segment
from headrace.parallel.pipeline import PipelineGradients, pipeline, pipeline_gradients
from headrace.parallel.products import matmul
from headrace.parallel.rows import ImageRows, split_rows

__all__ = [
    "ImageRows",
    "PipelineGradients",
    "matmul",
    "pipeline",
    "pipeline_gradients",
    "segment",
    "split_rows",
]
