"""The losses of ``tf.contrib.gan`` as functions of a model; ``wargs`` has them of tensors."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from headrace.contrib.gan import wargs as wargs
from headrace.contrib.gan.namedtuples import CycleGANModel

__all__ = [
    "acgan_discriminator_loss",
    "acgan_generator_loss",
    "combine_adversarial_loss",
    "cycle_consistency_loss",
    "least_squares_discriminator_loss",
    "least_squares_generator_loss",
    "minimax_discriminator_loss",
    "minimax_generator_loss",
    "modified_discriminator_loss",
    "modified_generator_loss",
    "mutual_information_penalty",
    "stargan_discriminator_loss_wrapper",
    "stargan_generator_loss_wrapper",
    "stargan_gradient_penalty_wrapper",
    "wargs",
    "wasserstein_discriminator_loss",
    "wasserstein_generator_loss",
    "wasserstein_gradient_penalty",
]


Loss = Callable[..., Any]


def _is_function_of_a_model(function: Any, model: str, options: list[inspect.Parameter]) -> None:
    """Let a function that wraps one of `wargs` have a signature and a home of its own."""
    function.__module__ = __name__
    del function.__wrapped__
    first = inspect.Parameter(model, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Any)
    options = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in options]
    function.__signature__ = inspect.Signature([first, *options], return_annotation=Any)


def _options_of(loss: Callable[..., Any]) -> list[inspect.Parameter]:
    parameters = inspect.signature(loss).parameters.values()
    return [p for p in parameters if p.default is not p.empty]


def _of_model(loss: Callable[..., Any]) -> Callable[..., Any]:
    """``loss`` as a function of a model, whose fields give the arguments of their names."""
    parameters = inspect.signature(loss).parameters
    required = [n for n, p in parameters.items() if p.default is p.empty]

    @functools.wraps(loss)
    def of_model(gan_model: Any, **kwargs: Any) -> Any:
        fields = {n: getattr(gan_model, n) for n in gan_model._fields}
        for name in required:
            if name not in fields and name not in kwargs:
                raise ValueError(f"`{name}` must be supplied to {loss.__name__} loss function.")
        twice = fields.keys() & kwargs.keys()
        if twice:
            raise ValueError(
                "The following args are present in both the tuple and keyword args for "
                f"{loss.__name__}: {twice}"
            )
        taken = {n: v for n, v in fields.items() if n in parameters}
        return loss(**taken, **kwargs)

    _is_function_of_a_model(of_model, "gan_model", _options_of(loss))
    source = (inspect.getdoc(loss) or "").split("\n\n")[1].replace("\n", "\n    ")
    of_model.__doc__ = f"""`wargs.{loss.__name__}` of the tensors of a model, a scalar by default.

    {source}

    Raises:
        ValueError: if the model lacks a tensor that the loss needs, or has one that is given too.
    """
    return of_model


wasserstein_generator_loss: Loss = _of_model(wargs.wasserstein_generator_loss)
wasserstein_discriminator_loss: Loss = _of_model(wargs.wasserstein_discriminator_loss)
wasserstein_gradient_penalty: Loss = _of_model(wargs.wasserstein_gradient_penalty)
acgan_discriminator_loss: Loss = _of_model(wargs.acgan_discriminator_loss)
acgan_generator_loss: Loss = _of_model(wargs.acgan_generator_loss)
minimax_discriminator_loss: Loss = _of_model(wargs.minimax_discriminator_loss)
minimax_generator_loss: Loss = _of_model(wargs.minimax_generator_loss)
modified_discriminator_loss: Loss = _of_model(wargs.modified_discriminator_loss)
modified_generator_loss: Loss = _of_model(wargs.modified_generator_loss)
least_squares_generator_loss: Loss = _of_model(wargs.least_squares_generator_loss)
least_squares_discriminator_loss: Loss = _of_model(wargs.least_squares_discriminator_loss)
mutual_information_penalty: Loss = _of_model(wargs.mutual_information_penalty)


def combine_adversarial_loss(
    gan_loss: Any,
    gan_model: Any,
    non_adversarial_loss: Any,
    weight_factor: Any = None,
    gradient_ratio: Any = None,
    gradient_ratio_epsilon: float = 1e-6,
    scalar_summaries: bool = True,
    gradient_summaries: bool = True,
) -> Any:
    """A GANLoss whose generator also has ``non_adversarial_loss``; see `wargs`.

    All losses are scalars.

    Raises:
        ValueError: as of `wargs.combine_adversarial_loss`.
    """
    combined = wargs.combine_adversarial_loss(
        non_adversarial_loss,
        gan_loss.generator_loss,
        weight_factor,
        gradient_ratio,
        gradient_ratio_epsilon,
        gan_model.generator_variables,
        scalar_summaries,
        gradient_summaries,
    )
    return gan_loss._replace(generator_loss=combined)


def cycle_consistency_loss(
    cyclegan_model: Any, scope: Any = None, add_summaries: bool = False
) -> Any:
    """`wargs.cycle_consistency_loss` of a CycleGANModel.

    The loss is a scalar.

    Raises:
        ValueError: for another model.
    """
    if not isinstance(cyclegan_model, CycleGANModel):
        raise ValueError(
            f"`cyclegan_model` must be a `CycleGANModel`. Instead, was {type(cyclegan_model)}."
        )
    return wargs.cycle_consistency_loss(
        cyclegan_model.model_x2y.generator_inputs,
        cyclegan_model.reconstructed_x,
        cyclegan_model.model_y2x.generator_inputs,
        cyclegan_model.reconstructed_y,
        scope,
        add_summaries,
    )


def stargan_generator_loss_wrapper(loss_fn: Callable[..., Any]) -> Callable[..., Any]:
    """A generator's loss of `wargs` as a function of a StarGANModel.

    Its shape is that of the loss, by default a scalar.

    Raises:
        TypeError: if ``loss_fn`` is no function.
    """

    @functools.wraps(loss_fn)
    def of_model(stargan_model: Any, **kwargs: Any) -> Any:
        return loss_fn(stargan_model.discriminator_generated_data_source_predication, **kwargs)

    _is_function_of_a_model(of_model, "stargan_model", _options_of(loss_fn))
    return of_model


def stargan_discriminator_loss_wrapper(loss_fn: Callable[..., Any]) -> Callable[..., Any]:
    """A discriminator's loss of `wargs` as a function of a StarGANModel.

    Its shape is that of the loss, by default a scalar.

    Raises:
        TypeError: if ``loss_fn`` is no function.
    """

    @functools.wraps(loss_fn)
    def of_model(stargan_model: Any, **kwargs: Any) -> Any:
        return loss_fn(
            stargan_model.discriminator_input_data_source_predication,
            stargan_model.discriminator_generated_data_source_predication,
            **kwargs,
        )

    _is_function_of_a_model(of_model, "stargan_model", _options_of(loss_fn))
    return of_model


def stargan_gradient_penalty_wrapper(loss_fn: Callable[..., Any]) -> Callable[..., Any]:
    """A gradient penalty of `wargs` as a function of a StarGANModel.

    Its shape is that of the loss, by default a scalar.

    Raises:
        TypeError: if ``loss_fn`` is no function.
    """

    @functools.wraps(loss_fn)
    def of_model(stargan_model: Any, **kwargs: Any) -> Any:
        domains = stargan_model.input_data_domain_label.shape.as_list()[-1]
        return loss_fn(
            real_data=stargan_model.input_data,
            generated_data=stargan_model.generated_data,
            generator_inputs=domains,
            discriminator_fn=stargan_model.discriminator_fn,
            discriminator_scope=stargan_model.discriminator_scope,
            **kwargs,
        )

    _is_function_of_a_model(of_model, "stargan_model", _options_of(loss_fn))
    return of_model
