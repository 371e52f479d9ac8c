"""Check that openvino_genai and optimum-intel generate text from IR with states.

    pip install torch==2.13.0 transformers==5.5.4 optimum-intel==2.2.0 openvino-genai==2026.4.1.0
    pip install onnxruntime -e .                             # in an environment of its own
    python tools/export_real.py gpt2_cached llama_cached     # needs another release of transformers
    python tools/check_genai.py                              # both, from out/real
    python tools/check_genai.py llama --keep out/genai       # the folders that the pipelines read stay there

The IR is made with stateful=True and beam_idx=True; beside it lie what `optimum-cli export openvino` would write:
config.json, generation_config.json, and a tokenizer that is trained here on random words. Nothing is downloaded.

The tokens of ONNX Runtime with explicit caches, greedy, are expected of: the IR in a loop of its own;
openvino_genai.LLMPipeline with its default, with ATTENTION_BACKEND "SDPA" (states) and "PA" (paged attention, which
replaces the states); optimum.intel.OVModelForCausalLM. The sequences of a search with three beams, which reorders the
caches by beam_idx, are expected to be the same in LLMPipeline and OVModelForCausalLM, and so is the text of a text. The
exit code is 1 if one differs or fails.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

os.environ["HF_HUB_OFFLINE"] = "1"

from tools.states.decoders import OnnxRuntime, Stateful, Steps

EXPORTED = Path(__file__).resolve().parents[1] / "out" / "real"
PROPERTIES = {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32"}
TOKENS, BEAMS, BEAM_TOKENS = 24, 3, 12
VOCABULARY, PADDING, FIRST, LAST = 8192, 0, 1, 2
SPECIAL = {PADDING: "<pad>", FIRST: "<s>", LAST: "</s>"}
CONFIGURATIONS: Mapping[str, Mapping[str, Any]] = {
    "gpt2_cached": {
        "model_type": "gpt2", "architectures": ["GPT2LMHeadModel"],
        "n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024,
    },
    "llama_cached": {
        "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 1024, "num_hidden_layers": 8,
        "num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 64, "intermediate_size": 2816,
    },
}


def main(arguments: list[str] | None = None) -> int:
    """Check the models named on the command line, or both; 1 if something differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", help="parts of names of decoders; default: all")
    parser.add_argument("--folder", type=Path, default=EXPORTED, help="where the decoders are (out/real)")
    parser.add_argument("--keep", type=Path, help="write the folders that the pipelines read here")
    options = parser.parse_args(arguments)
    chosen = [name for name in CONFIGURATIONS if not options.names or any(part in name for part in options.names)]
    found = [name for name in chosen if (options.folder / f"{name}.onnx").exists()]
    if not found:
        print(f"no decoder in {options.folder}: tools/export_real.py cached makes them", file=sys.stderr)
        return 1
    failed = 0
    for name in found:
        with tempfile.TemporaryDirectory() as scratch:
            failed += check(options.folder / f"{name}.onnx", (options.keep or Path(scratch)) / name)
    print(f"{failed} differ or fail" if failed else "all the same")
    return int(bool(failed))


def check(model: Path, folder: Path) -> int:
    """Write the folder of a model, generate in all ways, and print a line for each; returns how many are wrong."""
    tokenizer = write_folder(model, folder)
    prompt = np.array([tokenizer(TEXT)["input_ids"]])
    wanted: dict[str, Any] = {}
    wrong = 0
    for who, what, generate in ways(model, folder, prompt, tokenizer):
        try:
            result = generate()
        except Exception as error:
            verdict = f"fails: {(str(error).strip().splitlines() or [type(error).__name__])[0][:120]}"
        else:
            verdict = (
                "same" if wanted.setdefault(what, result) == result else f"other: {result} instead of {wanted[what]}"
            )
        wrong += verdict != "same"
        print(f"{model.stem:14} {who:28} {what:12} {verdict}", flush=True)
    return wrong


# -- the folder


def write_folder(model: Path, folder: Path) -> Any:
    """Write the files that the pipelines read; returns the tokenizer."""
    import openvino
    from openvino_tokenizers import convert_tokenizer
    from transformers import PreTrainedTokenizerFast

    from mo_loop import convert_model, save_model

    folder.mkdir(parents=True, exist_ok=True)
    save_model(convert_model(model, stateful=True, beam_idx=True), folder / "openvino_model.xml")
    tokens = {"bos_token_id": FIRST, "eos_token_id": LAST, "pad_token_id": PADDING}
    configuration = {**CONFIGURATIONS[model.stem], "vocab_size": VOCABULARY, **tokens}
    (folder / "config.json").write_text(json.dumps(configuration), encoding="utf-8")
    (folder / "generation_config.json").write_text(json.dumps(tokens), encoding="utf-8")
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=trained(), bos_token=SPECIAL[FIRST], eos_token=SPECIAL[LAST], pad_token=SPECIAL[PADDING]
    )
    tokenizer.save_pretrained(folder)
    names = ("openvino_tokenizer.xml", "openvino_detokenizer.xml")
    for name, each in zip(names, convert_tokenizer(tokenizer, with_detokenizer=True), strict=True):
        openvino.save_model(each, folder / name)
    return tokenizer


