"""All optimisers of ``tf.train``, made as tests of the ways of training together need them."""

import headrace as tf

OPTIMIZERS = {
    "gradient_descent": lambda: tf.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9),
    "nesterov": lambda: tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "adagrad": lambda: tf.train.AdagradOptimizer(0.1),
    "adagrad_da": lambda: tf.train.AdagradDAOptimizer(
        0.1, tf.train.get_or_create_global_step(), l1_regularization_strength=0.001
    ),
    "adadelta": lambda: tf.train.AdadeltaOptimizer(1.0),
    "adam": lambda: tf.train.AdamOptimizer(0.01),
    "rmsprop": lambda: tf.train.RMSPropOptimizer(0.01, momentum=0.5),
    "centered_rmsprop": lambda: tf.train.RMSPropOptimizer(0.01, centered=True),
    "ftrl": lambda: tf.train.FtrlOptimizer(0.1, l1_regularization_strength=0.001),
    "proximal_adagrad": lambda: tf.train.ProximalAdagradOptimizer(0.1),
    "proximal_gradient_descent": lambda: tf.train.ProximalGradientDescentOptimizer(0.1),
}
