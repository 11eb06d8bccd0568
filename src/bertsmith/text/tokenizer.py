"""The Tokenizer: any published BERT tokenizer, exact; control tokens in a text are plain text."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from bertsmith.errors import ConfigError, FolderError, TextError, check_type
from bertsmith.files.safe_folder import Folder
from bertsmith.text.encoding import FieldEncoder, Ints, Pieces, UnknownTokens, with_segmenter_words
from bertsmith.text.safe_tokenizer import SafeTokenizer, batches, clean_texts, rust_errors
from bertsmith.text.segment import Segmenter
from bertsmith.text.special_tokens import Frame, SpecialTokens, placed_tokens, read_template
from bertsmith.text.tokenizer_files import (
    TokenizerSource,
    read_files,
    read_source,
    save_files,
    tokenizer_files,
)
from bertsmith.text.tokenizer_json import added_token, vocabulary
from bertsmith.text.tokenizer_limits import check_special_count
from bertsmith.text.truncation import room_for_text

# Some folders write 1e30 for "no limit".
LONGEST = 1_000_000


class Tokenizer(FieldEncoder):
    """Turns texts into Encodings and back; immutable, safe to share between threads."""

    def __init__(self, source: TokenizerSource, *, segmenter: Segmenter | None = None) -> None:
        self._source = source
        self._segmenter = segmenter
        self._template = read_template(source.state.get("post_processor"))
        check_special_count(self._template.pair.specials)
        check_special_count(self._template.single.specials)
        self._safe_tokenizer = SafeTokenizer(source.state, source.controls)
        roles = {role: self.token_to_id(token) for role, token in source.roles.items()}
        self.special = SpecialTokens(
            **{role: roles.get(role) for role in ("pad", "unk", "cls", "sep", "mask")}
        )
        self._end = roles.get("eos", self.special.sep)
        numbers = [*vocabulary(source.state).values()]
        numbers += [self.token_to_id(t["content"]) or 0 for t in source.state["added_tokens"]]
        self._vocab_size = max(numbers, default=-1) + 1
        if odd := [i for i in self._template.ids if not 0 <= i < self._vocab_size]:
            raise FolderError(
                f"the template of tokenizer.json uses id {odd[0]}, which no token has"
            )
        for token, number in placed_tokens(source.state.get("post_processor")):
            if self.token_to_id(token) not in (None, number):
                raise FolderError(
                    f"the template of tokenizer.json places id {number} for {token!r}, whose id is "
                    f"{self.token_to_id(token)}; take the tokenizer from where it was published"
                )

    @classmethod
    def from_files(cls, files: Mapping[str, bytes]) -> Tokenizer:
        """A tokenizer from the contents of a folder's files, by file name."""
        return cls(read_source(files))

    @classmethod
    def from_folder(cls, path: Path) -> Tokenizer:
        """A tokenizer from the files of a folder, in any of the published forms."""
        check_type("path", path, str, Path)
        folder = Folder.at(Path(path), wanted="the folder that holds tokenizer.json or vocab.txt")
        return cls.from_safe_folder(folder)

    @classmethod
    def from_safe_folder(cls, folder: Folder) -> Tokenizer:
        """A tokenizer from a folder that is open by the rules of `files.safe_folder`."""
        files = read_files(folder)
        try:
            return cls.from_files(files)
        except FolderError as error:
            raise type(error)(f"{folder.path}: {error}") from error

    @property
    def vocab_size(self) -> int:
        """Rows of the embedding table: the largest id plus one."""
        return self._vocab_size

    @property
    def model_max_length(self) -> int | None:
        """The longest input of the model according to its folder, if it is recorded there."""
        value = self._source.config.get("model_max_length")
        return int(value) if isinstance(value, int | float) and 0 < value < LONGEST else None

    @property
    def control_tokens(self) -> frozenset[str]:
        """Tokens that are read as plain text unless `allow_special` is set."""
        return self._source.controls

    @property
    def end_id(self) -> int | None:
        """The token that ends a text: the tokenizer's eos, or sep where it has none."""
        return self._end

    @property
    def separates_words(self) -> bool:
        """Whether `decode` puts a space between any two words, Chinese ones too (WordPiece)."""
        return (self._source.state.get("decoder") or {}).get("type") == "WordPiece"

    @property
    def special_count(self) -> int:
        """Special tokens around a single text."""
        return self._template.single.specials

    def token_to_id(self, token: str) -> int | None:
        """The id of a token, if the vocabulary has it."""
        return self._safe_tokenizer.names.token_to_id(token)

    def id_to_token(self, number: int) -> str | None:
        """The token of an id, if there is one."""
        return (
            self._safe_tokenizer.names.id_to_token(number)
            if 0 <= number < self._vocab_size
            else None
        )

    def with_segmenter(self, segmenter: Segmenter | None) -> Tokenizer:
        """The same tokenizer, with Chinese word numbers from a segmenter."""
        other = copy.copy(self)
        other._segmenter = segmenter
        return other

    def framed(self, ids: Sequence[int]) -> Ints:
        """Ids of a text between the special tokens of a single text: (n,) -> (L,) int32."""
        before, after = (tuple(mark[0] for mark in gap) for gap in self._template.single.gaps)
        return np.array([*before, *ids, *after], dtype=np.int32)

    def bare(self) -> Tokenizer:
        """The same tokenizer without special tokens around a text."""
        state = {**self._source.state, "post_processor": None}
        return Tokenizer(replace(self._source, state=state), segmenter=self._segmenter)

    def add_tokens(self, tokens: Sequence[str]) -> Tokenizer:
        """A tokenizer with extra tokens that match in texts; new ids follow the last one."""
        added = list(self._source.state["added_tokens"])
        listed = {token["content"] for token in added}
        size = self._vocab_size
        for token in tokens:
            if not isinstance(token, str) or not token.strip() or not token.isprintable():
                raise ConfigError(f"{token!r} cannot be a token: give a visible string")
            if token in self._source.controls:
                raise ConfigError(f"{token!r} is a control token already and cannot be added")
            if token in listed:
                continue
            listed.add(token)
            number = self.token_to_id(token)
            if number is None:
                number, size = size, size + 1
            added.append(added_token(token, number, special=False))
        source = replace(self._source, state={**self._source.state, "added_tokens": added})
        grown = Tokenizer(source, segmenter=self._segmenter)
        for token in added:
            if (
                token["content"] in set(tokens)
                and grown.token_to_id(token["content"]) != token["id"]
            ):
                raise TextError(
                    f"{token['content']!r} would not get the id {token['id']}: the ids of this "
                    "vocabulary have holes, so tokens cannot be appended"
                )
        return grown

    def fast_ids(
        self, texts: Sequence[str], max_length: int | None
    ) -> tuple[list[Ints], list[int]]:
        """Only ids with special tokens, and the number of tokens cut from the end.

        The hot path of the runtime: texts -> n arrays (L,) int32.
        """
        before, after = (tuple(mark[0] for mark in gap) for gap in self._template.single.gaps)
        specials = len(before) + len(after)
        longest = specials + room_for_text(max_length, specials) if max_length is not None else None
        arrays: list[Ints] = []
        cuts: list[int] = []
        for batch in batches(clean_texts(texts), self._safe_tokenizer.long_text):
            if len(batch) == 1 and len(batch[0]) > self._safe_tokenizer.long_text:
                room = None if longest is None else longest - specials
                (pieces,) = self._safe_tokenizer.pieces(
                    batch, limits=None if room is None else (room, 0)
                )
                body = pieces.ids if room is None else pieces.ids[:room]
                arrays.append(np.array([*before, *body.tolist(), *after], dtype=np.int32))
                cuts.append(pieces.total - len(body))
                continue
            with rust_errors("the text could not be tokenized"):
                encoded = self._safe_tokenizer.safe.encode_batch_fast(batch)
            for one in encoded:
                ids = one.ids
                cut = 0 if longest is None else len(ids) - longest
                if cut > 0 and longest is not None:
                    ids = [*ids[: longest - len(after)], *after]
                arrays.append(np.array(ids, dtype=np.int32))
                cuts.append(max(cut, 0))
        return arrays, cuts

    def unknown_tokens(self, ids: Sequence[Ints]) -> UnknownTokens:
        """How many of the tokens of texts are unknown; `ids` is an array (L,) for each text."""
        special = self.special
        around = [one for one in (special.pad, special.cls, special.sep) if one is not None]
        joined = np.concatenate(ids) if len(ids) else np.zeros(0, dtype=np.int32)
        tokens = len(joined) - sum(int((joined == one).sum()) for one in set(around))
        if special.unk is None:
            return UnknownTokens(tokens)
        name = self.id_to_token(special.unk) or ""
        return UnknownTokens(tokens, int((joined == special.unk).sum()), name)

    def decode(self, ids: Sequence[int] | Ints, skip_special: bool = True) -> str:
        """The text of ids, as far as the tokens preserve it."""
        try:
            numbers = [int(i) for i in ids]
        except (TypeError, ValueError) as fault:
            raise TextError(f"ids are a sequence of numbers, not {ids!r:.60}") from fault
        for number in numbers:
            if not 0 <= number < self._vocab_size:
                raise TextError(f"id {number} is not in this vocabulary of {self._vocab_size}")
        with rust_errors("the ids could not be decoded"):
            return self._safe_tokenizer.names.decode(numbers, skip_special_tokens=skip_special)

    def files(self) -> dict[str, bytes]:
        """What `save` writes, by file name: tokenizer.json, its settings, vocab.txt if WordPiece.

        The same tokenizer always gives the same bytes, and `from_files` reads them back.
        """
        return tokenizer_files(self._source)

    def save(self, path: Path) -> None:
        """Write a folder of the tokenizer's files; a tokenizer that stands there is replaced."""
        check_type("path", path, str, Path)
        save_files(self.files(), Path(path))

    def _pieces(
        self, texts: Sequence[str], allow_special: bool, limits: tuple[int, int] | None
    ) -> list[Pieces]:
        pieces = self._safe_tokenizer.pieces(texts, allow_special=allow_special, limits=limits)
        if self._segmenter is None:
            return pieces
        return with_segmenter_words(pieces, texts, self._segmenter)

    def _frame(self, fields: int) -> Frame:
        return self._template.frame(fields)
