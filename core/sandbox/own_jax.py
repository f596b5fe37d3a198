"""Our versions of JAX and Flax functions: no compiler options, no host callbacks, settings and registrations per job."""

from __future__ import annotations

import inspect
import string
import types
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final

import flax.struct
import jax
from flax import linen, nnx
from jax import tree_util

from core.base.text import fill
from core.sandbox.formats import fields_of, reaches
from core.sandbox.guards import Guards
from core.sandbox.kinds import Kind, StandIn, Text
from core.sandbox.names import DEVICES, INNER, REFLECTION, TERMINAL
from core.sandbox.objects import DEVICE, exact
from core.sandbox.output import Output
from core.sandbox.own_std import OWN_CLASSES, checked_names, own_class, own_decorator, own_function
from core.sandbox.refusals import RefusedUse

NO_KEYWORD = "{name} is not available as an argument of {function} here: {reason}"
NO_SETTING = "the setting {name} is not available here; leave it out"
NO_SUCH_SETTING = "Unrecognized config option: {name}"
ONLY_CPU = "there is one device here, the CPU; leave the setting {name} out"
PLAIN_FIELDS = "a field of jax.debug.print names a value here, not a part of it; pass the part by its own name"
UNUSED_POSITIONAL = "Unused positional arguments to `jax.debug.print`: {names}"
UNUSED_KEYWORD = "Unused keyword arguments to `jax.debug.print`: {names}."

COMPILER: Final = "it speaks to the compiler, which can write files"
_JIT: Final = {
    "compiler_options": COMPILER, "backend": DEVICES, "device": DEVICES, "in_shardings": DEVICES, "out_shardings": DEVICES,
}  # fmt: skip
#: Arguments that are not passed on, by function.
KEYWORDS: Final[Mapping[str, Mapping[str, str]]] = {
    "jax.jit": _JIT,
    "flax.nnx.jit": _JIT,
    "flax.nnx.jit_partial": _JIT,
    "flax.linen.jit": {"backend": DEVICES, "device": DEVICES},
    "flax.nnx.tabulate": {
        "method": REFLECTION, "console_kwargs": TERMINAL, "table_kwargs": TERMINAL, "column_kwargs": TERMINAL,
        "row_filter": INNER,
    },
}  # fmt: skip
#: Settings that a script may change: they are applied to the job and taken back after it.
SETTINGS: Final = frozenset(
    "jax_enable_x64 jax_debug_nans jax_debug_infs jax_disable_jit jax_numpy_dtype_promotion jax_numpy_rank_promotion "
    "jax_default_matmul_precision jax_enable_custom_prng jax_default_prng_impl jax_threefry_partitionable "
    "jax_debug_key_reuse jax_check_tracer_leaks jax_softmax_custom_jvp jax_legacy_prng_key".split()
)
#: Settings that change nothing a script could see here: taken and dropped.
IGNORED: Final = frozenset(
    "jax_log_compiles jax_traceback_filtering jax_persistent_cache_min_compile_time_secs jax_explain_cache_misses "
    "jax_persistent_cache_min_entry_size_bytes jax_enable_compilation_cache jax_pprint_use_color jax_logging_level "
    "jax_use_shardy_partitioner".split()
)
_PLATFORM: Final = frozenset({"jax_platform_name", "jax_platforms"})
#: The same settings as context managers.
CONTEXTS: Final = (
    "enable_x64 debug_nans debug_infs check_tracer_leaks checking_leaks default_matmul_precision numpy_dtype_promotion "
    "numpy_rank_promotion debug_key_reuse default_prng_impl enable_custom_prng threefry_partitionable softmax_custom_jvp "
    "legacy_prng_key log_compiles"
).split()


