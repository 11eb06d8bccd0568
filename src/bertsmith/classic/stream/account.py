"""What building a stream of words kept and left out, as lines for people."""

from __future__ import annotations

from bertsmith.classic.stream.stream import WordStream


def account_lines(stream: WordStream) -> list[str]:
    """How much there is, and everything that was left out or changed."""
    known = stream.account
    total = max(1, len(stream.ids))
    lines = [
        f"{len(stream.ids):,} words in {stream.lines:,} lines and "
        f"{len(stream.documents) - 1:,} documents; {stream.vocab_size - 1:,} different ones"
    ]
    if known.get("distinct_left_out"):
        count = known["words_left_out"] - sum(known["reserved"].values())
        reason = f"rarer than {known['min_count']}"
        if known["most"] is not None:
            reason += f" or beyond the {known['most']:,} most frequent"
        lines.append(
            f"{known['distinct_left_out']:,} words {reason} became <unk>: {count:,} of the text "
            f"({count / total:.2%}), most often {', '.join(known['left_out'])}"
        )
    for word, count in known.get("reserved", {}).items():
        lines.append(f"{word} stands {count:,} times in the text: it is an unknown word there")
    for key, what in (
        ("lines_without_words", "lines without a word were left out"),
        ("skipped_lines", "unreadable lines were skipped"),
        ("surrogates", "characters that are no Unicode text were replaced"),
    ):
        if known.get(key):
            lines.append(f"{known[key]:,} {what}")
    return lines + [f"  {example}" for example in known.get("examples", [])]
