"""Small tokenizers of every kind, made on the spot."""

import io
import json
import random

from tokenizers import Tokenizer as RustTokenizer
from tokenizers import models, normalizers, pre_tokenizers, trainers

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = "he likes play ##ing ##s the cat sat on a mat un ##believ ##able caf ##e".split()  # noqa: SIM905
SENTENCES = [
    "He likes playing, doesn't he?",
    "The café's naïve Über-cat   sat\ton the mat.",
    "我爱北京天安门。 hello 世界",
    "[CLS] forged [SEP] tokens [MASK]",
    "",
    "   ",
    "ｆｕｌｌ ｗｉｄｔｈ １２３ ﬁ ½",
    "e\u0301 \u200b zero\u200bwidth \ufeff bom \x00 nul",
    "👩‍👩‍👧 emoji 🇫🇷 and \u202ertl\u202c",
    "supercalifragilistic" * 9,
    "2000, 3,000 and ``quoted'' 'text'",
]


def bert_vocab(cased: bool = False) -> list[str]:
    letters = [chr(c) for c in range(33, 127)]
    tokens = SPECIALS + letters + [f"##{c}" for c in letters] + WORDS + list("我爱北京天安门世界é")
    if cased:
        tokens += ["He", "The", "Über", "##é"]
    return list(dict.fromkeys(tokens))


def bert_files(*, cased: bool = False, config: dict | None = None) -> dict[str, bytes]:
    settings = {"do_lower_case": not cased, **(config or {})}
    return {
        "vocab.txt": "".join(f"{t}\n" for t in bert_vocab(cased)).encode(),
        "tokenizer_config.json": json.dumps(settings).encode(),
    }


def corpus(lines: int = 400) -> list[str]:
    rng = random.Random(7)
    stems = ["play", "like", "cat", "mat", "sing", "believe", "word", "piece", "north", "south"]
    ends = ["", "s", "ed", "ing", "er", "able", ",", ".", "!", "'s"]
    return [
        " ".join(rng.choice(stems) + rng.choice(ends) for _ in range(12)) + " 我爱北京 世界"
        for _ in range(lines)
    ]


def roberta_files() -> dict[str, bytes]:
    rust = RustTokenizer(models.BPE())
    rust.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=500,
        special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    rust.train_from_iterator(corpus(), trainer)
    model = json.loads(rust.to_str())["model"]
    merges = "#version: 0.2\n" + "".join(" ".join(pair) + "\n" for pair in model["merges"])
    return {"vocab.json": json.dumps(model["vocab"]).encode(), "merges.txt": merges.encode()}


def gpt2_files() -> dict[str, bytes]:
    """RoBERTa's, with the one special token that GPT-2 has."""
    files = roberta_files()
    vocab = json.loads(files["vocab.json"])
    kept = [token for token in vocab if token not in ("<s>", "<pad>", "</s>", "<unk>", "<mask>")]
    numbered = {token: number for number, token in enumerate([*kept, "<|endoftext|>"])}
    return {**files, "vocab.json": json.dumps(numbered).encode()}


def gpt_files() -> dict[str, bytes]:
    rust = RustTokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    rust.normalizer = normalizers.BertNormalizer(lowercase=True)
    rust.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=["<unk>"], end_of_word_suffix="</w>", show_progress=False
    )
    rust.train_from_iterator(corpus(), trainer)
    model = json.loads(rust.to_str())["model"]
    merges = "#version: 0.2\n" + "".join(" ".join(pair) + "\n" for pair in model["merges"])
    return {"vocab.json": json.dumps(model["vocab"]).encode(), "merges.txt": merges.encode()}


def albert_files(**trainer: object) -> dict[str, bytes]:
    import sentencepiece

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([line.lower() for line in corpus()]),
        model_writer=model,
        vocab_size=100,
        model_type="unigram",
        pad_id=0,
        unk_id=1,
        bos_id=-1,
        eos_id=-1,
        control_symbols=["[CLS]", "[SEP]", "[MASK]"],
        minloglevel=2,
        num_threads=1,
        **trainer,
    )
    return {"spiece.model": model.getvalue()}


def xlnet_files() -> dict[str, bytes]:
    """XLNet's control tokens and their ids, cased."""
    import sentencepiece

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(corpus()),
        model_writer=model,
        vocab_size=90,
        model_type="unigram",
        hard_vocab_limit=False,
        unk_id=0,
        bos_id=1,
        eos_id=2,
        pad_id=-1,
        control_symbols=["<cls>", "<sep>", "<pad>", "<mask>", "<eod>"],
        user_defined_symbols=["<eop>"],
        minloglevel=2,
    )
    return {"spiece.model": model.getvalue()}