class Config(StandIn):
    """`jax.config`: the settings above; the others are told apart from those that do not exist."""

    OFFERS: ClassVar[frozenset[str]] = frozenset({"update", "read", "x64_enabled"}) | SETTINGS

    def __init__(self, guards: Guards) -> None:
        self._guards = guards

    def update(self, name: str, value: Any) -> None:
        """Set something for the rest of the job.

        Raises:
            AttributeError: JAX has no such setting (its own type and words).
            RefusedUse: it has, and a script may not change it.
        """
        name = exact(name)
        if name in IGNORED:
            return
        if name in _PLATFORM:
            if value not in ("cpu", "", None):
                raise RefusedUse(fill(ONLY_CPU, name=name))
            return
        if name not in jax.config.values:
            raise AttributeError(fill(NO_SUCH_SETTING, name=name))
        if name not in SETTINGS:
            raise RefusedUse(fill(NO_SETTING, name=name))
        before = getattr(jax.config, name)
        update: Any = jax.config.update  # untyped in jax
        update(name, value)
        if name not in self._guards.requests:
            self._guards.on_close(lambda: update(name, before))
        self._guards.requests[name] = value

    def read(self, name: str) -> Any:
        """The value of a setting that a script may change."""
        name = exact(name)
        if name not in SETTINGS:
            raise RefusedUse(fill(NO_SETTING, name=name))
        return getattr(jax.config, name)

    def __getattr__(self, name: str) -> Any:
        if name in SETTINGS or name == "x64_enabled":
            return getattr(jax.config, name)
        raise AttributeError(name)


def jax_names(guards: Guards, out: Output, config: Config) -> dict[str, Any]:
    """Names of JAX and Flax that are ours, by dotted name."""
    found: dict[str, Any] = {
        "jax.config": config,
        "jax.make_jaxpr": _as_text(jax.make_jaxpr), "flax.nnx.make_jaxpr": _as_text(nnx.make_jaxpr),
        "jax.debug.print": _debug_print(out),
        "jax.custom_jvp": _kept(guards, jax.custom_jvp), "jax.custom_vjp": _kept(guards, jax.custom_vjp),
        "jax.custom_batching.custom_vmap": _kept(guards, jax.custom_batching.custom_vmap),
        "flax.nnx.custom_vjp": _kept(guards, nnx.custom_vjp),
        "jax.core.Tracer": Kind(jax.core.Tracer), "jax.core.ShapedArray": Kind(jax.core.ShapedArray),
        "jax.device_put": _device_put, "jax.devices": lambda *_: [DEVICE], "jax.local_devices": lambda *_: [DEVICE],
        "jax.default_backend": lambda: "cpu", "jax.process_index": lambda *_: 0, "jax.process_count": lambda *_: 1,
        "jax.device_count": lambda *_: 1, "jax.local_device_count": lambda *_: 1, "jax.process_indices": lambda *_: [0],
        "jax.host_id": lambda *_: 0, "jax.host_ids": lambda *_: [0], "jax.host_count": lambda *_: 1,
        "flax.nnx.GraphDef": Kind(nnx.GraphDef),
        "flax.nnx.dataclass": own_decorator(guards, nnx.dataclass, "dataclass"),
        "flax.struct.dataclass": own_decorator(guards, flax.struct.dataclass, "dataclass"),
    }  # fmt: skip
    for name in ("custom_jvp", "custom_vjp"):
        found[f"jax.custom_derivatives.{name}"] = found[f"jax.{name}"]
    for name in ("compact", "nowrap", "compact_name_scope"):
        found[f"flax.linen.{name}"] = own_function(guards, getattr(linen, name), name)
    for name in CONTEXTS:
        found[f"jax.{name}"] = _context(getattr(jax, name))
    for name, refused in KEYWORDS.items():
        found[name] = restricted(_real(name), name, refused)
    found |= {f"jax.tree_util.{n}": f for n, f in _registrations(guards).items()}
    return found


def _real(dotted: str) -> Callable[..., Any]:
    root, *rest = dotted.split(".")
    value: Any = {"jax": jax, "flax": types.SimpleNamespace(nnx=nnx, linen=linen)}[root]
    for part in rest:
        value = getattr(value, part)
    function: Callable[..., Any] = value
    return function


