"""By report: what to put in the place of what, in script and check alike, for other sizes."""

from __future__ import annotations

SIZES: dict[str, tuple[tuple[str, str], ...]] = {
    "rnn-reverse-flips-outputs": (
        ("SimpleCell(1, 2", "SimpleCell(1, 5"),
        ("[[1.0], [2.0], [3.0]]", "[[1.0], [2.0], [3.0], [4.0]], [[5.0], [6.0], [7.0], [8.0]]"),
    ),
    "running-sum-over-wrong-axis": (
        ("[[1.0, 2.0, 3.0], [10.0, 20.0, 30.0]]", "[[1.0, 2.0, 3.0, 4.0], [10.0, 20.0, 30.0, 40.0]]"),
        ("[[1.0,3.0,6.0],[10.0,30.0,60.0]]", "[[1.0,3.0,6.0,10.0],[10.0,30.0,60.0,100.0]]"),
    ),
    "lstm-bf16-carry-f32-cell": (
        ("LSTMCell(3, 4", "LSTMCell(5, 7"),
        ("zeros((2, 4)", "zeros((6, 7)"),
        ("ones((5, 2, 3))", "ones((8, 6, 5))"),
        ("(5,2,4)", "(8,6,7)"),
    ),
    "float64-init-silently-float32": (("np.full(1000,", "np.full(2000,"), ("1.00001", "1.00002")),
    "reward-scalar-becomes-length-1": (
        ("jnp.zeros(3)", "jnp.zeros(5)"),
        ("ones((4, 3))", "ones((6, 5))"),
        ("[3.0,6.0,9.0,12.0]", "[5.0,10.0,15.0,20.0,25.0,30.0]"),
    ),
    "aux-none-then-array": (
        ("jnp.array(0.0)", "jnp.zeros(3)"),
        ("[2.0, 2.0]", "2.0 * jnp.ones((3, 3))"),
        ("ys.tolist()==[2.0,1.0]", "ys.tolist()==[[2.0]*3,[1.0]*3,[0.5]*3]"),
        ("float(carry[0])==1.5", "carry[0].tolist()==[1.75]*3"),
    ),
    "function-inside-carry": (
        ("jnp.array(0.0)", "jnp.zeros((2, 3))"),
        ("jnp.ones(3)", "jnp.ones(5)"),
        ("ys[1]", "ys[1,0,0]"),
    ),
    "np-stack-in-step": (
        ("[v[1], v[0] + x]", "[v[1], v[2], v[0] + x]"),
        ("jnp.zeros(2)", "jnp.zeros(3)"),
        ("jnp.ones(3)", "jnp.ones(6)"),
        ("[1.0,2.0]", "[2.0,2.0,2.0]"),
    ),
    "where-does-not-shield-gradient": (("[1.0, 0.0, 2.0]", "[1.0, 0.0, 2.0, 4.0, 0.0]"), ("-2.0)", "-3.0)")),
    "boolean-mask-indexing": (
        ("[[1.0, -2.0], [3.0, 4.0]]", "[[1.0, -2.0, 3.0], [3.0, 4.0, -1.0], [0.0, 0.0, 2.0]]"),
        ("[1.0,8.0]", "[4.0,11.0,13.0]"),
    ),
    "moving-window-slice": (
        ("i + 3", "i + 2"),
        ("i, 3)", "i, 2)"),
        ("4.0, 5.0]", "4.0, 5.0, 6.0]"),
        ("arange(3)", "arange(5)"),
        ("[2.0,1.0,1.0]", "[1.5,1.0,1.0,1.0,1.0]"),
    ),
    "python-list-indexed-by-step": (
        ("[1.0, 2.0, 4.0]", "[1.0, 2.0, 4.0, 8.0]"),
        ("arange(3)", "arange(4)"),
        ("[1.0,3.0,7.0]", "[1.0,3.0,7.0,15.0]"),
    ),
    "constant-vector-rides-in-xs": (
        ("[1.0, 10.0, 100.0]", "[1.0, 10.0, 100.0, 1000.0]"),
        ("ones((3, 3))", "ones((4, 4))"),
        ("[111.0,111.0,111.0]", "[1111.0]*4"),
    ),
    "xs-is-python-list-of-ints": (
        ("range(5)", "range(8)"),
        ("==5 ", "==8 "),
        ("==10", "==28"),
    ),
    "length-from-jit-argument": (
        ("(init, 3)", "(init, 5)"),
        ("jnp.array(1.0)", "jnp.ones(2)"),
        ("float(carry)==3.375", "carry.tolist()==[1.5**5]*2"),
    ),
    "lstm-cell-state-mistaken-for-hidden": (
        ("LSTMCell(3, 4", "LSTMCell(5, 7"),
        ("(2, 3)", "(6, 5)"),
        ("ones((5, 2, 3))", "ones((8, 6, 5))"),
    ),
    "carry-init-is-a-factory": (
        ("GRUCell(3, 4", "GRUCell(5, 7"),
        ("carry((2, 3)", "carry((6, 5)"),
        ("ones((5, 2, 3))", "ones((8, 6, 5))"),
        ("(5,2,4)", "(8,6,7)"),
    ),
    "carry-without-batch-axis": (
        ("GRUCell(3, 4", "GRUCell(5, 7"),
        ("jnp.zeros(4)", "jnp.zeros(7)"),
        ("zeros((2, 4))", "zeros((6, 7))"),
        ("ones((5, 2, 3))", "ones((8, 6, 5))"),
        ("(5,2,4)", "(8,6,7)"),
        ("(2,4)", "(6,7)"),
    ),
    "padding-steps-move-the-carry": (
        ("GRUCell(1, 3", "GRUCell(1, 6"),
        ("[0.0], [0.0]]", "[0.0], [0.0], [0.0]]"),
        ("[3.0], [4.0]]", "[3.0], [4.0], [5.0]]"),
        ("array([2, 4])", "array([2, 5])"),
    ),
    "mask-with-holes-as-length": (
        ("GRUCell(1, 3", "GRUCell(1, 5"),
        ("zeros((1, 3))", "zeros((1, 5))"),
        ("[3.0], [4.0]]", "[3.0], [4.0], [5.0]]"),
        ("False, True, True]", "False, True, True, True]"),
        ("[0,2,3]", "[0,2,3,4]"),
    ),
    "step-returns-one-array": (
        ("jnp.ones(5)", "jnp.ones((3, 2))"),
        ("arange(4.0)", "arange(6.0)"),
        ("(4,5)", "(6,3,2)"),
        ("[7.0]*5", "[[16.0]*2]*3"),
    ),
    "one-nan-poisons-the-rest": (("3.0, 4.0]", "3.0, 4.0, 5.0, 6.0]"), ("==10.0", "==21.0")),
    "metric-of-last-substep-only": (("[5.0, 0.0, 0.0]", "[5.0, 0.0, 0.0, 7.0, 0.0]"), ("==1.0", "==2.0")),
    "cell-arguments-swapped": (("GRUCell(4, 4", "GRUCell(6, 6"), ("(2, 4)", "(3, 6)")),
    "same-key-every-step": (("length=4", "length=7"), ("split(key, 4)", "split(key, 7)"), ("==4", "==7")),
    "print-progress-once": (("arange(4)", "arange(6)"), ("==4", "==6"), ("iteration 3", "iteration 5")),
    "append-inside-step": (("arange(5.0)", "arange(7.0)"), ("6.0,10.0]", "6.0,10.0,15.0,21.0]")),
    "if-on-carry": (
        ("[2.0, 2.0, 2.0]", "[2.0, 2.0, 2.0, 2.0, 2.0]"),
        ("[0.0,2.0,1.0]", "[0.0,2.0,1.0,3.0,2.0]"),
        ("==3.0", "==4.0"),
    ),
    "global-key-split-inside-step": (("length=3", "length=5"), ("split(key, 3)", "split(key, 5)"), ("==3", "==5")),
    "weak-int-init-takes-int8": (
        ("[100, 100, 100]", "[100, 100, 100, 100, 100]"),
        ("==300", "==500"),
        ("[100,200,300]", "[100,200,300,400,500]"),
    ),
}
