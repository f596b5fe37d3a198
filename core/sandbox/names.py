"""The modules that a script may import and what it does not get of them, each with the reason that X603 gives.

A row without `listed` offers every public name of the real module but its inner modules and what `denied` names; a row
with it offers those names alone. Reading guide for a reason: "jax.numpy has load, but not in the playground: …".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

FILES: Final = "a script has no files; write the values into the script"
HOST: Final = "it calls Python from inside a compiled program; return the value and use it outside"
DEVICES: Final = "there is one device, the CPU"
SETTING: Final = "it would change a setting of the worker; leave it out"
EVERYBODY: Final = "it speaks of the worker's other arrays and caches; leave it out"
RAW: Final = "it works on raw memory; use jnp.asarray or np.asarray"
INNER: Final = "it is an inner part of the library; use the public functions"
PRIMITIVE: Final = "it is a primitive; use the function of the same name without _p"
REFLECTION: Final = "it looks things up by name; call the function itself"
FRAMES: Final = "it reads variables by their names; pass the arrays"
TERMINAL: Final = "there is no terminal; use print"
REGISTRY: Final = "it registers for the whole process; leave it out"
OLD: Final = "it is kept by NumPy for old code; use plain arrays"
LINEN_META: Final = "it annotates arrays for many devices; there is one"
CONTEXT: Final = "it intercepts other code while that runs; call the function itself"


@dataclass(frozen=True, slots=True)
class Space:
    """One module: the name it is imported by, the module that holds it (the same by default), and its names."""

    name: str
    module: str = ""
    listed: str | None = None
    denied: Mapping[str, str] = field(default_factory=dict)

    @property
    def source(self) -> str:
        """The real module."""
        return self.module or self.name


def _deny(*rows: tuple[str, str]) -> dict[str, str]:
    return {name: reason for reason, names in rows for name in names.split()}


_JAX = _deny(
    (HOST, "pure_callback make_array_from_callback"),
    (
        DEVICES,
        "make_array_from_process_local_data make_array_from_single_device_arrays pmap shard_map smap make_mesh set_mesh "
        "use_abstract_mesh get_mesh get_abstract_mesh reshard NamedSharding P Shard Device memory default_device",
    ),
    (EVERYBODY, "live_arrays clear_caches print_environment_info"),
    (
        SETTING,
        "make_user_context transfer_guard transfer_guard_device_to_device transfer_guard_device_to_host "
        "transfer_guard_host_to_device thread_guard explain_cache_misses array_garbage_collection_guard no_execution "
        "no_tracing remove_size_one_mesh_axis_from_type jax2tf_associative_scan_reductions auto_pcast "
        "allow_f16_reductions enable_checks CompilerEffortLevel",
    ),
    (INNER, "ad Inline"),
)
_LAX = _deny((DEVICES, "with_sharding_constraint"))
_JNP = _deny((FILES, "fromfile load save savez"), (RAW, "from_dlpack"))
_TREE_UTIL = _deny((INNER, "default_registry"))
_NNX = _deny(
    (DEVICES, "pmap shard_map"),
    (
        LINEN_META,
        "abstract_with_sharding get_abstract_model get_named_sharding get_partition_spec logical_axis_rules StateSharding "
        "use_eager_sharding using_eager_sharding with_partitioning",
    ),
    (REGISTRY, "register_data_type register_variable_name variable_name_from_type variable_type_from_name"),
    (SETTING, "set_graph_mode set_graph_updates var_defaults"),
    (REFLECTION, "call"),
    (TERMINAL, "display"),
    (INNER, "checkify current_update_context update_context UpdateContext NodeStates"),
)
_NUMPY = _deny(
    (
        FILES,
        "fromfile fromregex genfromtxt load loadtxt memmap save savetxt savez savez_compressed get_include",
    ),
    (RAW, "from_dlpack nditer nested_iters void record recarray"),
    (FRAMES, "bmat"),
    (OLD, "matrix asmatrix poly1d ScalarType sctypeDict typecodes"),
    (SETTING, "setbufsize seterrcall geterrcall"),
    (TERMINAL, "info show_config show_runtime test"),
)
_LINEN = _deny(
    (
        LINEN_META,
        "Partitioned LogicallyPartitioned PARTITION_NAME add_metadata_axis get_logical_axis_rules get_partition_spec "
        "get_sharding logical_axis_rules logical_to_mesh logical_to_mesh_axes logical_to_mesh_sharding "
        "set_logical_axis_rules unbox with_logical_constraint with_logical_partitioning with_partitioning",
    ),
    (CONTEXT, "intercept_methods override_named_call enable_named_call disable_named_call named_call"),
    (TERMINAL, "tabulate"),
    (INNER, "share_scope map_variables"),
)
_TESTING = (
    "assert_allclose assert_array_equal assert_array_almost_equal assert_equal assert_almost_equal assert_array_less "
    "assert_array_max_ulp"
)
_OPTAX_PARTS = (
    "assignment", "contrib", "losses", "microbatching", "perturbations", "projections", "schedules", "second_order",
    "transforms", "tree", "tree_utils",
)  # fmt: skip
_STATS = (
    "bernoulli", "beta", "betabinom", "binom", "cauchy", "chi2", "dirichlet", "expon", "gamma", "gennorm", "geom",
    "gumbel_l", "gumbel_r", "laplace", "logistic", "multinomial", "multivariate_normal", "nbinom", "norm", "pareto",
    "poisson", "t", "truncnorm", "uniform", "vonmises", "wrapcauchy",
)  # fmt: skip

SPACES: Final[tuple[Space, ...]] = (
    # --- JAX
    Space("jax", denied=_JAX),
    Space("jax.numpy", denied=_JNP),
    Space("jax.numpy.linalg"),
    Space("jax.numpy.fft"),
    Space("jax.lax", denied=_LAX),
    Space("jax.lax.linalg"),
    Space("jax.nn"),
    Space("jax.nn.initializers"),
    Space("jax.random"),
    Space("jax.tree"),
    Space("jax.tree_util", denied=_TREE_UTIL),
    Space("jax.errors"),
    Space("jax.dtypes"),
    Space("jax.typing"),
    Space("jax.image"),
    Space("jax.ops"),
    Space("jax.flatten_util"),
    Space("jax.custom_batching"),
    Space("jax.custom_derivatives", denied=_deny((INNER, "CustomVJPPrimal SymbolicZero"))),
    Space("jax.checkpoint_policies"),
    Space("jax.core", listed="Tracer ShapedArray"),
    Space("jax.debug", listed="print"),
    Space("jax.version", listed="__version__"),
    Space("jax.scipy", listed=""),
    *(
        Space(f"jax.scipy.{n}")
        for n in ("fft", "integrate", "interpolate", "linalg", "ndimage", "optimize", "signal", "special", "stats")
    ),
    *(Space(f"jax.scipy.stats.{n}") for n in _STATS),
    Space("jax.scipy.sparse"),
    Space("jax.scipy.sparse.linalg"),
    Space("jax.scipy.cluster"),
    Space("jax.scipy.cluster.vq"),
    Space("jax.scipy.spatial"),
    Space("jax.scipy.spatial.transform"),
    Space("jaxlib", listed="__version__"),
    # --- Flax, Optax
    Space("flax", listed="__version__"),
    Space("flax.nnx", denied=_NNX),
    Space("flax.nnx.metrics", listed="Accuracy Average Metric MultiMetric Welford Statistics"),
    Space("flax.nnx.initializers"),
    Space("flax.experimental", module="flax", listed=""),
    Space("flax.experimental.nnx", module="flax.nnx", denied=_NNX),
    Space("flax.linen", denied=_LINEN),
    Space("flax.linen.initializers"),
    Space("flax.core", listed="FrozenDict freeze unfreeze pop copy pretty_repr"),
    Space("flax.struct", listed="PyTreeNode dataclass field"),
    Space("flax.traverse_util", listed="flatten_dict unflatten_dict path_aware_map empty_node"),
    Space("optax"),
    *(Space(f"optax.{n}") for n in _OPTAX_PARTS),
    # --- NumPy
    Space("numpy", denied=_NUMPY),
    Space("numpy.linalg", denied=_deny((TERMINAL, "test"))),
    Space("numpy.fft", denied=_deny((TERMINAL, "test"))),
    Space("numpy.random", listed="Generator RandomState SeedSequence"),
    Space("numpy.testing", listed=_TESTING),
    Space("numpy.typing", listed="ArrayLike DTypeLike NDArray"),
    Space("numpy.exceptions"),
    Space("numpy.lib", listed=""),
    Space("numpy.lib.stride_tricks", listed="sliding_window_view"),
    # --- the standard library
    Space("math"),
    Space("cmath"),
    Space("itertools"),
    Space("functools", listed="reduce partial partialmethod cache lru_cache cached_property cmp_to_key"),
    Space(
        "operator",
        listed=(
            "abs add and_ concat contains countOf eq floordiv ge getitem gt index indexOf inv invert is_ is_not "
            "itemgetter le lshift lt matmul mod mul ne neg not_ or_ pos pow rshift sub truediv truth xor"
        ),
    ),
    Space("collections", listed="namedtuple deque defaultdict OrderedDict Counter ChainMap"),
    Space(
        "collections.abc",
        listed=(
            "Callable Iterable Iterator Generator Sequence MutableSequence Mapping MutableMapping Set Hashable Sized "
            "Container Collection Reversible"
        ),
    ),
    Space("dataclasses", listed="field is_dataclass KW_ONLY InitVar MISSING FrozenInstanceError"),
    Space(
        "typing",
        listed=(
            "Any Annotated Callable ClassVar Collection DefaultDict Deque Dict Final FrozenSet Generator Generic "
            "Hashable Iterable Iterator List Literal Mapping MutableMapping NamedTuple Never NewType NoReturn Optional "
            "OrderedDict ParamSpec Protocol Self Sequence Set Sized SupportsFloat SupportsIndex SupportsInt "
            "TYPE_CHECKING Tuple Type TypeAlias TypeGuard TypeVar TypedDict Union assert_never cast"
        ),
        denied=_deny((REFLECTION, "get_type_hints ForwardRef"), (REGISTRY, "overload")),
    ),
    Space("enum", listed="Enum IntEnum StrEnum Flag IntFlag auto unique"),
    Space("abc", listed="ABC"),
    Space("numbers", listed="Number Complex Real Rational Integral"),
    Space("contextlib", listed="contextmanager nullcontext suppress"),
    Space("copy", listed="copy deepcopy"),
    Space("heapq", listed="heapify heappop heappush heappushpop heapreplace merge nlargest nsmallest"),
    Space("bisect", listed="bisect bisect_left bisect_right insort insort_left insort_right"),
    Space("statistics", listed="fmean geometric_mean harmonic_mean mean median mode pstdev pvariance stdev variance"),
    Space("time", listed="time time_ns perf_counter perf_counter_ns monotonic monotonic_ns process_time sleep"),
    Space("types", listed="SimpleNamespace"),
    Space("fractions", listed="Fraction"),
    Space("string", listed="ascii_letters ascii_lowercase ascii_uppercase digits hexdigits punctuation whitespace"),
    Space("json", listed="dumps loads"),
    # Made by core/sandbox/own_std.py alone.
    Space("random", listed=""),
    Space("os", listed=""),
    Space("sys", listed=""),
    Space("warnings", listed=""),
)

#: Reasons for names that exist in no table but are asked for often.
EXTRA_DENIED: Final[Mapping[str, Mapping[str, str]]] = {
    "jax": {"experimental": "it changes from one version to the next; use what jax, jax.numpy and jax.lax have"},
    "jax.debug": _deny(
        (HOST, "callback"),
        (TERMINAL, "breakpoint log inspect_array_sharding visualize_array_sharding visualize_sharding"),
        (INNER, "DebugEffect OrderedDebugEffect"),
    ),
    "dataclasses": {"make_dataclass": "it makes a class from text; write the class"},
    "functools": _deny((REFLECTION, "singledispatch singledispatchmethod")),
    "operator": _deny(
        (
            REFLECTION,
            "setitem delitem iadd iand iconcat ifloordiv ilshift imatmul imod imul ior ipow irshift isub itruediv ixor length_hint call",
        )
    ),
    "os": dict.fromkeys(("path", "system", "listdir", "open", "remove", "getcwd", "mkdir", "popen"), FILES),
    "numpy.lib": {"format": FILES, "npyio": FILES},
    "numpy.lib.stride_tricks": {"as_strided": RAW},
    "numpy.random": _deny(
        (
            INNER,
            "BitGenerator MT19937 PCG64 PCG64DXSM Philox SFC64 bit_generator mtrand get_bit_generator set_bit_generator",
        ),
        (TERMINAL, "test"),
    ),
    "flax.traverse_util": {"TraverseAttr": REFLECTION},
    "collections": {"UserDict": "subclass dict", "UserList": "subclass list", "UserString": "subclass str"},
}
#: Libraries that draw: a script may use them, and nothing is drawn (`kinds.LeftOut`).
PLOTTING: Final = frozenset({"matplotlib", "seaborn", "plotly"})
#: What to write instead of modules that people import often.
HINTS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("logging", "rich", "absl"), "use print"),
    **dict.fromkeys(("argparse", "sys.argv", "yaml", "tomllib"), "set the values in the script"),
    **dict.fromkeys(("pathlib", "io", "pickle", "tempfile", "shutil", "glob", "csv", "pandas", "h5py", "orbax"), FILES),
    **dict.fromkeys(("tqdm", "wandb", "tensorboard", "tensorboardX"), "leave it out; a plain loop with print does"),
    **dict.fromkeys(
        ("torch", "tensorflow", "torchvision", "datasets", "tensorflow_datasets"), "make the data with jax.random"
    ),
    **dict.fromkeys(
        ("equinox", "haiku", "chex", "distrax", "jaxtyping", "einops"),
        "write the model with flax.nnx or plain functions",
    ),
    **dict.fromkeys(
        ("threading", "multiprocessing", "concurrent", "asyncio", "subprocess", "socket"),
        "a script is one thread; call the function directly",
    ),
    **dict.fromkeys(("inspect", "importlib", "builtins", "gc", "ctypes", "traceback", "pdb", "ast"), REFLECTION),
}
MODULE: Final = "it is a module of the library's inside; use the public functions"