TEXT = "the keys and the values of the tokens so far"


def trained() -> Any:
    """A tokenizer whose vocabulary is that of the models."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    random = np.random.default_rng(0)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    words = ("".join(random.choice(letters, 6)) for _ in range(20_000))
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=list(SPECIAL.values()), show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator((f"{TEXT} {word}" for word in words), trainer)
    return tokenizer


# -- the ways to generate


def ways(model: Path, folder: Path, prompt: np.ndarray, tokenizer: Any) -> Iterator[tuple[str, str, Callable[[], Any]]]:
    """Who generates, what, and how. The first one that generates something gives what is expected of the others."""
    yield "ONNX Runtime", "greedy", lambda: greedy(OnnxRuntime(model, {}), prompt)
    yield "states in a loop", "greedy", lambda: greedy(_stateful(folder), prompt)
    optimum = Optimum(folder, prompt)
    yield "OVModelForCausalLM", "greedy", optimum.greedy
    yield "OVModelForCausalLM", f"{BEAMS} beams", optimum.beams
    yield "tokenizer", "text", lambda: tokenizer.decode(optimum.greedy(), skip_special_tokens=True)
    for backend in (None, "SDPA", "PA"):
        pipeline = Pipeline(folder, prompt, backend)
        who = f"LLMPipeline {backend or 'default'}"
        yield who, "greedy", pipeline.greedy
        yield who, f"{BEAMS} beams", pipeline.beams
        yield who, "text", pipeline.text


def greedy(steps: Steps | Any, prompt: np.ndarray) -> list[int]:
    """The most probable tokens after a prompt."""
    steps.start(1)
    found, tokens = [], prompt
    for _ in range(TOKENS):
        tokens = steps.step(tokens)[:, -1:].argmax(-1)
        found.append(int(tokens[0, 0]))
    return found


def _stateful(folder: Path) -> Stateful:
    from openvino import Core

    return Stateful(Core().compile_model(folder / "openvino_model.xml", "CPU", PROPERTIES), {})


class Optimum:
    """optimum.intel.OVModelForCausalLM."""

    def __init__(self, folder: Path, prompt: np.ndarray) -> None:
        self.folder = folder
        self.prompt = prompt
        self.model: Any = None

    def greedy(self) -> list[int]:
        return self._generate(TOKENS)

    def beams(self) -> list[int]:
        return self._generate(BEAM_TOKENS, num_beams=BEAMS)

    def _generate(self, count: int, **options: Any) -> list[int]:
        import torch
        from optimum.intel import OVModelForCausalLM

        if self.model is None:
            self.model = OVModelForCausalLM.from_pretrained(self.folder, ov_config=PROPERTIES, local_files_only=True)
        prompt = torch.from_numpy(self.prompt)
        length = {"max_new_tokens": count, "min_new_tokens": count}
        found = self.model.generate(
            prompt, attention_mask=torch.ones_like(prompt), do_sample=False, **length, **options
        )
        return found[0, prompt.size(1) :].tolist()


class Pipeline:
    """openvino_genai.LLMPipeline."""

    def __init__(self, folder: Path, prompt: np.ndarray, backend: str | None) -> None:
        self.folder = folder
        self.prompt = prompt
        self.properties = PROPERTIES | ({"ATTENTION_BACKEND": backend} if backend else {})
        self.pipeline: Any = None

    def greedy(self) -> list[int]:
        return self._generated(max_new_tokens=TOKENS)

    def beams(self) -> list[int]:
        return self._generated(max_new_tokens=BEAM_TOKENS, num_beams=BEAMS)

    def text(self) -> str:
        return str(self._pipeline().generate(TEXT, self._options(max_new_tokens=TOKENS, apply_chat_template=False)))

    def _generated(self, **options: Any) -> list[int]:
        from openvino import Tensor

        return list(self._pipeline().generate(Tensor(self.prompt), self._options(**options)).tokens[0])

    def _options(self, **options: Any) -> Any:
        from openvino_genai import GenerationConfig

        return GenerationConfig(ignore_eos=True, do_sample=False, **options)

    def _pipeline(self) -> Any:
        from openvino_genai import LLMPipeline

        if self.pipeline is None:
            self.pipeline = LLMPipeline(self.folder, "CPU", **self.properties)
        return self.pipeline


if __name__ == "__main__":
    sys.exit(main())
