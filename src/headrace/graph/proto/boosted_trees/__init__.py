"""The messages of ``tf.contrib.boosted_trees``; the bytes are TensorFlow's, the packages ours."""
