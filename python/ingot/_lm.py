"""Language models and text embeddings: ingot.LLM, ingot.Embedder.

In: a GGUF file or a folder of safetensors, and texts. Out: texts or vectors. An LLM is a library that ingot_player_library builds and
stores in ~/.cache/ingot, with weights and tokenizer inside; this file calls it through ctypes. The loop equals tools/player.c, so answers
equal those of `ingot play` with the same settings. One LLM has one KV cache: the common prefix with the previous prompt is not run again."""
from __future__ import annotations

import ctypes
import json
import os
import re
import threading
import time
from ctypes import POINTER, Structure, c_char_p, c_double, c_float, c_int, c_int32, c_int64, c_size_t, c_ubyte, c_uint32, c_uint64, c_void_p
from typing import Any, Iterator, Mapping, Sequence, Union

import numpy as np

from ._lib import TEXT, Codegen, Model, System, Unsupported, Usage, library
from ._net import LOG, Net, check_model, check_options
from .session import processors

Message = Mapping[str, str]


ON_COMMAND = ctypes.CFUNCTYPE(None, c_void_p, c_char_p)


class Build(Structure):
    _fields_ = [("c", Codegen), *((name, c_char_p) for name in ("output", "cc", "march", "optimize", "sanitize")), ("arrays", c_int),
                ("chats", c_int), ("system", c_int), *((name, c_char_p) for name in ("backend", "triple", "target", "preset")), ("lto", c_int),
                ("fast_math", c_int), ("pgo", c_char_p), ("bolt", c_int), ("seconds", c_double), ("no_files", c_int),
                ("on_command", c_void_p), ("user", c_void_p)]


class Language(Structure):
    _fields_ = [("context", c_uint64), ("chunk", c_uint64), ("every", c_int), ("cache", c_char_p), ("slots", c_uint32), ("activations", c_char_p)]


class Sampling(Structure):
    _fields_ = [(name, c_double) for name in ("temperature", "top_k", "top_p", "min_p", "repeat")]


class ChatModel(Structure):
    _fields_ = [("vocab", c_void_p), ("nvocab", c_size_t), *((name, c_uint64) for name in ("context", "chunk", "logits")),
                ("token_bytes", c_double), ("kv_bytes", c_double),
                *((name, c_char_p) for name in ("open", "open_system", "system", "ask", "next", "none")), ("trims", c_int), ("prompt", c_char_p),
                ("ring", c_uint64), ("day", c_int64), ("sampling", Sampling)]


class Sampler(Structure):
    """lm_sampler of the library."""
    _fields_ = [("temperature", c_float), ("top_k", c_uint32), ("top_p", c_float), ("min_p", c_float), ("repeat", c_float),
                ("frequency", c_float), ("presence", c_float), ("window", c_uint32), ("state", c_uint64)]


class Stream(Structure):
    """lm_stream of the library."""
    _fields_ = [("kept", c_ubyte * 4), ("count", c_ubyte), ("begun", c_ubyte), ("special", c_ubyte)]


IDS = POINTER(c_uint32)
FUNCTIONS = (("open_vocab", c_int, c_void_p, c_char_p), ("tokenize", c_int, c_void_p, c_char_p, c_size_t, c_uint32, POINTER(IDS), POINTER(c_size_t)),
             ("detokenize", c_int, c_void_p, IDS, c_size_t, c_uint32, TEXT, POINTER(c_size_t)), ("set_language", c_int, c_void_p, POINTER(Language)),
             ("player_library", c_int, c_void_p, POINTER(Build), TEXT, POINTER(ChatModel)))
OWN = (("reset", None, c_void_p), ("prefill", c_int, c_void_p, c_void_p, c_size_t, c_void_p), ("position", c_int64, c_void_p), ("rewind", c_int, c_void_p, c_int64),
       ("tokenize", c_int64, c_char_p, c_size_t, c_char_p, c_int, c_void_p, c_size_t, c_void_p, c_size_t),
       ("detokenize", c_size_t, POINTER(Stream), c_int32, c_void_p), ("ends", c_int, c_int32), ("why", c_char_p, c_int),
       ("sample", c_int32, POINTER(Sampler), c_void_p, c_void_p, c_size_t, c_void_p))
