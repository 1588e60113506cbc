"""A sorter of small photographs: from a folder of pictures to one that sorts what comes in.

    headrace run sorter.py prepare PHOTOGRAPHS PICTURES
    headrace run sorter.py train PICTURES MODEL
    headrace run sorter.py sort MODEL INBOX OUTBOX [--watch]

`prepare` cuts large photographs, one for each grade, into small ones: PICTURES/train/GRADE/*.jpg
and PICTURES/test/GRADE/*.jpg. Whoever has a camera over a belt fills these folders by hand. `train`
learns from them, tells how many of the test pictures it gets right, draws which grades it takes
for which (MODEL/confusion.png), and writes a SavedModel that takes JPEG files. `sort` moves each
picture of INBOX to OUTBOX/GRADE; to OUTBOX/unsure if the probability is too low, and to
OUTBOX/damaged if it is no picture.

After the sorter of cucumbers that a farmer's son built in 2016: nine grades, 80x60 pixels, 7,000
pictures.
"""

from __future__ import absolute_import, division, print_function

import argparse
import os
import time

import numpy as np
import tensorflow as tf

SIZE = 32


def pictures_below(folder):
    """Paths and grades of the pictures in the folders of a folder, and the names of the grades."""
    grades = sorted(d for d in tf.gfile.ListDirectory(folder) if d[0] != ".")
    paths, numbers = [], []
    for number, grade in enumerate(grades):
        found = sorted(tf.gfile.Glob(os.path.join(folder, grade, "*.jpg")))
        if not found:
            raise SystemExit("There is no *.jpg in %s" % os.path.join(folder, grade))
        paths += found
        numbers += [number] * len(found)
    return paths, np.array(numbers, np.int32), grades


def prepare(args):
    """Cut photographs: the right quarter of each is for the test."""
    data, size = tf.placeholder(tf.string), tf.placeholder(tf.int32, [4])
    photograph = tf.image.decode_image(data, channels=1)
    piece = tf.image.crop_to_bounding_box(photograph, size[0], size[1], SIZE, SIZE)
    jpeg = tf.image.encode_jpeg(piece, format="grayscale", quality=90)
    extent = tf.shape(photograph)
    count = 0
    with tf.Session() as sess:
        for name in sorted(tf.gfile.ListDirectory(args.photographs)):
            grade, ending = os.path.splitext(name)
            if ending not in (".png", ".jpg"):
                continue
            with tf.gfile.GFile(os.path.join(args.photographs, name), "rb") as f:
                content = f.read()
            height, width, _ = sess.run(extent, {data: content})
            for part in ("train", "test"):
                tf.gfile.MakeDirs(os.path.join(args.pictures, part, grade))
            for top in range(0, height - SIZE + 1, SIZE):
                for left in range(0, width - SIZE + 1, SIZE):
                    part = "test" if left >= width * 3 // 4 else "train"
                    path = os.path.join(args.pictures, part, grade, "%d_%d.jpg" % (top, left))
                    with tf.gfile.GFile(path, "wb") as f:
                        f.write(sess.run(jpeg, {data: content, size: [top, left, SIZE, SIZE]}))
                    count += 1
    print("pictures %d" % count)


def decoded(jpeg):
    """float32[SIZE, SIZE, 1] around 0, whatever size the picture has."""
    image = tf.image.decode_jpeg(jpeg, channels=1)
    image = tf.image.convert_image_dtype(image, tf.float32)
    image = tf.image.resize_images(image, [SIZE, SIZE])
    image.set_shape([SIZE, SIZE, 1])
    return tf.image.per_image_standardization(image)


def input_fn(paths, numbers, training):
    """Batches of pictures; those to learn from are turned over, and come again and again."""

    def load(path, number):
        picture = decoded(tf.read_file(path))
        if training:
            picture = tf.image.random_flip_left_right(tf.image.random_flip_up_down(picture))
        return {"picture": picture}, number

    dataset = tf.data.Dataset.from_tensor_slices((paths, numbers))
    if training:
        dataset = dataset.shuffle(len(paths), seed=1).repeat()
    return dataset.map(load, num_parallel_calls=2).batch(64).prefetch(2)


def model_fn(features, labels, mode, params):
    """Two convolutions and a hidden layer."""
    training = mode == tf.estimator.ModeKeys.TRAIN
    y = features["picture"]
    for filters in (16, 32):
        y = tf.layers.conv2d(y, filters, 5, padding="same", activation=tf.nn.relu)
        y = tf.layers.max_pooling2d(y, 2, 2)
    y = tf.layers.dense(tf.layers.flatten(y), 64, activation=tf.nn.relu)
    logits = tf.layers.dense(tf.layers.dropout(y, 0.3, training=training), len(params["grades"]))
    best = tf.argmax(logits, 1)
    predictions = {
        "number": best,
        "grade": tf.gather(tf.constant(params["grades"]), best),
        "probability": tf.reduce_max(tf.nn.softmax(logits), 1),
    }
    if mode == tf.estimator.ModeKeys.PREDICT:
        outputs = {"serving_default": tf.estimator.export.PredictOutput(predictions)}
        return tf.estimator.EstimatorSpec(mode, predictions=predictions, export_outputs=outputs)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    step = tf.train.get_or_create_global_step()
    train = tf.train.AdamOptimizer(0.002).minimize(loss, global_step=step) if training else None
    metrics = {"accuracy": tf.metrics.accuracy(labels, best)}
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train, eval_metric_ops=metrics)


