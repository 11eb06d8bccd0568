"""Text as one stream of word ids, which every model of this package is trained on."""
