"""A llama of random weights in half a megabyte, for llama-server: ready in a quarter of a second.

Its words mean nothing; its errors are the server's own, and so are its streams. A constant in the first
embedding dimension and negative output weights on byte and control tokens keep what it says valid UTF-8,
which the server's chat parser demands. The recipe comes with the design this project was given
(`tools/tiny_model.py`).
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["write"]

_WORDS = "the a hello world yes no I am here you it is to and of in"
_LETTERS = '\u2581abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,!?:{}"[]'
_TEMPLATE = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant:"
DIM, LAYERS, HEADS, HIDDEN = 64, 2, 4, 128


def write(path: Path, *, context_window: int = 512, eagerness_to_end: float = 0.6) -> Path:
    """Writes the model; ``eagerness_to_end`` is the output weight of the end token."""
    import gguf
    import numpy as np

    tokens = [b"<unk>", b"<s>", b"</s>", *(f"<0x{i:02X}>".encode() for i in range(256))]
    special = len(tokens)
    tokens += [f"\u2581{word}".encode() for word in _WORDS.split()] + [c.encode() for c in _LETTERS]
    kind = gguf.TokenType
    types = [kind.UNKNOWN, kind.CONTROL, kind.CONTROL, *[kind.BYTE] * 256]
    types += [kind.NORMAL] * (len(tokens) - special)
    writer = gguf.GGUFWriter(str(path), "llama")
    for name, value in (
        ("context_length", context_window), ("embedding_length", DIM), ("block_count", LAYERS),
        ("feed_forward_length", HIDDEN), ("head_count", HEADS), ("head_count_kv", HEADS),
        ("rope_dimension_count", DIM // HEADS), ("layer_norm_rms_eps", 1e-5), ("vocab_size", len(tokens)),
        ("file_type", gguf.LlamaFileType.ALL_F32), ("tokenizer_model", "llama"), ("token_list", tokens),
        ("token_scores", [0.0] * special + [-float(i) for i in range(len(tokens) - special)]),
        ("token_types", types), ("bos_token_id", 1), ("eos_token_id", 2), ("unk_token_id", 0),
        ("add_bos_token", True), ("add_eos_token", False), ("chat_template", _TEMPLATE),
    ):  # fmt: skip
        getattr(writer, f"add_{name}")(value)
    random = np.random.default_rng(7)

    def matrix(*shape: int) -> np.ndarray:
        return (random.standard_normal(shape) * 0.2).astype(np.float32)

    embedding, output = matrix(len(tokens), DIM), matrix(len(tokens), DIM)
    embedding[:, 0] = 6.0
    output[:special, 0], output[special:, 0], output[2, 0] = -8.0, 1.0, eagerness_to_end
    writer.add_tensor("token_embd.weight", embedding)
    writer.add_tensor("output_norm.weight", np.ones(DIM, np.float32))
    writer.add_tensor("output.weight", output)
    square, wide = (DIM, DIM), (HIDDEN, DIM)
    for layer in range(LAYERS):
        for name, shape in (
            ("attn_q", square), ("attn_k", square), ("attn_v", square), ("attn_output", square),
            ("ffn_gate", wide), ("ffn_up", wide), ("ffn_down", (DIM, HIDDEN)),
        ):  # fmt: skip
            writer.add_tensor(f"blk.{layer}.{name}.weight", matrix(*shape) * np.float32(0.3))
        for name in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{layer}.{name}.weight", np.ones(DIM, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