def restricted(function: Callable[..., Any], name: str, refused: Mapping[str, str]) -> Callable[..., Any]:
    """A function some of whose arguments are not passed on, by whatever position or name they come."""
    signature = inspect.signature(function)

    def with_plain_arguments(*args: Any, **keywords: Any) -> Any:
        try:
            given = signature.bind_partial(*args, **keywords).arguments
        except TypeError:
            given = keywords  # the function itself says what is wrong with the call
        for argument, reason in refused.items():
            if given.get(argument) is not None:
                raise RefusedUse(fill(NO_KEYWORD, name=argument, function=name, reason=reason))
        return function(*args, **keywords)

    with_plain_arguments.__name__ = with_plain_arguments.__qualname__ = name.rpartition(".")[2]
    return with_plain_arguments


def _as_text(make: Callable[..., Any]) -> Callable[..., Any]:
    """`make_jaxpr` whose result is its text: a real jaxpr leads to tracebacks, functions and the compiler."""

    def make_jaxpr(function: Any = None, **options: Any) -> Any:
        if function is None:
            return lambda f: make_jaxpr(f, **options)
        made = make(function, **options)

        def call(*args: Any, **keywords: Any) -> Any:
            result = made(*args, **keywords)
            if options.get("return_shape"):
                return Text(str(result[0])), result[1]
            return Text(str(result))

        return call

    return make_jaxpr


def _kept(guards: Guards, make: Callable[..., Any]) -> Callable[..., Any]:
    """A maker whose results the script may give rules (`defjvp`, `defvjp`); those of libraries it may not change."""

    def make_own(*args: Any, **options: Any) -> Any:
        made = make(*args, **options)
        if args:
            return guards.keep(made)
        return lambda function: guards.keep(made(function))

    make_own.__name__ = make_own.__qualname__ = getattr(make, "__name__", "custom")
    return make_own


def _context(state: Any) -> Callable[..., Any]:
    def setting(*value: Any) -> Any:
        return state(*value)

    return setting


def _device_put(x: Any, device: Any = None, *, src: Any = None, **_: Any) -> Any:
    """`jax.device_put` to the one device there is."""
    if not all(d is None or d == DEVICE for d in (device, src)):
        raise RefusedUse(fill(NO_KEYWORD, name="device", function="jax.device_put", reason=DEVICES))
    return jax.device_put(x)


# --- jax.debug.print ------------------------------------------------------------------------------------------------


class _Check(string.Formatter):
    """Finds arguments that no field names, as `jax.debug.print` does."""

    def format_field(self, value: Any, format_spec: str) -> str:
        """Nothing is formatted."""
        return ""

    def check_unused_args(self, used_args: Any, args: Any, kwargs: Any) -> None:
        """Raises ValueError for what is not used."""
        positional = [a for i, a in enumerate(args) if i not in used_args]
        if positional:
            raise ValueError(fill(UNUSED_POSITIONAL, names=positional))
        named = [k for k in kwargs if k not in used_args]
        if named:
            raise ValueError(fill(UNUSED_KEYWORD, names=named))


def _debug_print(out: Output) -> Callable[..., Any]:
    def debug_print(
        fmt: Any = None,
        *args: Any,
        ordered: bool = False,
        partitioned: bool = False,  # noqa: ARG001 - there is one device
        skip_format_check: bool = False,
        **values: Any,
    ) -> Any:
        """`jax.debug.print` of plain fields, into the script's output."""
        if fmt is None:
            return lambda text, *a, **v: debug_print(text, *a, ordered=ordered, **v)
        text = str.__str__(fmt)
        if any(reaches(field) for field in fields_of(text)):
            raise RefusedUse(fill(PLAIN_FIELDS))
        if not skip_format_check:
            _Check().format(text, *args, **values)
        args, values = jax.tree.map(_plain, (args, values))
        # As in jax: only a text that begins with a field, or has one after its first words, is a format.
        first = next(iter(string.Formatter().parse(text)), None)
        is_format = first is not None and first[1] is not None

        def emit(*a: Any, **v: Any) -> None:
            line = text.format(*a, **v) if is_format else " ".join((text, *(str(x) for x in a)))
            out.write(line + "\n")

        jax.debug.callback(emit, *args, ordered=ordered, **values)
        return None

    debug_print.__name__ = debug_print.__qualname__ = "print"
    return debug_print