def receiver():
    """What the SavedModel takes: the bytes of any number of pictures."""
    jpegs = tf.placeholder(tf.string, [None], name="jpegs")
    pictures = tf.map_fn(decoded, jpegs, tf.float32)
    return tf.estimator.export.ServingInputReceiver({"picture": pictures}, {"jpegs": jpegs})


def draw(table, grades, path):
    """A picture of how often a grade (row) was taken for another one (column)."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(4.5, 4))
    shares = table / np.maximum(1, table.sum(1, keepdims=True))
    axes.imshow(shares, cmap="Greens", vmin=0, vmax=1)
    for (row, column), count in np.ndenumerate(table):
        colour = "white" if shares[row, column] > 0.5 else "black"
        axes.text(column, row, str(count), ha="center", va="center", color=colour)
    axes.set_xticks(range(len(grades)), grades)
    axes.set_yticks(range(len(grades)), grades)
    axes.set_xlabel("sorted as")
    axes.set_ylabel("is")
    figure.tight_layout()
    figure.savefig(path, dpi=100)


def train(args):
    paths, numbers, grades = pictures_below(os.path.join(args.pictures, "train"))
    tests, truth, found = pictures_below(os.path.join(args.pictures, "test"))
    if found != grades:
        raise SystemExit("The grades to learn are %s, those of the test %s" % (grades, found))
    config = tf.estimator.RunConfig(args.model, tf_random_seed=1)
    sorter = tf.estimator.Estimator(model_fn, params={"grades": grades}, config=config)
    sorter.train(lambda: input_fn(paths, numbers, True), max_steps=args.steps)
    guesses = [p["number"] for p in sorter.predict(lambda: input_fn(tests, truth, False))]
    with tf.Graph().as_default(), tf.Session() as sess:
        table = sess.run(tf.confusion_matrix(truth, guesses, len(grades)))
    draw(table, grades, os.path.join(args.model, "confusion.png"))
    exported = sorter.export_savedmodel(os.path.join(args.model, "export"), receiver)
    print("accuracy %.3f" % (np.trace(table) / table.sum()))
    print("model %s" % tf.compat.as_str_any(exported))


def newest(model):
    """The SavedModel that was written last."""
    folder = os.path.join(model, "export")
    found = tf.gfile.ListDirectory(folder) if tf.gfile.IsDirectory(folder) else []
    versions = [v for v in found if v.strip("/").isdigit()]
    if not versions:
        raise SystemExit("There is no model in %s: train one first." % model)
    return os.path.join(folder, max(versions))


def sort(args):
    grade_of = tf.contrib.predictor.from_saved_model(newest(args.model))
    if not tf.gfile.IsDirectory(args.inbox):
        raise SystemExit("There is no folder %s to sort." % args.inbox)
    while True:
        for name in sorted(tf.gfile.ListDirectory(args.inbox)):
            path = os.path.join(args.inbox, name)
            if tf.gfile.IsDirectory(path):
                continue
            with tf.gfile.GFile(path, "rb") as f:
                content = f.read()
            try:
                answer = grade_of({"jpegs": [content]})
                grade = tf.compat.as_str_any(answer["grade"][0].decode())
                if answer["probability"][0] < args.least:
                    grade = "unsure"
            except tf.errors.InvalidArgumentError:
                grade = "damaged"
            tf.gfile.MakeDirs(os.path.join(args.outbox, grade))
            tf.gfile.Rename(path, os.path.join(args.outbox, grade, name), overwrite=True)
            print("%s %s" % (name, grade), flush=True)
        if not args.watch:
            return
        time.sleep(0.5)


parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
commands = parser.add_subparsers(dest="command", required=True)
command = commands.add_parser("prepare")
command.add_argument("photographs")
command.add_argument("pictures")
command.set_defaults(do=prepare)
command = commands.add_parser("train")
command.add_argument("pictures")
command.add_argument("model")
command.add_argument("--steps", type=int, default=300)
command.set_defaults(do=train)
command = commands.add_parser("sort")
command.add_argument("model")
command.add_argument("inbox")
command.add_argument("outbox")
command.add_argument("--watch", action="store_true", help="go on with what comes later")
command.add_argument("--least", type=float, default=0.6, help="the least probability")
command.set_defaults(do=sort)

if __name__ == "__main__":
    tf.logging.set_verbosity(tf.logging.WARN)
    arguments = parser.parse_args()
    arguments.do(arguments)
