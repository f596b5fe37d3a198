"""Parameters on disk: one safetensors file, checked before anything uses it; nothing is ever unpickled.

    data = cell_file(weights_of_seed(Architecture("LSTMCell", 3, 4), seed=0))      # core.weights.cell
    weights = load_cell(data)                  # core.weights.load; raises `WeightsRefused` with stage, leaf and sentence
    weights.leaves["cell.hi.kernel"]           # read-only NumPy, by path; weights.digest, .short, .seed, .architecture

- `core.weights.refusal`: `WeightsRefused` (a ValueError: `stage`, `leaf`, and the sentence) and its `Stage`.
- `core.weights.container`: ``write(tensors, metadata) -> bytes`` and ``read(data, limit="weights_bytes") -> Container``
  (`tensors`, `metadata`): safetensors with bounds on size, header, nesting, duplicates and offsets. For any file of
  arrays: what the metadata say is the caller's business.
- `core.weights.document`: the schema of our metadata; ``digest(tensors)``, the SHA-256 over names, types and bytes.
- `core.weights.cell`: `Architecture`, `CellWeights`, ``weights_of_seed``, ``weights_of_cell``, ``cell_file``.
- `core.weights.load`: ``load_cell(data, kind=...)``, ours or PyTorch's; ``recheck(weights)`` runs the control once more.
- `core.weights.control`: the control forward: a small seeded input, and what the parameters make of it.
- `core.weights.torch_layout`: the state dict of `torch.nn.LSTMCell`, `LSTM`, `GRU` both ways, with a table of what was
  done to each tensor.
- `core.weights.state`: any NNX module: parameters, batch statistics, RNG and optimizer state, each a section with its own
  hash and check: ``save_state``, ``load_state``, ``restore``, ``restore_optimizer``.
- `core.weights.script`: the lines of Python by which an exported program loads a file and checks its hash.
- `core.weights.shelf`: what runs now, what ran before, and the way back.
"""
