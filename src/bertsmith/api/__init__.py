"""What the command line and Python both call: fine-tuning, pre-training and evaluation of files."""
