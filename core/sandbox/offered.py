"""Which attributes a script may read, by the type of the object: what is not in these tables does not exist for it."""

from __future__ import annotations

import collections
import dataclasses
import enum
import fractions
import functools
import itertools
import types
from collections.abc import Mapping
from typing import Any, Final

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen, nnx
from jax import tree_util

from core.sandbox.objects import instance_dict


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _public(cls: type) -> frozenset[str]:
    return frozenset(n for n in dir(cls) if not n.startswith("_"))


#: Arrays of JAX (traced ones too) and NumPy. No files, buffers, pointers, shards or owners, and nothing that moves memory
#: while views of it live (`resize` of NumPy, `delete` of JAX).
ARRAY: Final = _words(
    "T all any argmax argmin argpartition argsort astype at aval block_until_ready byteswap choose clip compress conj "
    "conjugate copy copy_to_host_async cumprod cumsum device devices diagonal dot dtype flat flatten imag is_deleted "
    "is_ready item itemsize mT max mean min nbytes ndim nonzero prod ptp ravel real repeat reshape round searchsorted "
    "shape size sort squeeze std sum swapaxes take tobytes tolist trace transpose var view weak_type"
)
NUMPY_ARRAY: Final = (
    ARRAY - _words("aval at block_until_ready copy_to_host_async devices is_deleted is_ready ptp weak_type")
) | _words("fill partition put strides")
AT: Final = _words("set get add subtract multiply mul divide power min max apply")
#: `format` and `format_map` are there too: as ours (core/sandbox/guards.py).
STRING: Final = _public(str)

_RANDOM: Final = _words(
    "beta binomial chisquare choice dirichlet exponential f gamma geometric gumbel hypergeometric integers laplace "
    "logistic lognormal logseries multinomial multivariate_normal negative_binomial noncentral_chisquare normal pareto "
    "permutation permuted poisson power rand randint randn random random_sample rayleigh seed shuffle spawn "
    "standard_cauchy standard_exponential standard_gamma standard_normal standard_t triangular uniform vonmises wald "
    "weibull zipf"
)
#: What the streams of `nnx.Rngs` draw.
_STREAM: Final = _words("key count tag split fork broadcast") | frozenset(
    n for n in vars(nnx.RngStream) if not n.startswith("_")
)
#: Methods of NNX objects (modules, optimizers, metrics, containers), each checked: no reflection, no files.
NNX: Final = _words(
    "sow perturb iter_modules iter_children set_attributes train eval set_view attend initialize_carry "
    "num_feature_axes append insert extend pop remove reverse clear index count keys values items get update "
    "setdefault popitem reset compute split apply_to init_cache"
)
VARIABLE: Final = _words(
    "value get_value set_value raw_value get_raw_value set_raw_value get_metadata set_metadata has_metadata del_metadata "
    "copy replace copy_from update_from_state create_value add_axis remove_axis type var_type shape"
)
#: What a variable passes on to the array in it.
_OF_ITS_ARRAY: Final = ARRAY - _words("device devices view")
_MAPPING: Final = _words("keys values items get pop popitem setdefault update clear")
#: Streams that are asked for by name and come from the default one when they were not given.
_STREAM_NAMES: Final = _words("params dropout carry default noise")
_STATE: Final = _MAPPING | _words(
    "filter flat_state from_flat_path map merge raw_mapping replace_by_pure_dict split to_pure_dict"
)
_LINEN: Final = _words(
    "init init_with_output apply bind clone copy param variable variables sow make_rng initialize_carry is_initializing "
    "num_feature_axes perturb has_variable get_variable put_variable has_rng is_mutable_collection name parent unbind "
    "attend"
)
_TRAIN_STATE: Final = _words("step apply_fn params tx opt_state apply_gradients create replace graphdef")