def _plain(leaf: Any) -> Any:
    """A leaf that may travel to the callback: an array or number as it is, anything else as its text now."""
    if isinstance(leaf, jax.Array | jax.core.Tracer | bool | int | float | complex | str) or hasattr(leaf, "dtype"):
        return leaf
    return Text(str(leaf))


# --- registrations --------------------------------------------------------------------------------------------------


def _registrations(guards: Guards) -> dict[str, Callable[..., Any]]:
    """`jax.tree_util.register_…` for the script's own classes.

    JAX keeps what is registered for ever, so it is given functions of ours that hold the script's only while the job runs.
    """

    def hold(**functions: Any) -> dict[str, Any]:
        held = dict(functions)
        guards.on_close(held.clear)
        return held

    def check(cls: Any, name: str) -> None:
        if not (isinstance(cls, type) and cls in guards.made):
            raise RefusedUse(fill(OWN_CLASSES, name=name))

    def register_pytree_node(
        nodetype: Any, flatten_func: Any, unflatten_func: Any, flatten_with_keys_func: Any = None
    ) -> None:
        check(nodetype, "register_pytree_node")
        held = hold(flatten=flatten_func, unflatten=unflatten_func, keys=flatten_with_keys_func)
        with_keys = None if flatten_with_keys_func is None else lambda x: held["keys"](x)
        tree_util.register_pytree_node(
            nodetype, lambda x: held["flatten"](x), lambda aux, parts: held["unflatten"](aux, parts), with_keys
        )

    def register_pytree_with_keys(
        nodetype: Any, flatten_with_keys: Any, unflatten_func: Any, flatten_func: Any = None
    ) -> None:
        check(nodetype, "register_pytree_with_keys")
        held = hold(keys=flatten_with_keys, unflatten=unflatten_func, flatten=flatten_func)
        flatten = None if flatten_func is None else lambda x: held["flatten"](x)
        tree_util.register_pytree_with_keys(
            nodetype, lambda x: held["keys"](x), lambda aux, parts: held["unflatten"](aux, parts), flatten
        )

    def register_pytree_node_class(cls: Any) -> Any:
        check(cls, "register_pytree_node_class")
        tree_util.register_pytree_node(
            cls, lambda x: x.tree_flatten(), lambda aux, parts: cls.tree_unflatten(aux, parts)
        )
        return cls

    def register_pytree_with_keys_class(cls: Any) -> Any:
        check(cls, "register_pytree_with_keys_class")
        flatten = (lambda x: x.tree_flatten()) if hasattr(cls, "tree_flatten") else None
        tree_util.register_pytree_with_keys(
            cls, lambda x: x.tree_flatten_with_keys(), lambda aux, parts: cls.tree_unflatten(aux, parts), flatten
        )
        return cls

    def register_dataclass(
        nodetype: Any, data_fields: Any = None, meta_fields: Any = None, drop_fields: Any = ()
    ) -> Any:
        check(nodetype, "register_dataclass")
        data, meta = (None if f is None else checked_names(f) for f in (data_fields, meta_fields))
        return tree_util.register_dataclass(nodetype, data, meta, drop_fields)

    return {
        "register_pytree_node": register_pytree_node,
        "register_pytree_with_keys": register_pytree_with_keys,
        "register_pytree_node_class": register_pytree_node_class,
        "register_pytree_with_keys_class": register_pytree_with_keys_class,
        "register_dataclass": register_dataclass,
        "register_static": own_class(guards, tree_util.register_static, "register_static"),
    }


__all__ = ["CONTEXTS", "IGNORED", "KEYWORDS", "SETTINGS", "Config", "jax_names", "restricted"]
