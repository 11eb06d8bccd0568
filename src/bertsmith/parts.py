"""The parts that models, tasks and trainings are made of, for those who add one of their own.

Everyday names are in `bertsmith` itself. Whatever the pages on adding a part need is here, so that
nothing outside of the package depends on where it lies inside.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bertsmith.lazy_names import homes_of, imported

if TYPE_CHECKING:
    from bertsmith.classic.elmo.folder import open_reader as open_reader
    from bertsmith.classic.elmo.settings import ElmoSettings as ElmoSettings
    from bertsmith.classic.gpt.settings import GptSettings as GptSettings
    from bertsmith.classic.language_model import LanguageModel as LanguageModel
    from bertsmith.classic.language_model import score_lines as score_lines
    from bertsmith.classic.neural.mixture import fitted_mixture as fitted_mixture
    from bertsmith.classic.neural.settings import GruSettings as GruSettings
    from bertsmith.classic.neural.settings import LstmSettings as LstmSettings
    from bertsmith.classic.neural.settings import NeuralPlan as NeuralPlan
    from bertsmith.classic.neural.settings import NnlmSettings as NnlmSettings
    from bertsmith.classic.neural.softmax import AdaptiveSoftmax as AdaptiveSoftmax
    from bertsmith.classic.neural.softmax import FullSoftmax as FullSoftmax
    from bertsmith.classic.neural.softmax import NoiseContrast as NoiseContrast
    from bertsmith.classic.neural.softmax import SampledSoftmax as SampledSoftmax
    from bertsmith.classic.ngram.estimation import NgramSettings as NgramSettings
    from bertsmith.classic.stream.stream import WordStream as WordStream
    from bertsmith.classic.stream.stream import build_words as build_words
    from bertsmith.config import to_toml as to_toml
    from bertsmith.corpus.rows import RowsBatch as RowsBatch
    from bertsmith.corpus.rows import rows_of as rows_of
    from bertsmith.hardware.choice import choose_path as choose_path
    from bertsmith.hardware.report import examine as examine
    from bertsmith.labeled.example import Answers as Answers
    from bertsmith.labeled.example import ChoiceIndex as ChoiceIndex
    from bertsmith.labeled.example import LabelSet as LabelSet
    from bertsmith.labeled.example import ScoreTarget as ScoreTarget
    from bertsmith.labeled.example import Tagged as Tagged
    from bertsmith.labeled.example import Target as Target
    from bertsmith.labeled.survey.survey import survey as survey
    from bertsmith.metrics import CLASSIFICATION as CLASSIFICATION
    from bertsmith.models.build import build as build
    from bertsmith.models.config.keys import config_from_spec as config_from_spec
    from bertsmith.models.config.keys import spec_from_config as spec_from_config
    from bertsmith.models.spec import LayerShape as LayerShape
    from bertsmith.models.spec import Spec as Spec
    from bertsmith.models.variant import Variant as Variant
    from bertsmith.models.variants import VARIANTS as VARIANTS
    from bertsmith.models.word_encoders.elmo_spec import ELMO_SIZES as ELMO_SIZES
    from bertsmith.models.word_encoders.elmo_spec import ElmoSpec as ElmoSpec
    from bertsmith.nn.encoder import Encoded as Encoded
    from bertsmith.nn.encoder import Want as Want
    from bertsmith.nn.inputs import Inputs as Inputs
    from bertsmith.nn.layout import Anticausal as Anticausal
    from bertsmith.nn.layout import Causal as Causal
    from bertsmith.nn.layout import Dense as Dense
    from bertsmith.nn.layout import Full as Full
    from bertsmith.nn.layout import Layout as Layout
    from bertsmith.nn.layout import Mixed as Mixed
    from bertsmith.nn.layout import Prefix as Prefix
    from bertsmith.nn.loss import LossSum as LossSum
    from bertsmith.nn.loss import cross_entropy as cross_entropy
    from bertsmith.nn.pooling import pool as pool
    from bertsmith.objectives.batch import PretrainBatch as PretrainBatch
    from bertsmith.objectives.batch import Targets as Targets
    from bertsmith.objectives.denoise import DenoiseProgram as DenoiseProgram
    from bertsmith.objectives.masked_lm import MaskedLMObjective as MaskedLMObjective
    from bertsmith.objectives.masking.grouping import GROUPINGS as GROUPINGS
    from bertsmith.objectives.masking.grouping import Grouping as Grouping
    from bertsmith.objectives.masking.grouping import GroupingSettings as GroupingSettings
    from bertsmith.objectives.masking.masking import Masking as Masking
    from bertsmith.objectives.masking.replacement import AllMask as AllMask
    from bertsmith.objectives.noise.noised import arranged as arranged
    from bertsmith.objectives.program import PretrainModule as PretrainModule
    from bertsmith.objectives.program import ProgramSettings as ProgramSettings
    from bertsmith.objectives.source_target import end_token as end_token
    from bertsmith.runtime.engines.kinds import engine_paths as engine_paths
    from bertsmith.studies.road.senses import find_occurrences as find_occurrences
    from bertsmith.studies.road.senses import sense_score as sense_score
    from bertsmith.tasks.batch import TaskBatch as TaskBatch
    from bertsmith.tasks.batch import task_batch as task_batch
    from bertsmith.tasks.feature import Feature as Feature
    from bertsmith.tasks.feature import tokens_cut as tokens_cut
    from bertsmith.tasks.inference import compute_logits as compute_logits
    from bertsmith.tasks.kinds import TASKS as TASKS
    from bertsmith.tasks.length import LengthSettings as LengthSettings
    from bertsmith.tasks.model.from_settings import task_model as task_model
    from bertsmith.tasks.model.layers import HeadSettings as HeadSettings
    from bertsmith.tasks.model.task_head import InputWrapper as InputWrapper
    from bertsmith.tasks.model.task_head import TaskHead as TaskHead
    from bertsmith.tasks.model.task_model import TaskModel as TaskModel
    from bertsmith.tasks.model.text_vector import VectorSettings as VectorSettings
    from bertsmith.tasks.prediction import Prediction as Prediction
    from bertsmith.tasks.task import PublishedHead as PublishedHead
    from bertsmith.tasks.task import Task as Task
    from bertsmith.tasks.task import TaskKind as TaskKind
    from bertsmith.tasks.task import WholeText as WholeText
    from bertsmith.training.execution.precision import choose_precision as choose_precision
    from bertsmith.training.kinds.labeled.learner import FinetuneJob as FinetuneJob
    from bertsmith.training.kinds.labeled.learner import finetune as finetune
    from bertsmith.training.kinds.labeled.recipe import load_finetune_recipe as load_finetune_recipe
    from bertsmith.training.kinds.labeled.rows import LabeledRows as LabeledRows
    from bertsmith.training.pretrain.recipe import load_recipe as load_recipe

_MODULES = {
    "bertsmith.classic.elmo.folder": ("open_reader",),
    "bertsmith.classic.elmo.settings": ("ElmoSettings",),
    "bertsmith.classic.gpt.settings": ("GptSettings",),
    "bertsmith.classic.language_model": ("LanguageModel", "score_lines"),
    "bertsmith.classic.neural.mixture": ("fitted_mixture",),
    "bertsmith.classic.neural.settings": (
        "GruSettings",
        "LstmSettings",
        "NeuralPlan",
        "NnlmSettings",
    ),
    "bertsmith.classic.neural.softmax": (
        "AdaptiveSoftmax",
        "FullSoftmax",
        "NoiseContrast",
        "SampledSoftmax",
    ),
    "bertsmith.classic.ngram.estimation": ("NgramSettings",),
    "bertsmith.classic.stream.stream": ("WordStream", "build_words"),
    "bertsmith.config": ("to_toml",),
    "bertsmith.corpus.rows": ("RowsBatch", "rows_of"),
    "bertsmith.hardware.choice": ("choose_path",),
    "bertsmith.hardware.report": ("examine",),
    "bertsmith.labeled.example": (
        "Answers",
        "ChoiceIndex",
        "LabelSet",
        "ScoreTarget",
        "Tagged",
        "Target",
    ),
    "bertsmith.labeled.survey.survey": ("survey",),
    "bertsmith.metrics": ("CLASSIFICATION",),
    "bertsmith.models.build": ("build",),
    "bertsmith.models.config.keys": ("config_from_spec", "spec_from_config"),
    "bertsmith.models.spec": ("LayerShape", "Spec"),
    "bertsmith.models.variant": ("Variant",),
    "bertsmith.models.variants": ("VARIANTS",),
    "bertsmith.models.word_encoders.elmo_spec": ("ELMO_SIZES", "ElmoSpec"),
    "bertsmith.nn.encoder": ("Encoded", "Want"),
    "bertsmith.nn.inputs": ("Inputs",),
    "bertsmith.nn.layout": ("Anticausal", "Causal", "Dense", "Full", "Layout", "Mixed", "Prefix"),
    "bertsmith.nn.loss": ("LossSum", "cross_entropy"),
    "bertsmith.nn.pooling": ("pool",),
    "bertsmith.objectives.batch": ("PretrainBatch", "Targets"),
    "bertsmith.objectives.denoise": ("DenoiseProgram",),
    "bertsmith.objectives.masked_lm": ("MaskedLMObjective",),
    "bertsmith.objectives.masking.grouping": ("GROUPINGS", "Grouping", "GroupingSettings"),
    "bertsmith.objectives.masking.masking": ("Masking",),
    "bertsmith.objectives.masking.replacement": ("AllMask",),
    "bertsmith.objectives.noise.noised": ("arranged",),
    "bertsmith.objectives.program": ("PretrainModule", "ProgramSettings"),
    "bertsmith.objectives.source_target": ("end_token",),
    "bertsmith.runtime.engines.kinds": ("engine_paths",),
    "bertsmith.studies.road.senses": ("find_occurrences", "sense_score"),
    "bertsmith.tasks.batch": ("TaskBatch", "task_batch"),
    "bertsmith.tasks.feature": ("Feature", "tokens_cut"),
    "bertsmith.tasks.inference": ("compute_logits",),
    "bertsmith.tasks.kinds": ("TASKS",),
    "bertsmith.tasks.length": ("LengthSettings",),
    "bertsmith.tasks.model.from_settings": ("task_model",),
    "bertsmith.tasks.model.layers": ("HeadSettings",),
    "bertsmith.tasks.model.task_head": ("InputWrapper", "TaskHead"),
    "bertsmith.tasks.model.task_model": ("TaskModel",),
    "bertsmith.tasks.model.text_vector": ("VectorSettings",),
    "bertsmith.tasks.prediction": ("Prediction",),
    "bertsmith.tasks.task": ("PublishedHead", "Task", "TaskKind", "WholeText"),
    "bertsmith.training.execution.precision": ("choose_precision",),
    "bertsmith.training.kinds.labeled.learner": ("FinetuneJob", "finetune"),
    "bertsmith.training.kinds.labeled.recipe": ("load_finetune_recipe",),
    "bertsmith.training.kinds.labeled.rows": ("LabeledRows",),
    "bertsmith.training.pretrain.recipe": ("load_recipe",),
}
_HOMES = homes_of(_MODULES)

__all__ = [
    "CLASSIFICATION",
    "ELMO_SIZES",
    "GROUPINGS",
    "TASKS",
    "VARIANTS",
    "AdaptiveSoftmax",
    "AllMask",
    "Answers",
    "Anticausal",
    "Causal",
    "ChoiceIndex",
    "DenoiseProgram",
    "Dense",
    "ElmoSettings",
    "ElmoSpec",
    "Encoded",
    "Feature",
    "FinetuneJob",
    "Full",
    "FullSoftmax",
    "GptSettings",
    "Grouping",
    "GroupingSettings",
    "GruSettings",
    "HeadSettings",
    "InputWrapper",
    "Inputs",
    "LabelSet",
    "LabeledRows",
    "LanguageModel",
    "LayerShape",
    "Layout",
    "LengthSettings",
    "LossSum",
    "LstmSettings",
    "MaskedLMObjective",
    "Masking",
    "Mixed",
    "NeuralPlan",
    "NgramSettings",
    "NnlmSettings",
    "NoiseContrast",
    "Prediction",
    "Prefix",
    "PretrainBatch",
    "PretrainModule",
    "ProgramSettings",
    "PublishedHead",
    "RowsBatch",
    "SampledSoftmax",
    "ScoreTarget",
    "Spec",
    "Tagged",
    "Target",
    "Targets",
    "Task",
    "TaskBatch",
    "TaskHead",
    "TaskKind",
    "TaskModel",
    "Variant",
    "VectorSettings",
    "Want",
    "WholeText",
    "WordStream",
    "arranged",
    "build",
    "build_words",
    "choose_path",
    "choose_precision",
    "compute_logits",
    "config_from_spec",
    "cross_entropy",
    "end_token",
    "engine_paths",
    "examine",
    "find_occurrences",
    "finetune",
    "fitted_mixture",
    "load_finetune_recipe",
    "load_recipe",
    "open_reader",
    "pool",
    "rows_of",
    "score_lines",
    "sense_score",
    "spec_from_config",
    "survey",
    "task_batch",
    "task_model",
    "to_toml",
    "tokens_cut",
]


def __getattr__(name: str) -> Any:
    """The part, imported at its first use."""
    return imported(__name__, _HOMES, name)


def __dir__() -> list[str]:
    """The parts, for completion."""
    return sorted(__all__)