@functools.cache
def table() -> tuple[tuple[Any, frozenset[str]], ...]:
    """Types and what their instances offer; the first match wins.

    Nothing that hands out the state of the interpreter or of JAX is in any row. Made on first use: some of the types are
    had from values, and no backend may be started by an import (the workers' parent process only imports).
    """
    at = jnp.zeros(1).at
    return (
        (str, STRING),
        ((bytes, bytearray, bool, int, float, complex, range, slice), frozenset()),
        ((np.ndarray, np.generic), NUMPY_ARRAY),
        ((jax.Array, jax.core.Tracer), ARRAY),
        (nnx.Variable, VARIABLE),
        (nnx.RngStream, _STREAM),
        (nnx.Rngs, frozenset(n for n in vars(nnx.Rngs) if not n.startswith("_"))),
        (nnx.Pytree, NNX),
        (nnx.State, _STATE),
        (nnx.FlatState, _words("count index filter from_sorted_keys_values leaves merge paths split to_nested_state")),
        ((nnx.SplitContext, nnx.MergeContext), _words("flatten split merge unflatten")),
        (nnx.StateAxes, _words("axes filters get items keys values")),
        (nnx.TrainState, _TRAIN_STATE),
        (nnx.metrics.Statistics, _words("mean standard_error_of_mean standard_deviation replace")),
        (linen.Module, _LINEN),
        (linen.Variable, _words("value is_mutable")),
        (flax.core.FrozenDict, _MAPPING | _words("copy pretty_repr unfreeze")),
        (type(at), frozenset()),
        (type(at[0]), AT),
        (np.dtype, _words("name itemsize kind type char str names shape")),
        (
            (jnp.finfo, np.finfo),
            _words("bits eps epsneg max min tiny smallest_normal smallest_subnormal dtype precision resolution"),
        ),
        ((jnp.iinfo, np.iinfo), _words("bits max min dtype kind")),
        (jax.ShapeDtypeStruct, _words("shape dtype ndim size weak_type update")),
        (jax.core.AbstractValue, _words("shape dtype ndim size weak_type str_short")),
        (tree_util.PyTreeDef, _words("num_leaves num_nodes unflatten flatten_up_to children compose")),
        (tree_util.SequenceKey, _words("idx")),
        ((tree_util.DictKey, tree_util.FlattenedIndexKey), _words("key")),
        (tree_util.GetAttrKey, _words("name")),
        (jax.Ref, _words("get set swap addupdate shape dtype ndim size at")),
        (type(jax.jit(lambda: None)), _words("eval_shape clear_cache _cache_size")),
        ((np.ufunc, jnp.ufunc), _words("reduce accumulate outer at reduceat nin nout nargs identity")),
        ((np.random.Generator, np.random.RandomState), _RANDOM),
        (np.random.SeedSequence, _words("spawn generate_state entropy")),
        (np.broadcast, _words("shape ndim size")),
        (optax.MultiSteps, _words("init update has_updated gradient_transformation")),
        (functools.partial, _words("func args keywords")),
        (type(functools.lru_cache(len)), _words("cache_info cache_clear cache_parameters")),
        (property, _words("getter setter deleter")),
        (types.GeneratorType, _words("send throw close")),
        (types.MappingProxyType, _words("get items keys values copy")),
        (types.SimpleNamespace, frozenset()),
        (enum.Enum, _words("name value")),
        (dataclasses.Field, _words("name default init repr compare kw_only")),
        (StopIteration, _words("args value add_note")),
        (SystemExit, _words("args code add_note")),
        (BaseException, _words("args add_note")),
        ((list, tuple, dict, set, frozenset), frozenset()),
        (collections.deque, _public(collections.deque)),
    )


#: Types whose every public name is offered (with their subclasses' own rules above): plain data.
_DATA: Final[tuple[type, ...]] = (
    bytes, bytearray, bool, int, float, complex, range, slice, list, tuple, dict, set, frozenset,
    collections.OrderedDict, collections.defaultdict, collections.Counter, collections.ChainMap, fractions.Fraction,
    type(None), type(iter([])),
)  # fmt: skip
#: Classes with a second way to make them.
_MAKERS: Final = frozenset({itertools.chain})
#: Attributes of the scalar types of `jnp`, which are classes with a metaclass of their own.
_SCALAR_META: Final = type(jnp.float32)

_CACHE: dict[type, frozenset[str]] = {}


def offered(cls: type) -> frozenset[str]:
    """The attributes that instances of a library's type offer to scripts, from its type alone."""
    names = _CACHE.get(cls)
    if names is None:
        names = _CACHE[cls] = _offered(cls)
    return names


def _offered(cls: type) -> frozenset[str]:
    out: frozenset[str] = frozenset()
    for kinds, names in table():
        if issubclass(cls, kinds):
            out = names
            break
    for data in _DATA:
        if issubclass(cls, data):
            out |= _public(data)
    if issubclass(cls, tuple):
        fields = getattr(cls, "_fields", ())
        out |= frozenset(fields) | _words("_replace _asdict _fields _make") if fields else out
    return out


def class_attributes(cls: type) -> frozenset[str]:
    """The attributes that a library's class itself offers: methods, unbound, of plain data and of layers.

    Of no others: Cython's methods (`np.random.Generator.power`) do not look at what they are called on, and crash.
    """
    if isinstance(cls, _SCALAR_META):
        return _words("dtype")
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        return _words("_fields _make")
    if cls in _DATA or cls in _MAKERS or issubclass(cls, str | nnx.Pytree | nnx.Variable | linen.Module | enum.Enum):
        return offered(cls) | (_words("from_bytes fromkeys fromhex maketrans from_iterable") & _public(cls))
    return frozenset()


def instance_attributes(obj: Any) -> frozenset[str]:
    """Attributes that one library object has beyond its type: layers, parameters, settings, metadata, streams.

    Read from what the object holds, never by its methods: a class of a script may have replaced those.
    """
    held = instance_dict(obj)
    if isinstance(obj, nnx.Variable):
        metadata = object.__getattribute__(obj, "_var_metadata")
        array = isinstance(object.__getattribute__(obj, "_raw_value"), jax.Array | jax.core.Tracer | np.ndarray)
        return _plain_names(metadata) | (_OF_ITS_ARRAY if array else frozenset())
    if isinstance(obj, nnx.Rngs):
        return frozenset(n for n in held if not n.startswith("_")) | _STREAM_NAMES
    if isinstance(obj, nnx.Pytree | types.SimpleNamespace | linen.Module):
        return _plain_names(held)
    if isinstance(obj, nnx.State):
        keys = held.get("_mapping", {})
        return frozenset(k for k in keys if type(k) is str and not k.startswith("_"))
    return frozenset()


def _plain_names(values: Mapping[str, Any]) -> frozenset[str]:
    """Names of values that are data, layers or functions; never modules, nor classes that could be built."""
    return frozenset(
        n for n, v in values.items() if not n.startswith("_") and not isinstance(v, types.ModuleType) and _is_plain(v)
    )


def _is_plain(value: Any) -> bool:
    return (
        not isinstance(value, type) or isinstance(value, _SCALAR_META) or issubclass(value, np.generic | nnx.Variable)
    )
