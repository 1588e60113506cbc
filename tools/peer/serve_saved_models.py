"""Load SavedModels under real TensorFlow, run their signatures, and store the results.

    PEER_PYTHON tools/peer/serve_saved_models.py FOLDER

FOLDER has one folder for each model: ``model`` is the SavedModel, ``feeds.npz`` has a value for
each input of the signature ``serving_default``, and ``steps``, how often to run it. Results of step
``i`` are written to ``<way>-<version>.npz`` as ``<i>/<output>``, where ``way`` is ``loader`` (that
of TensorFlow 1.x, in a session) or ``load`` (`tf.saved_model.load` of 2.x), errors to
``<way>-<version>.error``.
"""

import os
import sys
import traceback
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as peer

tf = peer.compat.v1
KEY = "serving_default"


def with_loader(folder, feeds, steps):
    with tf.Graph().as_default(), tf.Session() as session:
        message = tf.saved_model.loader.load(session, ["serve"], str(folder))
        signature = message.signature_def[KEY]
        fetches = {k: v.name for k, v in signature.outputs.items()}
        given = {signature.inputs[k].name: v for k, v in feeds.items()}
        return [session.run(fetches, given) for _ in range(steps)]


def with_load(folder, feeds, steps):
    model = peer.saved_model.load(str(folder), tags=["serve"])
    function = model.signatures[KEY]
    specs = function.structured_input_signature[1]
    given = {k: peer.constant(v.tolist(), specs[k].dtype) for k, v in feeds.items()}
    return [{k: v.numpy() for k, v in function(**given).items()} for _ in range(steps)]


def main(root):
    version = ".".join(peer.__version__.split(".")[:2])
    ways = {"loader-" + version: with_loader}
    if not version.startswith("1."):
        ways["load-" + version] = with_load
    for folder in sorted(p for p in Path(root).iterdir() if p.is_dir()):
        with np.load(str(folder / "feeds.npz")) as file:
            feeds = {k: file[k] for k in file.files}
        steps = int(feeds.pop("steps"))
        for name, way in ways.items():
            try:
                found = way(folder / "model", feeds, steps)
            except Exception:
                (folder / (name + ".error")).write_text(traceback.format_exc())
                continue
            flat = {}
            for i, step in enumerate(found):
                for key, value in step.items():
                    value = np.asarray(value)
                    flat[f"{i}/{key}"] = value.astype("S") if value.dtype == object else value
            np.savez(str(folder / (name + ".npz")), **flat)


if __name__ == "__main__":
    main(sys.argv[1])
