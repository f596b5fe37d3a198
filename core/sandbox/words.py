"""Which names the step language gives a meaning to, and the sentences it refuses things with."""

from __future__ import annotations

from typing import Final

FILENAME: Final = "<script>"

#: Special methods a class may define: operators and the protocols ordinary code needs; nothing that the interpreter,
#: pickle, NumPy's buffer protocols or attribute lookup would call behind the guards.
METHODS: Final = frozenset(
    f"__{name}__"
    for name in (
        "init call post_init repr str format len iter next reversed getitem setitem delitem missing contains "
        "eq ne lt le gt ge hash bool int float complex index round floor ceil trunc neg pos abs invert "
        "add radd iadd sub rsub isub mul rmul imul truediv rtruediv itruediv floordiv rfloordiv ifloordiv "
        "mod rmod imod divmod rdivmod pow rpow ipow matmul rmatmul imatmul and rand iand or ror ior xor rxor ixor "
        "lshift rlshift ilshift rshift rrshift irshift enter exit"
    ).split()
)
#: Module names in double underscores that a script may read.
READABLE: Final = frozenset({"__name__", "__doc__"})
#: Those that it may set (nobody here reads them).
SETTABLE: Final = frozenset({"__all__", "__author__", "__version__", "__date__", "__license__"})
#: Attributes in double underscores that may be asked for; the guard decides by the object.
ASKABLE: Final = METHODS | {"__name__", "__qualname__", "__doc__", "__class__", "__version__"}
#: What libraries take for the names of a named tuple's parts, and read by those names.
FIELDS: Final = "_fields"
#: Class keywords that are plain settings of NNX, typed dictionaries and Linen.
CLASS_KEYWORDS: Final = frozenset({"pytree", "total", "kw_only"})
#: Class names whose private names (``_pytree__nodes``) are those that Flax keeps on objects.
RESERVED_CLASSES: Final = frozenset({"pytree", "object"})
#: Built-ins whose class pattern binds the value itself and reads no attribute.
SELF_MATCHING: Final = frozenset("bool bytes dict float frozenset int list set str tuple".split())
#: Subscripts whose strings no library evaluates, when the name is what it looks like (the guard looks).
STRING_TYPES: Final = frozenset({"Literal", "Annotated"})

REFUSED_NAME = "the name {name} is reserved here; choose one without double underscores around it"
REFUSED_GUARD = "the name {name} is reserved here; choose one without an underscore at both ends"
REFUSED_FIELDS = "the name _fields belongs to named tuples; choose another one"
REFUSED_ATTRIBUTE = "{name} reaches into the interpreter and is not available here"
REFUSED_NODE = "{what} does not run in the playground; {instead}"
REFUSED_STRING_ANNOTATION = "an annotation that is a string is evaluated by libraries; write the type without quotes"
REFUSED_STAR_IMPORT = "import the names you use; `from … import *` is not available here"
REFUSED_RELATIVE = "there is no package around a pasted script; import by a full name"
REFUSED_METHOD = "a class may not define {name} here"
REFUSED_CLASS_KEYWORD = "the class keyword {name} is not available here"
REFUSED_CLASS_NAME = "the class name {name} is reserved here; choose another one"
REFUSED_CLASS_PATTERN = "a class pattern reads attributes by itself; use isinstance(…) and attributes"
REFUSED_VALUE_PATTERN = "a dotted name in a pattern is not available here; compare with == in an if"
REFUSED_DEPTH = "the script is nested too deeply to be read; split the expression"

#: What a refused kind of statement is called, and what to write instead, by its AST node.
INSTEAD: Final = {
    "AsyncFunctionDef": ("async code", "write a plain function"),
    "Await": ("await", "call the function directly"),
    "AsyncFor": ("async for", "use a plain for loop"),
    "AsyncWith": ("async with", "use a plain with statement"),
    "TryStar": ("except*", "use except"),
    "TypeAlias": ("a type statement", "assign the type to a name"),
}
ANY_OTHER: Final = "write it another way"
TYPE_PARAMETER: Final = ("a type parameter", "leave it out")


def is_dunder(name: str) -> bool:
    """Whether Python itself gives the name a meaning (``__x__``); names of underscores alone are plain.

    Asked of `str` itself: a script's name may be of a class of its own.
    """
    return str.startswith(name, "__") and str.endswith(name, "__") and bool(str.strip(name, "_"))
