"""BERT's tokenization as plain Python, from its published description: the oracle of check C1.

Clean the text, set ideographs apart, split at white space, lower-case and strip accents, split at
punctuation; then take the longest known piece from the left of each word, again and again.

Where the Rust library differs from the published Python code on purpose, this port follows Rust:
- code points no Unicode version has assigned are kept, not removed;
- letters are lower-cased one by one, so a capital sigma at the end of a word becomes a plain one;
- ideographs of extension E start at U+2B920, and extensions F to I are not set apart (in both);
- characters that came or changed class after Unicode 8 keep the class of then (see the sweep test).
"""

import unicodedata

IDEOGRAPHS = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


def is_space(c: str) -> bool:
    return c in " \t\n\r" or unicodedata.category(c) == "Zs"


def is_control(c: str) -> bool:
    return c not in "\t\n\r" and unicodedata.category(c) in ("Cc", "Cf", "Co", "Cs")


def is_punctuation(c: str) -> bool:
    ascii_symbol = 33 <= ord(c) <= 126 and not c.isalnum()
    return ascii_symbol or unicodedata.category(c).startswith("P")


def is_ideograph(c: str) -> bool:
    return any(first <= ord(c) <= last for first, last in IDEOGRAPHS)


def basic_words(text: str, lowercase: bool) -> list[str]:
    kept = []
    for c in text:
        if c in "\0\ufffd" or is_control(c):
            continue
        kept.append(" " if is_space(c) else f" {c} " if is_ideograph(c) else c)
    words = []
    for word in "".join(kept).split():
        if lowercase:
            word = "".join(
                c
                for c in unicodedata.normalize("NFD", word.lower())
                if unicodedata.category(c) != "Mn"
            )
        start = 0
        for i, c in enumerate(word):
            if is_punctuation(c):
                words += [word[start:i], c]
                start = i + 1
        words.append(word[start:])
    return [word for word in words if word]


def pieces(word: str, vocab: dict[str, int], longest: int = 100) -> list[str]:
    if len(word) > longest:
        return ["[UNK]"]
    found = []
    start = 0
    while start < len(word):
        for end in range(len(word), start, -1):
            piece = ("##" if start else "") + word[start:end]
            if piece in vocab:
                found.append(piece)
                start = end
                break
        else:
            return ["[UNK]"]
    return found


def tokenize(text: str, vocab: dict[str, int], lowercase: bool) -> list[int]:
    return [vocab[p] for w in basic_words(text, lowercase) for p in pieces(w, vocab)]
