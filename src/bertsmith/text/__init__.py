"""From a str to an Encoding: tokenizer, word boundaries, truncation, vocabulary learning."""
