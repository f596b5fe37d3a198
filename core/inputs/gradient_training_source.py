"""One update as a program in Python that computes the same numbers; it runs by itself."""

from __future__ import annotations

from typing import Final

from core.base.text import fill
from core.inputs.gradient_fields import GIVEN, TRAIN
from core.inputs.gradient_inputs import GradientInputs

PROGRAM: Final = '''import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

B, T, F, H = {batch}, {length}, {features}, {hidden}
inputs = np.random.default_rng({data_seed}).normal(size=(B, T, F)).astype(np.float32)
targets = inputs[:, 0, :1]  # what the first number was


class Model(nnx.Module):
    """A cell over the sequence, dropout on what it reads, a linear readout of the last h."""

    def __init__(self):
        rngs = nnx.Rngs({seed})  # one for both: a second would draw the readout with the cell's first key
        self.cell = nnx.{cell}(F, H, rngs=rngs)
        self.dropout = nnx.Dropout({rate:g}, rng_collection="dropout")
        self.readout = nnx.Linear(H, 1, rngs=rngs)

    def __call__(self, inputs, key):
        keys = None if key is None else jax.random.split(key, T)  # one for each step

        def step(carry, at):
            x, of_step = at
            return self.cell(carry, self.dropout(x, rngs=of_step))

        carry = self.cell.initialize_carry((B, F), rngs=nnx.Rngs(0))
        hidden = jax.lax.scan(step, carry, (jnp.swapaxes(inputs, 0, 1), keys))[1]
        return self.readout(hidden[-1])


def loss(params, key):
    return jnp.mean((nnx.merge(graph, params)(inputs, key) - targets) ** 2)


model = Model()
model.{mode}()
graph, params = nnx.split(model)
{key}
before, gradients = jax.value_and_grad(loss)(params, key)
optimizer = optax.{optimizer}({learning_rate:g})
changes, _ = optimizer.update(gradients, optimizer.init(params), params)
after = loss(optax.apply_updates(params, changes), key)
print(before, after)
'''
DRAWN: Final = "key = nnx.Rngs(dropout={seed}).dropout()  # its own named stream"
NONE: Final = "key = None  # nothing to draw from"


def training_source(inputs: GradientInputs) -> str:
    """The program; it leaves the losses in ``before`` and ``after``. Without rngs it raises as the page does."""
    drops = inputs.mode == TRAIN and inputs.rate > 0
    return fill(
        PROGRAM,
        batch=inputs.batch,
        length=inputs.train_length,
        features=inputs.in_features,
        hidden=inputs.hidden_features,
        data_seed=inputs.data_seed,
        cell=inputs.model,
        seed=inputs.seed,
        rate=inputs.rate,
        mode=inputs.mode,
        key=fill(DRAWN, seed=inputs.dropout_seed) if drops and inputs.rngs == GIVEN else fill(NONE),
        optimizer=inputs.optimizer,
        learning_rate=inputs.learning_rate,
    )
