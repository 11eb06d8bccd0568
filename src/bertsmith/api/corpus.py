"""Text to shards for pre-training, from Python."""

from __future__ import annotations

import logging
from pathlib import Path

from bertsmith.corpus.build import Notice, Progress
from bertsmith.corpus.build import build_corpus as build
from bertsmith.corpus.report import CorpusReport
from bertsmith.corpus.sources import CorpusSettings
from bertsmith.files.paths import GivenPath, GivenPaths, path_of, paths_of
from bertsmith.folders.read import load_tokenizer
from bertsmith.text.tokenizer import Tokenizer

log = logging.getLogger(__name__)


def build_corpus(
    files: GivenPaths,
    tokenizer: Tokenizer | str | Path,
    out: GivenPath,
    *,
    settings: CorpusSettings = CorpusSettings(),  # noqa: B008 - frozen
    workers: int | None = None,
    progress: Progress = lambda documents, share: None,
    notice: Notice = log.info,
) -> CorpusReport:
    """Turn files of text into the shards that `pretrain` reads; the same call resumes.

    `files` are files or folders; `tokenizer` is one, or the folder or name of a model or
    vocabulary. The folder `out` appears when it is complete, and its bytes do not depend on the
    number of `workers`, which are one per core if unset. `progress` hears documents and the share
    of the input, `notice` what was decided about the files.
    """
    words = tokenizer if isinstance(tokenizer, Tokenizer) else load_tokenizer(tokenizer)
    return build(
        paths_of("files", files),
        words,
        path_of("out", out),
        settings,
        workers=workers,
        progress=progress,
        notice=notice,
    )
