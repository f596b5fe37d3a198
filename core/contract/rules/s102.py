"""The carry's structure changes inside the step.

**What.** The new carry is another pytree than init: `None` at first and an array after a step, a key lost or added, a
list for a tuple, a part of the pair alone.

**Why.** A scan is one compiled loop: what goes in at step t must be what came out at t - 1, the same containers with
the same keys. Init sets the contract; `None` is a container without leaves, not an array that is not there yet.

**Bad**

    def step(carry, x):
        mean, last = carry
        return (mean + x, x), None

    jax.lax.scan(step, (0.0, None), xs)

**Good**

    jax.lax.scan(step, (0.0, 0.0), xs)

Source: `jax.lax.scan`, argument `init`: "This value must have the same structure as the first element of the pair
returned by f".
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from core.base.avals import LeafType, leaf_types
from core.base.places import Because
from core.base.text import fill
from core.base.violation import Severity
from core.contract import repairs, trees
from core.contract.carry import named, return_place
from core.contract.facts import ScanFacts
from core.contract.mend import OnCarry, WithY
from core.contract.rule import Finding, Jax, Repair, Rule, Stage
from core.contract.trace import Raised, StepTrace, same_structure
from core.contract.trees import Difference

MESSAGE_KIND = "{path} goes in as {expected} and comes out as {got}."
MESSAGE_STATIC = "{path} goes in as {expected} and comes out as the same kind with other static data."
MESSAGE_MISSING = "The step returns {path} without {missing}, which init has."
MESSAGE_EXTRA = "The step returns {path} with {extra}, which init does not have."
MESSAGE_BOTH = "The step returns {path} without {missing}, which init has, and with {extra}, which it does not have."
MESSAGE_ALONE = (
    "The step returns the new carry alone: a scan takes its two parts for the pair (new carry, y), "
    "so {path} goes in as {expected} and comes out as {got}."
)
BECAUSE = "init set {expected} here"
WHY = (
    "A scan is one compiled loop: what goes in at step t must be what came out at step t − 1, "
    "the same containers with the same keys."
)
TITLE_ALONE = "Return it as the new carry, with no y: (new carry, None)"
TITLE_ALONE_TWICE = "Return it twice, as the new carry and as y"
TITLE_KEEP = "Keep {paths} from the incoming carry"
TITLE_DROP = "Return {path} without {paths}"
TITLE_RENAME = "Return {extra} as {missing}"
TITLE_KIND = "Return {path} as {kind}, as init has it"


def check(facts: ScanFacts) -> Iterator[Finding]:
    """One finding for each node that differs between init and the new carry."""
    trace = facts.trace
    if isinstance(trace, Raised) or trace.pair is None:
        return
    if not same_structure(facts.call.init, trace.pair[0]) and same_structure(facts.call.init, trace.returned):
        yield _alone(facts, trace)
        return
    for difference in trees.differences(facts.call.init, trace.pair[0], "carry"):
        if difference.static and facts.jax is None:
            continue  # static data that only differs to Python's eye
        expected, got = _leaves(difference)
        before = trees.describe(difference.before)
        yield Finding(
            message=_message(facts, difference),
            place=return_place(facts, difference.path),
            because=Because(facts.places.find(f"init:{difference.path}"), fill(BECAUSE, expected=before)),
            expected=expected,
            got=got,
            repairs=(*repairs.right_step(facts.call), *_repairs(difference)),
            path=difference.path,
        )


def _alone(facts: ScanFacts, trace: StepTrace) -> Finding:
    init, part = facts.call.init, trace.pair[0] if trace.pair else None
    before, after = trees.describe(init), trees.describe(part)
    return Finding(
        message=fill(MESSAGE_ALONE, path=named(facts, "carry"), expected=before, got=after),
        place=return_place(facts, "carry"),
        because=Because(facts.places.find("init:carry"), fill(BECAUSE, expected=before)),
        expected=(trees.shown(init, "carry"),),
        got=(trees.shown(part, "carry"),),
        repairs=(
            *repairs.right_step(facts.call),
            repairs.mend_step("step_return", TITLE_ALONE, WithY(repeat=False), "", "carry, None"),
            repairs.mend_step("step_return", TITLE_ALONE_TWICE, WithY(repeat=True), "", "carry, carry"),
        ),
        path="carry",
    )


def _message(facts: ScanFacts, difference: Difference) -> str:
    path = named(facts, difference.path)
    expected, got = trees.describe(difference.before), trees.describe(difference.after)
    missing, extra = _names(difference.missing), _names(difference.extra)
    if not difference.same_kind:
        return fill(MESSAGE_KIND, path=path, expected=expected, got=got)
    if missing and extra:
        return fill(MESSAGE_BOTH, path=path, missing=missing, extra=extra)
    if missing:
        return fill(MESSAGE_MISSING, path=path, missing=missing)
    if extra:
        return fill(MESSAGE_EXTRA, path=path, extra=extra)
    return fill(MESSAGE_STATIC, path=path, expected=expected)


def _names(paths: tuple[str, ...]) -> str:
    return ", ".join(paths)


def _leaves(difference: Difference) -> tuple[tuple[LeafType, ...], tuple[LeafType, ...]]:
    """What init has and the new carry lacks, and the other way round; the two nodes themselves when kinds differ."""
    before, after = difference.before, difference.after
    if not (difference.missing or difference.extra):
        return (trees.shown(before, difference.path),), (trees.shown(after, difference.path),)
    lost = tuple(t for p in difference.missing for t in leaf_types(trees.find(before, difference.path, p), p))
    new = tuple(t for p in difference.extra for t in leaf_types(trees.find(after, difference.path, p), p))
    absent = tuple(LeafType(t.path, None, trees.ABSENT) for t in lost)
    return lost + tuple(LeafType(t.path, None, trees.ABSENT) for t in new), absent + new


def _repairs(difference: Difference) -> Iterator[Repair]:
    """Mends of the step that give init's structure back, and of init where the new carry only has more than it."""
    path, before, after = difference.path, difference.before, difference.after
    fits = OnCarry(path, trees.fit)
    if not difference.same_kind:
        if before is None:
            yield _zeros(path, after)
        elif after is None:
            yield repairs.mend_step("step_keep", fill(TITLE_KEEP, paths=path), fits, path)
        elif _sequences(before, after):
            title = fill(TITLE_KIND, path=path, kind=trees.describe(before))
            yield repairs.mend_step("step_kind", title, fits, path)
            kind = fill(repairs.TITLE_INIT_KIND, path=path, kind=trees.describe(after))
            yield repairs.init_value(path, kind, partial(_extended, after))
    elif difference.missing and difference.extra:
        if trees.renamed(before, after):
            title = fill(TITLE_RENAME, extra=_names(difference.extra), missing=_names(difference.missing))
            yield repairs.mend_step("step_keep", title, fits, path)
    elif difference.missing:
        yield repairs.mend_step("step_keep", fill(TITLE_KEEP, paths=_names(difference.missing)), fits, path)
    elif difference.extra:
        yield _zeros(path, after, *difference.extra)
        yield repairs.mend_step("step_drop", fill(TITLE_DROP, path=path, paths=_names(difference.extra)), fits, path)
    elif isinstance(before, dict):  # the order of an OrderedDict, the factory of a defaultdict
        title = fill(TITLE_KIND, path=path, kind=trees.describe(before))
        yield repairs.mend_step("step_kind", title, fits, path)


def _zeros(path: str, after: object, *extra: str) -> Repair:
    """Give init what it lacks, as zeros of the types that came out."""
    nodes = [(p, trees.find(after, path, p)) for p in extra] or [(path, after)]
    leaves = [t for p, node in nodes for t in leaf_types(node, p)]
    title = fill(
        repairs.TITLE_INIT_ZEROS, path=_names(tuple(p for p, _ in nodes)), types=", ".join(str(t) for t in leaves)
    )
    return repairs.init_value(path, title, partial(_extended, after), tuple(str(t) for t in leaves))


def _extended(after: object, node: object) -> object:
    return trees.extend(node, after)


def _sequences(before: object, after: object) -> bool:
    """Whether both hold as many children, in an order: a list and a tuple, a tuple and a NamedTuple."""
    a, b = trees.node_of(before), trees.node_of(after)
    if a.kind is None or b.kind is None or isinstance(before, dict) is not isinstance(after, dict):
        return False
    return len(a.children) == len(b.children) > 0


RULE = Rule(
    code="S102",
    name="carry-structure-changes",
    title="The carry's structure changes inside the step",
    severity=Severity.ERROR,
    jax=Jax.RAISES,
    stage=Stage.TRACE,
    why=WHY,
    check=check,
)