SPECIAL, BARE = 1, 2  # flags of ingot_tokenize
WINDOW = 64           # tokens that penalties consider, as in play


def _bind(lib: Any, prefix: str, table: Sequence[tuple[Any, ...]]) -> Any:
    for name, result, *arguments in table:
        function = getattr(lib, prefix + name)
        function.restype, function.argtypes = result, arguments
    return lib


class _Texts:
    """A model and its vocabulary, for tokenize and detokenize."""

    def __init__(self, path: str) -> None:
        _bind(library(), "ingot_", FUNCTIONS)
        self.path, self._vocab, self._text_lock = path, Model(path), threading.Lock()
        self._vocab.call("open_vocab", os.fsencode(path))

    def tokenize(self, text: str, *, special: bool = False, bare: bool = False) -> list[int]:
        """Returns the ids of a text. special: convert texts of special tokens to these tokens; bare: omit the tokens that the model expects
        around a text."""
        ids, n, data = IDS(), c_size_t(), text.encode()
        with self._text_lock:
            self._vocab.call("tokenize", data, len(data), special * SPECIAL | bare * BARE, ctypes.byref(ids), ctypes.byref(n))
            return ids[:n.value]

    def detokenize(self, ids: Sequence[int], *, special: bool = False) -> str:
        """Returns the text of ids. special: include the text of special tokens."""
        text, n = c_char_p(), c_size_t()
        with self._text_lock:
            self._vocab.call("detokenize", (c_uint32 * len(ids))(*ids), len(ids), special * SPECIAL, ctypes.byref(text), ctypes.byref(n))
            return ctypes.string_at(text, n.value).decode("utf-8", "replace")


