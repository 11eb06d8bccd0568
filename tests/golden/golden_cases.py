"""Every golden case in one table: a renamed command, option or setting is an edit of one line here.

A case with the ending +new has the settings off that the defaults leave behind; the one without it
says them explicitly as the defaults were when the hashes were made, so that a changed default does
not change either of them.
"""

from __future__ import annotations

from golden_commands import (
    COMMON,
    CPU,
    LINES,
    SEED,
    Case,
    Command,
    Records,
    corpus,
    finetuning,
    language_model,
    pretraining,
    printed,
    sentences,
    transformed,
    vectors,
    vocabulary,
    word_vectors,
    written,
)

# --- settings whose defaults change: as they were, and off -------------------------------------
LOCAL = {"model.init": "local_attention"}  # albert, electra, fast
RANDOM = {"model.init": "random"}
WIDE = {"head.wide": "true"}  # features, bbc
NOT_WIDE = {"head.wide": "false"}
R_DROP = {"regularization.r_drop": "1.0"}  # sst2
NO_R_DROP = {"regularization.r_drop": "0.0"}
STSB = {"head.dropout": "0.0", "optimizer.lr": "2e-5", "optimizer.head_lr": "1e-3"}
BI_ENCODER = STSB | {"encoder.pair": "bi-encoder"}  # stsb
CROSS_ENCODER = STSB | {"encoder.pair": "cross-encoder"}

# --- settings of every case of a kind -----------------------------------------------------------
MEAN = {"vector.pooling": "mean"}
SMALL = {"width": "24", "hidden": "24", "plan.epochs": "2"}  # NNLM, LSTM, GRU
SMALL_ELMO = {
    "model.hidden": "32",
    "model.projection": "16",
    "model.filters": "[[1,8],[2,8]]",
    "plan.epochs": "1",
}
SMALL_GPT = {
    "model.layers": "2",
    "model.hidden": "32",
    "model.heads": "2",
    "plan.epochs": "1",
    "plan.lines": "32",
}


