"""The report of a fine-tuned model, drawn from its record (proof.json) and nothing else."""

from bertsmith.report.finetune.page import finetune_page, write_finetune_report

__all__ = ["finetune_page", "write_finetune_report"]