class _Stops:
    """Holds back text that may be the start of a stop text."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts, self.held, self.stopped = [t.encode() for t in texts], b"", False
        if not all(self.texts):
            raise Usage("stop: expected nonempty texts, found an empty one")

    def put(self, piece: bytes) -> bytes:
        self.held += piece
        found = [at for at in (self.held.find(t) for t in self.texts) if at >= 0]
        if found:
            out, self.held, self.stopped = self.held[:min(found)], b"", True
            return out
        keep = max((n for t in self.texts for n in range(1, len(t)) if self.held.endswith(t[:n])), default=0)
        out, self.held = self.held[:len(self.held) - keep], self.held[len(self.held) - keep:]
        return out


def _aligned(n: int, to: int) -> np.ndarray:
    raw = np.zeros(n + to, np.uint8)
    at = -raw.__array_interface__["data"][0] % to
    return raw[at:at + n]


def _address(x: np.ndarray) -> int:
    return int(x.__array_interface__["data"][0])


class LLM(_Texts):
    """A language model that continues texts and answers messages. It gives one answer at a time: a new call ends the previous answer."""

    def __init__(self, path: Union[str, "os.PathLike[str]"], *, context: int = 0, threads: int | None = None, march: str | None = None,
                 precise: bool = False, kv_cache: str | None = None, date: str | None = None) -> None:
        """context: length in tokens (0: as trained, at most 4096); threads: None: number of processors, at most 16; kv_cache: "f16", "f32" or
        "int8"; date: YYYY-MM-DD for chat templates that have one (None: today)."""
        check_model("LLM", path)
        check_options("LLM", {"context": context, "threads": threads, "march": march, "kv_cache": kv_cache, "date": date})
        super().__init__(os.fspath(path))
        m = Model(self.path)
        if context or kv_cache:
            m.call("set_language", ctypes.byref(Language(context=context, cache=kv_cache.encode() if kv_cache else None)))
        self.threads = min(16, processors()) if threads is None else threads
        if self.threads != 1:
            m.call("set_threads", self.threads, None, 0)
        if precise:
            m.call("set_precise")
        found, chat = c_char_p(), ChatModel()
        steps: list[bytes] = []

        def say(_: int, step: bytes) -> None:
            if not steps:
                LOG.info("%s: compiling, which takes a while the first time", self.path)
            steps.append(step)

        said = ON_COMMAND(say)
        build = Build(march=march.encode() if march else None, optimize=b"3", on_command=ctypes.cast(said, c_void_p))
        m.call("player_library", ctypes.byref(build), ctypes.byref(found), ctypes.byref(chat))
        self.library = os.fsdecode(found.value or b"")
        day = time.strptime(date, "%Y-%m-%d") if date else time.localtime()
        self._chat: dict[str, str | None] = {}
        for name in ("open", "open_system", "system", "ask", "next"):
            text = getattr(chat, name)
            self._chat[name] = None if text is None else re.sub("\x01([^\x02]*)\x02", lambda form: time.strftime(form[1], day), text.decode("utf-8", "surrogateescape"))
        self._no_chat = chat.none.decode() if chat.none else "the model has no chat template"
        self._trims = bool(chat.trims)
        self._load()

    def _load(self) -> None:
        with open(os.path.splitext(self.library)[0] + ".h") as f:
            self._macros = dict(re.findall(r"^#define LM_(\w+(?:\(bytes\))?) (\(.*\)|\d+)", f.read(), re.M))
        lib = self._lib = _bind(ctypes.CDLL(self.library), "lm_", OWN)
        self.context = int(self._macros["CONTEXT"])
        self._arena = _aligned(int(self._macros["ARENA_BYTES"]), int(self._macros["ARENA_ALIGN"]))
        self._logits = np.zeros(int(self._macros["VOCAB"]), np.float32)
        self._memory = np.zeros(int(self._macros["SAMPLE_BYTES"]) // 8 + 1, np.uint64)
        self._piece = ctypes.create_string_buffer(int(self._macros["PIECE_BYTES"]) + 12)
        self._at = _address(self._arena)
        self._ids = np.zeros(self.context, np.int32)  # ids in the KV cache
        self._n = 0
        self._lock, self._turn, self._pid = threading.Lock(), 0, os.getpid()
        self._talk: tuple[list[tuple[str, str]], list[int]] = ([], [])  # the last conversation, and its ids
        lib.lm_reset(self._at)
        self._stop_threads = None
        if self.threads > 1 and hasattr(lib, "lm_threads_start"):
            lib.lm_threads_start.argtypes, lib.lm_threads_stop.argtypes = [c_void_p, c_int], [c_void_p]
            lib.lm_threads_start(self._at, self.threads)
            self._stop_threads = lib.lm_threads_stop

    def __del__(self) -> None:
        if getattr(self, "_stop_threads", None) and self._pid == os.getpid():
            self._stop_threads(self._at)

    def __reduce__(self) -> Any:
        raise TypeError("an LLM cannot be pickled: open its file in the process that uses it")

    # ---- ids ----

    def _encode(self, parts: Sequence[tuple[str, bool]], flags: str) -> list[int]:
        """Returns the ids of consecutive texts. Text of users (True) never becomes a special token."""
        texts = [text.encode("utf-8", "surrogateescape") for text, _ in parts]
        data, said = b"".join(texts), b"".join(bytes([mark]) * len(text) for text, (_, mark) in zip(texts, parts))
        room = re.sub(r"\(size_t\)", "", self._macros["TOKENIZE_BYTES(bytes)"]).replace("bytes", str(len(data)))
        if not re.fullmatch(r"[\d\s()*+]+", room):
            raise System(f"{self.library}: expected the size of the tokenizer's memory in its header, found {room}")
        ids, n, size = np.zeros(self.context + 1, np.int32), -2, eval(room)  # contains only numbers and + * ( )
        while n == -2 and size < 1 << 36:  # a normalizer may lengthen a text
            memory, size = np.zeros(size // 8 + 1, np.uint64), 2 * size
            n = self._lib.lm_tokenize(data, len(data), said, int(self._macros[flags]) if flags else 0, _address(ids), self.context, _address(memory),
                                      memory.nbytes)
        if n == -1:
            raise Usage(f"the prompt has more than {self.context} tokens, the context length")
        if n < 0:
            raise System(f"the tokenizer failed with status {n}")
        return ids[:n].tolist()

    def _feed(self, ids: Sequence[int]) -> None:
        """Runs ids through the model, so that the KV cache holds them and logits are those of the last one. Reuses the common prefix with the
        cache."""
        new = np.asarray(ids, np.int32)
        same = 0
        while same < min(self._n, len(new) - 1) and self._ids[same] == new[same]:
            same += 1
        if self._lib.lm_rewind(self._at, same):  # layers with a sliding window have overwritten the entries
            same = 0
            self._lib.lm_reset(self._at)
        self._n = same
        status = self._lib.lm_prefill(self._at, _address(new) + 4 * same, len(new) - same, _address(self._logits))
        if status:
            raise System(f"the model: {(self._lib.lm_why(status) or b'').decode()}")
        self._ids[same:len(new)], self._n = new[same:], len(new)

    def _answer(self, ids: list[int], max_tokens: int | None, sampler: Sampler, stops: _Stops, ended: list[Any]) -> Iterator[str]:
        """Generates the pieces of an answer. `ended` receives the ids of the whole conversation."""
        if self._pid != os.getpid():
            raise Usage("the process was forked: open the LLM again in the child")
        if not ids:
            raise Usage("the prompt is empty; expected text, because this model has no BOS token")
        with self._lock:
            self._turn += 1
            turn = self._turn
            self._feed(ids)
        stream, count = Stream(), 0
        while max_tokens is None or count < max_tokens:
            with self._lock:
                if turn != self._turn:
                    raise Usage("another answer of this LLM was started, which ended this one")
                if count:
                    self._feed(ids)
                past = np.asarray(ids, np.int32)
                token = self._lib.lm_sample(ctypes.byref(sampler), _address(self._logits), _address(past), len(past), _address(self._memory))
            count += 1
            if self._lib.lm_ends(token):
                break
            n = self._lib.lm_detokenize(ctypes.byref(stream), token, self._piece)
            yield stops.put(self._piece.raw[:n]).decode("utf-8", "replace")
            if stops.stopped or len(ids) == self.context:
                break
            ids.append(token)
        if not stops.stopped:
            n = self._lib.lm_detokenize(ctypes.byref(stream), -1, self._piece)
            out = stops.put(self._piece.raw[:n])
            yield (out if stops.stopped else out + stops.held).decode("utf-8", "replace")
        ended.append(ids)

    @staticmethod
    def _sampler(temperature: float, top_k: int, top_p: float, min_p: float, repeat_penalty: float, frequency_penalty: float,
                 presence_penalty: float, seed: int) -> Sampler:
        for name, x, most in (("temperature", temperature, 100), ("top_k", top_k, 1e9), ("top_p", top_p, 1), ("min_p", min_p, 1), ("seed", seed, 9e15)):
            if not 0 <= x <= most:
                raise Usage(f"{name} is {x!r}: expected a number from 0 to {most:g}")
        return Sampler(temperature, top_k, top_p, min_p, repeat_penalty, frequency_penalty, presence_penalty, WINDOW, seed)

    # ---- texts ----

    def generate(self, prompt: str, max_tokens: int | None = None, *, temperature: float = 0.7, top_k: int = 40, top_p: float = 0.9, min_p: float = 0.0,
                 repeat_penalty: float = 1.0, frequency_penalty: float = 0.0, presence_penalty: float = 0.0, seed: int = 0,
                 stop: str | Sequence[str] = (), stream: bool = False) -> Any:
        """Continues a text, like `ingot play --raw`. max_tokens: None: until the model ends it. stream: return an iterator of pieces instead
        of a str."""
        sampler = self._sampler(temperature, top_k, top_p, min_p, repeat_penalty, frequency_penalty, presence_penalty, seed)
        stops = _Stops([stop] if isinstance(stop, str) else stop)
        pieces = (piece for piece in self._answer(self._encode([(prompt, True)], "AROUND"), max_tokens, sampler, stops, []) if piece)
        return pieces if stream else "".join(pieces)

    def chat(self, messages: str | Sequence[Message], max_tokens: int | None = None, *, temperature: float = 0.7, top_k: int = 40, top_p: float = 0.9,
             min_p: float = 0.0, repeat_penalty: float = 1.0, frequency_penalty: float = 0.0, presence_penalty: float = 0.0, seed: int = 0,
             stop: str | Sequence[str] = (), stream: bool = False) -> Any:
        """Answers the last message, like `ingot play`. messages: a str, or dicts with role (system, user, assistant) and content. Returns a
        str, or with stream an iterator of pieces."""
        told = [("user", messages)] if isinstance(messages, str) else [(m["role"], m["content"]) for m in messages]
        sampler = self._sampler(temperature, top_k, top_p, min_p, repeat_penalty, frequency_penalty, presence_penalty, seed)
        pieces = self._reply(told, self._asked(told), max_tokens, sampler, _Stops([stop] if isinstance(stop, str) else stop))
        return pieces if stream else "".join(pieces)

    def _reply(self, told: list[tuple[str, str]], ids: list[int], max_tokens: int | None, sampler: Sampler, stops: _Stops) -> Iterator[str]:
        said, ended = "", []  # type: tuple[str, list[Any]]
        for piece in self._answer(ids, max_tokens, sampler, stops, ended):
            said += piece
            if piece:
                yield piece
        if ended:
            self._talk = ([*told, ("assistant", said)], ended[0])

    def _asked(self, told: list[tuple[str, str]]) -> list[int]:
        """Returns the ids of a conversation up to the answer. Answers that this LLM gave last keep the ids that it generated."""
        chat = self._chat
        if chat["open"] is None:
            raise Unsupported(f"{self.path}: {self._no_chat}: generate continues a text")
        system = told[0][1] if told and told[0][0] == "system" else None
        turns = told[1:] if system is not None else told
        roles = [role for role, _ in turns]
        if not turns or roles != ["user" if i % 2 == 0 else "assistant" for i in range(len(roles))] or len(roles) % 2 == 0:
            raise Usage(f"messages: expected an optional system message, then user and assistant alternately, user last; found {', '.join(r for r, _ in told) or 'none'}")
        if system is not None and chat["open_system"] is None:
            raise Unsupported(f"{self.path}: its chat template has no system message")
        if len(turns) > 1 and chat["next"] is None:
            raise Unsupported(f"{self.path}: its chat template takes one message only")

        def message(text: str) -> tuple[str, bool]:
            return text.strip(" \t\r\n") if self._trims else text, True
        begin = [(chat["open"] or "", False)] if system is None else [(chat["open_system"] or "", False), message(system), (chat["system"] or "", False)]
        if len(turns) > 1 and self._talk[0] == told[:-1]:
            ids, begin, turns = list(self._talk[1]), [(chat["next"] or "", False)], turns[-1:]
        else:
            ids = []
        for i, (role, text) in enumerate(turns):
            if role == "assistant":
                ids += self._encode([(text, True)], "")
                begin = [(chat["next"] or "", False)]
            else:
                ids += self._encode([*begin, message(text), (chat["ask"] or "", False)], "SPECIAL")
        if len(ids) > self.context:
            raise Usage(f"the conversation has {len(ids)} tokens, more than the context length {self.context}")
        return ids

    def __repr__(self) -> str:
        return f"<ingot.LLM {self.path!r}, context {self.context}>"


class Embedder(_Texts):
    """A text encoder (BERT family): converts texts to vectors, like `ingot run FOLDER --text TEXT`."""

    def __init__(self, path: Union[str, "os.PathLike[str]"], *, threads: int = 1, engine: str | None = None, march: str | None = None,
                 cache: Any = True) -> None:
        super().__init__(os.fspath(path))
        told = json.loads(Model(self.path).text("inspect", 1)[0])
        self.context = int(told.get("context", 0))
        if [i["name"] for i in told["inputs"]] != ["ids"] or len(told["outputs"]) != 1 or not self.context:
            raise Unsupported(f"{self.path}: expected a text encoder, from token ids to one vector")
        options = {"engine": engine, "march": march, "threads": threads, "cache": cache}
        self.net = Net(self.path, max_shapes={"tokens": self.context}, **{k: v for k, v in options.items() if v is not None})

    def embed(self, texts: str | Sequence[str]) -> np.ndarray:
        """Returns a row for each text; for a str, its vector."""
        rows = [self.net(np.array(self.tokenize(text), np.int32)) for text in ([texts] if isinstance(texts, str) else texts)]
        return rows[0] if isinstance(texts, str) else np.stack(rows) if rows else np.empty((0, 0), np.float32)

    def __repr__(self) -> str:
        return f"<ingot.Embedder {self.path!r}>"