CASES: dict[str, Case] = {
    "vectors": vectors(1000),
    "vectors/200": vectors(200),
    "vocab/english": vocabulary("english", "--tokenizer wordpiece --vocab-size 220"),
    "vocab/bytes": vocabulary("english", "--tokenizer byte-bpe --vocab-size 420"),
    "vocab/unigram": vocabulary("english", "--tokenizer unigram --vocab-size 220"),
    "vocab/xlnet": vocabulary("english", "--tokenizer xlnet --vocab-size 220"),
    "vocab/chinese": vocabulary("chinese", "--tokenizer wordpiece --vocab-size 400"),
    "corpus/english": corpus("documents:english", "english"),
    "corpus/bytes": corpus("documents:english", "bytes"),
    "corpus/unigram": corpus("documents:english", "unigram"),
    "corpus/xlnet": corpus("documents:english", "xlnet"),
    "corpus/chinese": corpus("documents:chinese", "chinese", segmenter="jieba"),
    "corpus/capitals": corpus("file:capitals.txt", "english"),
    # --- pre-training: every recipe
    "pretrain/bert": pretraining("bert"),
    "pretrain/bert-wwm": pretraining("bert-wwm"),
    "pretrain/bert-wwm-zh": pretraining("bert-wwm-zh", "chinese"),
    "pretrain/ernie": pretraining("ernie"),
    "pretrain/spanbert": pretraining("spanbert"),
    "pretrain/roberta": pretraining("roberta", "bytes"),
    "pretrain/albert": pretraining("albert", "unigram", LOCAL),
    "pretrain/albert+new": pretraining("albert", "unigram", RANDOM),
    "pretrain/electra": pretraining("electra", settings=LOCAL),
    "pretrain/electra+new": pretraining("electra", settings=RANDOM),
    "pretrain/macbert": pretraining("macbert"),
    "pretrain/nezha": pretraining("nezha"),
    "pretrain/fast": pretraining("fast", settings=LOCAL),
    "pretrain/fast+new": pretraining("fast", settings=RANDOM),
    "pretrain/gpt": pretraining("gpt"),
    "pretrain/gpt2": pretraining("gpt", settings={"model.variant": "gpt2"}),
    "pretrain/unilm": pretraining("unilm"),
    "pretrain/bart": pretraining("bart", "bytes"),
    "pretrain/mass": pretraining("mass"),
    "pretrain/xlnet": pretraining("xlnet", "xlnet"),
    "pretrain/xlnet+memory": pretraining("xlnet", "xlnet", {"program.memory": "16"}),
    "pretrain/ernie2": pretraining("ernie2", "capitals", {"batch.tokens": "2048"}),
    "pretrain/wklm": pretraining("wklm", settings={"program.entities": "{file:entities.tsv}"}),
    "pretrain/wklm+aligned": pretraining(
        "wklm", settings={"program.entities": "{file:entities.tsv}", "program.aligned": "1"}
    ),
    "pretrain/continued": Command(
        line="pretrain bert --init {case:pretrain/bert} --corpus {case:corpus/english} --out {out}"
        f" --steps 10 {COMMON} {SEED}",
        settings={"batch.tokens": "512"},
    ),
    # --- fine-tuning: every task
    "finetune/classify": finetuning("rows:labels"),
    "finetune/pairs": finetuning("rows:pairs"),
    "finetune/multilabel": finetuning("rows:several", "--task multilabel"),
    "finetune/regress": finetuning("rows:numbers", "--task regress"),
    "finetune/tag": finetuning("rows:tags"),
    "finetune/tag-crf": finetuning("rows:tags", settings={"task.crf": "true"}),
    "finetune/answer": finetuning("rows:answers", "--max-length 64"),
    "finetune/choose": finetuning("rows:choices"),
    "finetune/windows": finetuning(
        "rows:long-labels", settings={"length.max_length": "48", "length.stride": "half"}
    ),
    "finetune/mean+new": finetuning("rows:long-labels", settings=MEAN),
    "finetune/vectors": finetuning(
        "rows:labels", settings={"vector.pooling": "attention", "vector.layers": "weighted"}
    ),
    "finetune/frozen": finetuning(
        "rows:labels", epochs=5, settings=MEAN | {"encoder.frozen": "true"}
    ),
    "finetune/sst2": finetuning("rows:labels", "--recipe sst2", settings=R_DROP),
    "finetune/sst2+new": finetuning("rows:labels", "--recipe sst2", settings=NO_R_DROP),
    "finetune/stsb+new": finetuning("rows:likeness", "--recipe stsb", settings=BI_ENCODER),
    "finetune/stsb+together": finetuning("rows:likeness", "--recipe stsb", settings=CROSS_ENCODER),
    "finetune/bbc": finetuning("rows:long-labels", "--recipe bbc", epochs=5, settings=WIDE),
    "finetune/bbc+new": finetuning("rows:long-labels", "--recipe bbc", epochs=5, settings=NOT_WIDE),
    "finetune/features": finetuning("rows:labels", "--recipe features", epochs=5, settings=WIDE),
    "finetune/features+new": finetuning(
        "rows:labels", "--recipe features", epochs=5, settings=NOT_WIDE
    ),
    "finetune/seeds": finetuning("rows:labels", "--seeds 2", epochs=1),
    "finetune/folds": finetuning("file:roles.jsonl", "--text text --label label --folds 2"),
    "finetune/knowledge": finetuning("rows:labels", "--knowledge {file:facts.tsv}"),
    "finetune/channel": finetuning("file:roles.jsonl", "--text text --label label --channel roles"),
    "finetune/elmo": finetuning("rows:tags", model="lm/elmo", settings={"head.lstm": "8"}),
    "finetune/write": finetuning("file:titles.tsv", "--task write --max-length 48"),
    "finetune/write-unilm": finetuning(
        "file:titles.tsv", "--task write --max-length 48", model="pretrain/unilm"
    ),
    "finetune/write-gpt": finetuning(
        "file:titles.tsv", "--task write --max-length 48", model="pretrain/gpt"
    ),
    "finetune/write-bart": finetuning(
        "file:titles.tsv", "--task write --max-length 48", model="pretrain/bart"
    ),
    "finetune/similar": finetuning("file:alike.tsv", "--task similar --max-length 48"),
    "finetune/correct": finetuning(
        "file:wrong.tsv", "--task correct", model="pretrain/bert-wwm-zh"
    ),
    "finetune/correct-plain": finetuning(
        "file:wrong.tsv",
        "--task correct",
        model="pretrain/bert-wwm-zh",
        settings={"detector.kind": "none"},
    ),
    # --- vectors of sentences: every recipe, every objective
    "sentences/cosent": sentences("scored.tsv", "--epochs 2"),
    "sentences/cosine": sentences("scored.tsv", "--epochs 2 --objective cosine --dims 64,16"),
    "sentences/softmax": sentences("labeled.tsv", "--epochs 2"),
    "sentences/sbert-nli": sentences("labeled.tsv", "--recipe sbert-nli"),
    "sentences/triplet": sentences("triplets.tsv", "--epochs 2 --objective triplet"),
    "sentences/contrastive": sentences("alike.tsv", "--epochs 2"),
    "sentences/simcse": sentences("plain.txt", "--recipe simcse --dev {file:scored.tsv}"),
    "sentences/simcse-supervised": sentences("triplets.tsv", "--recipe simcse-supervised"),
    "sentences/whiten": transformed("whiten {case:pretrain/bert} {file:plain.txt} --dim 16"),
    "sentences/flow": transformed(
        "flow {case:pretrain/bert} {file:plain.txt} --flow-steps 2 --hidden 8 --epochs 3"
    ),
    "sentences/static": transformed(
        "static {case:pretrain/bert} --text-file {file:plain.txt} --dim 16"
    ),
    "sentences/tune": transformed("tune {case:pretrain/bert} {file:scored.tsv} --dim 16 --flows 1"),
    "sentences/evaluate": printed(
        f"sentences evaluate {{case:pretrain/bert}} {{file:scored.tsv}} --json {CPU}"
    ),
    # --- language models and vectors of words
    "lm/ngram": language_model("ngram", "--order 3", settings={"fallback": "true"}),
    "lm/nnlm": language_model("nnlm", settings=SMALL),
    "lm/lstm": language_model("lstm", settings=SMALL),
    "lm/gru": language_model("gru", settings=SMALL),
    "lm/elmo": language_model("elmo", settings=SMALL_ELMO),
    "lm/gpt": language_model("gpt", settings=SMALL_GPT),
    "lm/gpt-pieces": language_model("gpt", "--pieces {case:vocab/english}", settings=SMALL_GPT),
    "lm/score": printed("lm perplexity {case:lm/lstm} {file:held-out.txt} --json " + LINES),
    "lm/mixed": printed(
        "lm perplexity {case:lm/lstm} {file:held-out.txt} --mix {case:lm/ngram} --json " + LINES
    ),
    "lm/generate": printed("lm generate {case:lm/ngram} --lines 5 --max-new 12 --seed 3"),
    "lm/generate-gpt": printed(
        "lm generate {case:lm/gpt} --lines 2 --max-new 8 --top-k 9 --seed 3"
    ),
    "words/skipgram": word_vectors("--kind skipgram"),
    "words/cbow": word_vectors("--kind cbow"),
    "words/hierarchical": word_vectors("--kind cbow --loss hierarchical"),
    "words/nce": word_vectors("--kind skipgram --loss nce"),
    "words/near": printed("words near {case:words/skipgram} river --json"),
    "words/embed": Command(
        line="embed {case:lm/elmo} {file:prompts.txt} --words --layer all --out {out}.npy",
        counts="array",
    ),
    # --- inference
    "generate/greedy": written("generate {case:pretrain/gpt} {file:prompts.txt} --max-new 8"),
    "generate/gpt2": written("generate {case:pretrain/gpt2} {file:prompts.txt} --max-new 8"),
    "generate/beams": written(
        "generate {case:pretrain/bart} {file:prompts.txt} --max-new 8 --beams 3"
        " --answers 2 --scores"
    ),
    "generate/sampled": written(
        "generate {case:pretrain/gpt} {file:prompts.txt} --max-new 8 --sample --top-p 0.9"
        " --answers 2 --seed 3 --scores"
    ),
    "generate/write": written(
        "generate {case:finetune/write} {file:prompts.txt} --max-new 8 --beams 2 --scores"
    ),
    "generate/filling": printed(
        "generate {case:pretrain/bert} --length 6 --fill-steps 20 --seed 3 --json"
    ),
    "similar/write": printed(
        "sentences similar {case:finetune/similar} --write 3 --candidates 6 --json",
        "the river and a garden",
    ),
    "similar/find": printed(
        "sentences similar {case:finetune/similar} --among {file:plain.txt} --json",
        "the river and a garden",
    ),
    "fill": printed("fill {case:pretrain/bert} --json", "the river [MASK] of the garden [MASK] ."),
    "score": printed("lm score {case:pretrain/bert} {file:prompts.txt} --tokens --json"),
    "correct": written("correct {case:finetune/correct} {file:wrong.tsv} --text wrong"),
    "predict/classify": written("predict {case:finetune/classify} {rows:labels}/dev.tsv " + COMMON),
    "predict/tag": written("predict {case:finetune/tag-crf} {rows:tags}/dev.conll " + COMMON),
    "predict/ensemble": written(
        "predict {case:finetune/seeds} {rows:labels}/dev.tsv --ensemble " + COMMON
    ),
    "evaluate/classify": printed(
        f"evaluate {{case:finetune/classify}} {{rows:labels}}/dev.tsv --json {COMMON} {CPU}"
    ),
    "evaluate/answer": printed(
        f"evaluate {{case:finetune/answer}} {{rows:answers}}/dev.jsonl --json {COMMON} {CPU}"
    ),
    "evaluate/write": printed(
        f"evaluate {{case:finetune/write}} {{file:titles.tsv}} --json {COMMON} {CPU}"
    ),
    "evaluate/correct": printed(
        f"evaluate {{case:finetune/correct}} {{file:wrong.tsv}} --json {COMMON} {CPU}"
    ),
    "evaluate/files": Command(
        line=f"evaluate {{case:finetune/classify}} {{rows:labels}}/dev.tsv --out {{out}} {COMMON}"
        f" {CPU}",
        counts="files",
        files=("predictions.jsonl",),
    ),
    "index/build": Command(
        line="index build {file:bank.tsv} --text question --model {case:pretrain/bert} --out {out}"
        f" {COMMON} {CPU}",
        counts="files",
        files=("segments/**/*",),
    ),
    "index/search": printed(
        f"search {{case:index/build}} --file {{file:prompts.txt}} -k 3 --json {COMMON} {CPU}"
    ),
    "index/hybrid": printed(
        "search {case:index/build} --file {file:prompts.txt} -k 3 --json"
        f" --hybrid --where year>=2000 {COMMON} {CPU}"
    ),
    "pairs": printed(
        f"index pairs {{file:plain.txt}} --model {{case:pretrain/bert}} --json {COMMON} {CPU}"
    ),
}
# Cases of which all JSON in their folder is hashed, too.
RECORDED = ("pretrain/", "finetune/", "sentences/", "lm/", "words/", "evaluate/", "index/")
CASES |= {
    f"records/{name}": Records(of=name)
    for name, case in CASES.items()
    if name.startswith(RECORDED) and isinstance(case, Command) and "--out {out} " in f"{case.line} "
}
# Of every test run.
QUICK = (
    "vectors/200",
    "pretrain/bert",
    "finetune/classify",
    "records/finetune/classify",
    "words/skipgram",
)
