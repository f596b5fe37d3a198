"""Pytrees one node at a time: where two trees differ, and how one is filled in from the other.

`jax.tree_util` compares whole structures and maps over leaves only; a rule has to say which *node* differs, also where
one side has no leaf at all (`None`, an empty tuple).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jax import tree_util

from core.base.avals import LeafType, aval_of, leaf_types, path_name
from core.base.text import fill
from core.contract.trace import same_structure

NONE = "None"
ABSENT = "absent"
SEQUENCE = "a {kind} of {count}"
MAPPING = "a {kind} with the keys {keys}"
EMPTY = "an empty {kind}"


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """One level of a pytree: `kind` is its Python type (None for a leaf), `children` by their key, in JAX's order."""

    kind: type | None
    children: dict[Any, Any]
    structure: Any

    def rebuild(self, children: dict[Any, Any]) -> Any:
        """The same container with other children (one for each key)."""
        return tree_util.tree_unflatten(self.structure, [children[key] for key in self.children])


def node_of(tree: Any) -> Node:
    """The top node of a pytree. `None` is a container without children, as JAX has it."""
    flat, structure = tree_util.tree_flatten_with_path(tree, is_leaf=lambda node: node is not tree)
    if len(flat) == 1 and not flat[0][0]:
        return Node(None, {}, structure)
    return Node(type(tree), {path[0]: child for path, child in flat}, structure)


@dataclass(frozen=True, slots=True, eq=False)
class Difference:
    """One node at which two trees differ.

    Attributes:
        path: of the node, rooted as asked for.
        before, after: the two nodes.
        missing, extra: paths of children that only `before`, or only `after`, has. Both empty: another kind of node,
            or other static data in the same kind.
    """

    path: str
    before: Any
    after: Any
    missing: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()

    @property
    def static(self) -> bool:
        """Whether only static data differs: the same kind of node with the same children."""
        return self.same_kind and not self.missing and not self.extra

    @property
    def same_kind(self) -> bool:
        """Whether both are containers of the same Python type."""
        return node_of(self.before).kind is node_of(self.after).kind


def differences(before: Any, after: Any, root: str) -> Iterator[Difference]:
    """Every node at which the structures differ, outermost first; leaves are not compared."""
    a, b = node_of(before), node_of(after)
    if a.kind is not b.kind:
        yield Difference(root, before, after)
        return
    missing = tuple(path_name(root, (key,)) for key in a.children if key not in b.children)
    extra = tuple(path_name(root, (key,)) for key in b.children if key not in a.children)
    if missing or extra:
        yield Difference(root, before, after, missing, extra)
    elif a.structure != b.structure:
        yield Difference(root, before, after)
        return
    for key in a.children:
        if key in b.children:
            yield from differences(a.children[key], b.children[key], path_name(root, (key,)))


def same_leaves(one: Any, other: Any) -> bool:
    """Whether two trees have one structure and leaves of the same shapes and dtypes (weak or strong)."""
    return same_structure(one, other) and _types(one) == _types(other)


def describe(value: Any) -> str:
    """A node in words: ``float32[2]``, ``None``, ``a tuple of 2``, ``a dict with the keys 'a', 'b'``."""
    node = node_of(value)
    if node.kind is None:
        aval = aval_of(value)
        return str(aval) if aval is not None else type(value).__name__
    if value is None:
        return NONE
    name = node.kind.__name__
    if not node.children:
        return fill(EMPTY, kind=name)
    if isinstance(value, dict):
        return fill(MAPPING, kind=name, keys=", ".join(repr(key.key) for key in node.children))
    return fill(SEQUENCE, kind=name, count=len(node.children))


def shown(value: Any, path: str) -> LeafType:
    """A node as it stands in a table of leaves: a leaf by its type, a container in words."""
    return LeafType(path, aval_of(value) if node_of(value).kind is None else None, describe(value))


def at(tree: Any, root: str, path: str, change: Callable[[Any], Any]) -> Any:
    """The tree with the node at `path` replaced by ``change(node)``; the tree itself when there is no such node."""
    if root == path:
        return change(tree)
    node = node_of(tree)
    if not any(path.startswith(path_name(root, (key,))) for key in node.children):
        return tree
    children = {k: at(child, path_name(root, (k,)), path, change) for k, child in node.children.items()}
    return node.rebuild(children)


def find(tree: Any, root: str, path: str) -> Any:
    """The node at `path`.

    Raises:
        KeyError: there is none.
    """
    found: list[Any] = []

    def keep(node: Any) -> Any:
        found.append(node)
        return node

    at(tree, root, path, keep)
    if not found:
        raise KeyError(path)
    return found[0]


def fit(old: Any, new: Any) -> Any:
    """`new` in the structure of `old`: children that `new` lacks are taken from `old`, those that `old` lacks go."""
    a, b = node_of(old), node_of(new)
    if a.kind is None and b.kind is None:
        return new
    if a.kind is None or b.kind is None or not b.children:
        return old
    answers = _answers(a, b)
    return a.rebuild({k: fit(child, answers[k]) if k in answers else child for k, child in a.children.items()})


def extend(old: Any, new: Any) -> Any:
    """`old` in the structure of `new` (a tree of abstract values): what `old` lacks becomes zeros of `new`'s types.

    Raises:
        TypeError: a leaf has no zeros (a PRNG key), or a leaf of `old` would have to become a container.
    """
    a, b = node_of(old), node_of(new)
    if b.kind is None:
        return old if a.kind is None else _zeros(new)
    if a.kind is None:
        raise TypeError("a leaf does not become a container")
    answers = _answers(b, a)
    return b.rebuild({k: extend(answers.get(k), child) for k, child in b.children.items()})


def renamed(old: Any, new: Any) -> bool:
    """Whether the only difference between two nodes is one key's name: its leaves are of the same types."""
    a, b = node_of(old), node_of(new)
    lost, found = [k for k in a.children if k not in b.children], [k for k in b.children if k not in a.children]
    return len(lost) == len(found) == 1 and _types(a.children[lost[0]]) == _types(b.children[found[0]])


def _answers(wanted: Node, given: Node) -> dict[Any, Any]:
    """For each key of `wanted`, the child of `given` that answers to it, where there is one.

    By key; a single key that was renamed; and in sequences of one length and different kinds (a list for a tuple, a
    tuple for a NamedTuple) by position.
    """
    by_key = {k: given.children[k] for k in wanted.children if k in given.children}
    lost = [k for k in wanted.children if k not in by_key]
    found = [k for k in given.children if k not in by_key]
    ordered = not by_key and not any(isinstance(k, tree_util.DictKey) for k in (*lost, *found))
    one = len(lost) == 1 and len(found) == 1 and _types(wanted.children[lost[0]]) == _types(given.children[found[0]])
    if one or (ordered and len(lost) == len(found)):
        by_key |= {k: given.children[other] for k, other in zip(lost, found, strict=True)}
    return by_key


def _types(tree: Any) -> list[tuple[str, str]]:
    return [(t.path, str(t)) for t in leaf_types(tree, "")]


def _zeros(leaf: Any) -> Any:
    aval = aval_of(leaf)
    if aval is None:
        raise TypeError("no array, so it has no zeros")
    return jnp.zeros(aval.shape, jnp.dtype(aval.dtype))
